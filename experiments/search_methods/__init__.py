"""Number of simulated steps of Levenberg-Marquardt and CMA-ES on the same costs."""
