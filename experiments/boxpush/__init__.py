"""Friction and mass of a pushed box from a noisy log."""
