"""Robot files and logs: reading and writing."""
