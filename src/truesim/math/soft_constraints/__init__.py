"""Soft constraints on an acceleration: bounded rows, elliptic friction cones, and the solvers of their problem."""
