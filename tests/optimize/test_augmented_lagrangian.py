"""Augmented Lagrangian: constrained minima of problems with a known solution."""

import numpy as np
import pytest

from truesim.optimize.augmented_lagrangian import AugmentedPoint, constraint_terms, minimize_stage


def bowl(x, multipliers, stiffness):
    """Squared distance from (2, 1) with x0 + x1 <= 1, as an augmented Lagrangian."""
    away = x - np.array([[2.0], [1.0]])
    value, force = constraint_terms(line(x), multipliers, stiffness)
    return float(np.sum(away**2)) + value, 2 * away + force.sum()


def line(x):
    """The constraint, negative inside."""
    return np.array([[x.sum() - 1.0]])


@pytest.mark.parametrize("metric", [None, np.array([[2.0, 0.5], [0.5, 1.0]])])
def test_it_finds_the_constrained_minimum_and_its_multiplier(metric):
    """The projection of (2, 1) onto the line is (1, 0), with the multiplier 2, at a finite stiffness."""
    point = AugmentedPoint(np.zeros((2, 1)), np.zeros((1, 1)))
    for _ in range(12):
        point = minimize_stage(bowl, line, point, 10.0, iterations=50, metric=metric)
    np.testing.assert_allclose(point.x, [[1.0], [0.0]], atol=1e-4)  # L-BFGS ends at gradients of 1e-5
    np.testing.assert_allclose(point.multipliers, [[2.0]], rtol=1e-4)


def test_a_constraint_that_does_not_bind_changes_nothing():
    """Its multiplier stays zero."""
    start = AugmentedPoint(np.zeros((2, 1)), np.zeros((1, 1)))
    point = minimize_stage(bowl, lambda x: line(x) - 9.0, start, 1e-9, iterations=50)
    np.testing.assert_allclose(point.x, [[2.0], [1.0]], atol=1e-5)
    assert point.multipliers.max() == 0


def test_the_derivative_of_the_terms():
    """Against central differences."""
    rng = np.random.default_rng(0)
    g, m = rng.normal(size=(4, 3)), np.abs(rng.normal(size=(4, 3)))
    _, force = constraint_terms(g, m, 7.0)
    for k in range(3):
        e = np.zeros((4, 3))
        e[1, k] = 1e-6
        want = (constraint_terms(g + e, m, 7.0)[0] - constraint_terms(g - e, m, 7.0)[0]) / 2e-6
        np.testing.assert_allclose(force[1, k], want, atol=1e-8)
