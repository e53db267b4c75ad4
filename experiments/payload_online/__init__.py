"""A load that a seven-joint arm picks up while it moves."""
