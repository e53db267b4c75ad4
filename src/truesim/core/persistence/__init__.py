"""Files that survive a kill: journals and checkpoints."""
