"""From logs to parameters."""
