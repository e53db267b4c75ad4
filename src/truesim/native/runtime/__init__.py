"""Compiled kernels in this process: cache on disk, calls on NumPy arrays, calls from JAX."""
