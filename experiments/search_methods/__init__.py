"""Levenberg-Marquardt and CMA-ES on the same costs: how many simulated steps each needs."""
