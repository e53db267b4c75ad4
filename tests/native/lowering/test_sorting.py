"""Sorting against XLA."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.native.agreement import assert_agrees, integers, normal


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_sort(n, dtype):
    """Sorting networks of every size agree, ties and axes included."""
    x = integers(n, -4, 5, 6, n, 3).astype(dtype)
    assert_agrees(lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.argsort(x, 1)), x)


def test_sort_several_keys():
    """Further keys break ties, and payloads follow."""
    x, y = integers(0, 0, 3, 5, 9), integers(1, 0, 3, 5, 9)
    assert_agrees(lambda x, y: lax.sort((x, y, jnp.arange(9)), num_keys=2), x, y)


def test_sort_special_values():
    """NaN comes last, and zeros of either sign are equal."""
    x = np.array([[np.nan, 0.0, -0.0, np.inf, -np.inf, -1.0]])
    assert_agrees(lambda x: jnp.argsort(x), x)


def test_top_k():
    """The largest entries and their places agree."""
    assert_agrees(lambda x: lax.top_k(x, 3), integers(0, 0, 5, 4, 2, 7).astype(float))


def test_median():
    """Order statistics built on sorting agree."""
    assert_agrees(lambda x: (jnp.median(x), jnp.sort(x)[::-1]), normal(0, 5, 7))
