"""Comparison of kernels with XLA, shared by the tests."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from truesim import native

TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
"""Relative to 1 + the largest entry: a few thousand roundings."""


def assert_close(got: Any, want: Any, scale: float = 1.0) -> None:
    """Fail unless both trees have the same structure, types, shapes and (nearly) values."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        finite = b[np.isfinite(b)]
        limit = scale * TOLERANCE[a.dtype.name] * (1 + (np.abs(finite).max() if finite.size else 0))
        np.testing.assert_allclose(a, b, rtol=0, atol=limit, equal_nan=True)


def assert_agrees(f: Callable[..., Any], *args: np.ndarray, scale: float = 1.0) -> None:
    """Fail unless the kernel of `f` gives what XLA gives on arguments with one batch axis."""
    kernel = native.compile(f, *(a[0] for a in args))
    assert_close(kernel(*args), jax.jit(jax.vmap(f))(*args), scale)


def normal(seed: int, *shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def integers(seed: int, low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    """Uniform integers in [low, high)."""
    return np.random.default_rng(seed).integers(low, high, size=shape).astype(dtype)
