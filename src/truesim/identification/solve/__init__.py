"""Solving estimation problems: prior, noise, normal equations, stages."""
