"""Lengths of a double pendulum from a short motion: where one solve finds the truth, and where hopping does."""
