"""Hybrids of recorded robots: the port that `suggest` proposes first, trained from three seeds, on held-out runs."""
