"""A box pushed over a floor: friction and mass from a noisy log of its motion."""
