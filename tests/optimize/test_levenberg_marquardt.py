"""Batched Levenberg-Marquardt: minima within bounds, independent of the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

from tests.identification.search.problems import rippled, waves
from truesim.core.errors import TruesimError
from truesim.optimize import BatchedLevenbergMarquardt, LevenbergMarquardtOptions, Residuals, SolveTask


def solved(objective, starts, capacity=512, options=None):
    """One solve from each start, in the order of the starts."""
    solver = BatchedLevenbergMarquardt(objective, options, capacity)
    waiting = [SolveTask(k, 0, np.asarray(start, float)) for k, start in enumerate(starts)]
    ended = []
    while len(ended) < len(starts):
        room = solver.room
        solver.add(waiting[:room])
        waiting = waiting[room:]
        ended += solver.advance()
    return sorted(ended, key=lambda s: s.chain)


def test_every_end_is_a_minimum():
    """Solves end where the cost is flat, and a peer that begins there stays."""
    starts = np.random.default_rng(0).uniform(-5, 5, (60, 2))
    for solve in solved(rippled(), starts):
        assert solve.status == "converged"
        peer = least_squares(lambda x: np.asarray(waves(jnp.asarray(x))), solve.theta, bounds=(-5, 5))
        assert np.abs(peer.x - solve.theta).max() < 2e-4  # where residuals stay, both converge linearly
        assert solve.cost < peer.cost * (1 + 1e-6) + 1e-12


def test_solves_do_not_depend_on_the_batch():
    """The result of a solve does not depend on the batch size or the number of threads, to the last bit."""
    starts = np.random.default_rng(1).uniform(-5, 5, (40, 2))
    wide = solved(rippled(), starts)
    for other in (solved(rippled(), starts, capacity=3), solved(rippled(threads=2), starts)):
        for a, b in zip(wide, other, strict=True):
            np.testing.assert_array_equal(a.theta, b.theta)
            assert (a.cost, a.iterations, a.status) == (b.cost, b.iterations, b.status)


def test_bounds_hold():
    """With the truth outside of the box, the solve ends on the bound, at the best point of it."""
    line = np.array([[1.0, 0.9], [0.9, 1.0], [0.3, 0.2]])
    target = np.array([2.0, 1.0, 0.0])
    objective = Residuals(lambda x: jnp.asarray(line) @ x - target, np.zeros(2), np.ones(2))
    (end,) = solved(objective, [[0.1, 0.9]], options=LevenbergMarquardtOptions(ftol=1e-14))
    peer = least_squares(lambda x: line @ x - target, [0.5, 0.5], bounds=(0, 1), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(end.theta, peer.x, atol=1e-6)
    assert end.theta[0] == 1.0


def test_failures_are_values():
    """A start where nothing is finite ends at once; a limit of iterations is said to be one."""
    objective = Residuals(lambda x: jnp.log(x), np.full(1, -1.0), np.full(1, 20.0))
    bad, good = solved(objective, [[-0.5], [10.0]])
    assert (bad.status, bad.cost, bad.iterations) == ("not finite", np.inf, 1)
    assert good.status == "converged"
    np.testing.assert_allclose(good.theta, 1.0, atol=1e-7)
    (short,) = solved(objective, [[10.0]], options=LevenbergMarquardtOptions(iterations=2))
    assert short.status == "limit"


def test_a_coordinate_that_nothing_depends_on_stays():
    """A column of zeros does not make the others fail."""
    objective = Residuals(lambda x: x[:1] - 0.5, np.zeros(2), np.ones(2))
    (end,) = solved(objective, [[0.9, 0.7]])
    np.testing.assert_allclose(end.theta, [0.5, 0.7], atol=1e-7)


def test_equations_are_those_of_the_residual():
    """Cost, gradient and matrix against the residual's own derivatives."""
    theta = np.random.default_rng(2).uniform(-5, 5, (5, 2))
    found = rippled().equations(theta)
    for k, x in enumerate(theta):
        r, J = np.asarray(waves(jnp.asarray(x))), np.asarray(jax.jacfwd(waves)(jnp.asarray(x)))
        np.testing.assert_allclose(found.cost[k], r @ r / 2, rtol=1e-13)
        np.testing.assert_allclose(found.gradient[k], J.T @ r, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.matrix[k], J.T @ J, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(rippled().costs(theta), found.cost)


def test_a_start_outside_of_the_bounds_is_refused():
    """The message names both."""
    with pytest.raises(TruesimError, match=r"start .*7.0.* must lie between"):
        Residuals(waves, np.zeros(2), np.ones(2), np.array([7.0, 0.5]))
