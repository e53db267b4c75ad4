"""Pictures and pages; this layer only reads."""
