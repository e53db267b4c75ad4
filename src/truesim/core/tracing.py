"""Traced values: numbers that JAX does not know yet while it traces a function."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def is_traced(x: Any) -> bool:
    """True if a value is a tracer of `jit`, `grad` or `vmap`, so that Python cannot branch on it."""
    return isinstance(x, jax.core.Tracer)


def traced_once(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of trees of arrays; a trace of it is kept for further calls with the same structure and shapes.

    Its derivatives are kept likewise. With arrays that are not traced it runs as it is, since XLA would compile it.
    """
    traced = jax.jit(f)

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        known = not any(map(is_traced, jax.tree.leaves((args, options))))
        return f(*args, **options) if known else traced(*args, **options)

    return call
