"""Lengths of a double pendulum from a short motion: convergence of single solves and of basin hopping."""
