"""The hopper of gymnasium runs at 2 m/s, planned through rigid contact."""
