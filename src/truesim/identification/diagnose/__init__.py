"""Diagnosing a solved problem: covariance, identifiability, open-loop errors, status."""
