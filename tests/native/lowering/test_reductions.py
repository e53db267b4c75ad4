"""Reductions and cumulative operations against XLA."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.native.agreement import assert_agrees, integers, normal

REDUCTIONS = {
    "sum": jnp.sum,
    "prod": jnp.prod,
    "max": jnp.max,
    "min": jnp.min,
    "all": lambda x, axis: jnp.all(x > 0, axis),
    "any": lambda x, axis: jnp.any(x > 1, axis),
}


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_reductions(name, axis, dtype):
    """Reductions agree over every axis and type."""
    x = integers(0, -4, 5, 3, 2, 3, 4).astype(dtype)
    assert_agrees(lambda x: REDUCTIONS[name](x, axis=axis), x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_extrema(name):
    """The first extremum is found, NaN before anything else."""
    x = integers(0, 0, 4, 6, 3, 5).astype(float)
    x[2, 1, 3] = x[2, 1, 4] = np.nan
    f = getattr(jnp, name)
    assert_agrees(lambda x: (f(x, axis=0), f(x, axis=1), f(x)), x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(name, reverse):
    """Running totals agree in both directions."""
    f = getattr(lax, name)
    assert_agrees(lambda x: (f(x, 0, reverse), f(x, 1, reverse)), normal(0, 3, 4, 3))


def test_windows():
    """Reductions over sliding windows agree."""

    def f(x):
        total = lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME")
        return total, lax.reduce_window(x, -np.inf, lax.max, (3, 1), (1, 1), "VALID")

    assert_agrees(f, normal(0, 3, 4, 6))


def test_bitwise_reductions():
    """Integer and, or and xor reductions agree."""
    x = integers(0, 0, 16, 3, 4)
    reduce = lambda op, start: lambda x: lax.reduce(x, np.int32(start), op, (0,))  # noqa: E731
    assert_agrees(lambda x: (reduce(lax.bitwise_or, 0)(x), reduce(lax.bitwise_and, -1)(x)), x)
