"""Sensitivity of estimates to the thresholds of the solver."""
