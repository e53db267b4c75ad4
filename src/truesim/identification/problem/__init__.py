"""Estimation problems: signals, recordings, segments and shooting."""
