"""Hybrids of recorded robots: the port that `suggest` proposes, trained, and tested on held-out runs."""
