"""Coverage of 95 % intervals on recordings with the faults of real ones."""
