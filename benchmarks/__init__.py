"""Measurements of truesim and its peers, in one run."""
