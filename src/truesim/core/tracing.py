"""Traced values: numbers that JAX does not know yet while it traces a function."""

from typing import Any

import jax


def is_traced(x: Any) -> bool:
    """True if a value is a tracer of `jit`, `grad` or `vmap`, so that Python cannot branch on it."""
    return isinstance(x, jax.core.Tracer)
