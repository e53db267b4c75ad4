"""Floating-point precision: the scopes in which JAX computes in double and in single precision."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import jax


def float64() -> AbstractContextManager[None]:
    """Scope in which JAX keeps 64-bit numbers; outside of it the user's own setting holds."""
    return jax.enable_x64(True)


@contextlib.contextmanager
def float32() -> Iterator[None]:
    """Scope of batched networks: 32-bit numbers, and NumPy's promotion of ranks and types, whatever the user's own."""
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield
