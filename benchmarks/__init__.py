"""Benchmarks: speed, compile time and memory of truesim and of other engines."""
