"""Hybrid models of recorded robots with a network at the first suggested port, tested on held-out runs."""
