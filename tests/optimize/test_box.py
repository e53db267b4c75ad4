"""Quadratic programs within bounds: the conditions of a minimum, and bounds of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesim.optimize.box import minimize_in_box


def program(n: int, seed: int, conditioning: float = 3.0):
    """A random convex program whose bounds matter; some are infinite, some hold zero off."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    H = Q @ np.diag(10 ** rng.uniform(-conditioning, conditioning, n)) @ Q.T
    g = rng.normal(size=n) * 10 ** rng.uniform(-1, 1, n)
    center = rng.normal(size=n)
    low, high = center - rng.uniform(0, 2, n), center + rng.uniform(0, 2, n)
    low[rng.random(n) < 0.2], high[rng.random(n) < 0.2] = -np.inf, np.inf
    return H, g, low, high


@given(st.integers(1, 12), st.integers(0, 2**31 - 1))
def test_conditions_of_a_minimum(n, seed):
    """The gradient vanishes where x is free, and points out of the box at a bound."""
    H, g, low, high = program(n, seed)
    x = minimize_in_box(H, g, low, high)
    assert np.all(x >= low)
    assert np.all(x <= high)
    gradient = H @ x + g
    tolerance = 1e-8 * (np.abs(H) @ np.abs(x) + np.abs(g)).max()
    inside = (x > low) & (x < high)
    assert np.all(np.abs(gradient[inside]) < tolerance)
    assert np.all(gradient[x == low] > -tolerance)
    assert np.all(gradient[x == high] < tolerance)


def test_no_bound_in_reach_is_newtons_step():
    """Far bounds change nothing."""
    H, g, _, _ = program(6, 1)
    x = minimize_in_box(H, g, np.full(6, -np.inf), np.full(6, np.inf))
    np.testing.assert_allclose(x, -np.linalg.solve(H, g), rtol=1e-9)


def test_empty_boxes_hold_their_value():
    """A parameter whose bounds coincide does not move, and the others make the best of it."""
    H, g, _, _ = program(3, 2)
    low, high = np.array([0.0, -np.inf, -np.inf]), np.array([0.0, np.inf, np.inf])
    x = minimize_in_box(H, g, low, high)
    assert x[0] == 0.0
    np.testing.assert_allclose(x[1:], -np.linalg.solve(H[1:, 1:], g[1:]), rtol=1e-9)


def test_nothing_to_minimize():
    """No unknowns, no step."""
    assert minimize_in_box(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_no_random_point_is_better(seed):
    """A minimum of a convex function is a minimum over the whole box."""
    H, g, low, high = program(4, seed)
    x = minimize_in_box(H, g, low, high)

    def objective(x):
        return x @ H @ x / 2 + g @ x

    rng = np.random.default_rng(seed)
    others = np.clip(x + rng.normal(size=(500, 4)) * 10 ** rng.uniform(-4, 1, (500, 1)), low, high)
    assert all(objective(x) <= objective(other) + 1e-10 * abs(objective(x)) for other in others)
