"""Adaptation methods on small benchmarks with fixed references."""
