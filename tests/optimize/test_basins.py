"""Basins: which solves ended in the same minimum."""

import numpy as np

from truesim.optimize import group_minima


def test_basins_are_sorted_and_counted():
    """Near minima are one basin with its best member, far ones are several, and failures are only counted."""
    theta = np.array([[1.0, 1.0], [3.0, 4.0], [1.0 + 1e-4, 1.0], [3.0, 4.0 - 1e-9], [5.0, 5.0]])
    cost = np.array([2.0, 1e-9, 1.5, 1e-12, np.inf])
    found = group_minima(theta, cost, np.array([9.9, 9.9]))
    np.testing.assert_array_equal(found.theta, theta[[3, 2]])
    np.testing.assert_array_equal(found.cost, [1e-12, 1.5])
    np.testing.assert_array_equal(found.count, [2, 2])
    assert found.solves == 5


def test_the_order_of_solves_does_not_matter():
    """A shuffled set of solves gives the same basins, also among equal costs."""
    rng = np.random.default_rng(0)
    theta = rng.integers(0, 4, (200, 2)).astype(float)
    cost = theta.sum(axis=1)
    first = group_minima(theta, cost, np.ones(2))
    order = rng.permutation(200)
    second = group_minima(theta[order], cost[order], np.ones(2))
    np.testing.assert_array_equal(first.theta, second.theta)
    np.testing.assert_array_equal(first.count, second.count)
    assert len(first) == 16


def test_no_solves_no_basins():
    """An empty search has no basins."""
    assert len(group_minima(np.zeros((0, 3)), np.zeros(0), np.ones(3))) == 0
