"""Normal equations by tiles of segments: the same numbers in less memory."""

import tracemalloc

import numpy as np
import pytest

from tests.identification.recorded import arm_log
from truesim.identification.diagnose import trial_problem
from truesim.identification.diagnose.covariance import uncertainty
from truesim.identification.solve import normal_equations as equations
from truesim.identification.solve.levenberg_marquardt import Ending
from truesim.identification.solve.normal_equations import ResidualWeights, linearize, normal_equations, point
from truesim.identification.solve.solution import Solution

SEGMENT_BYTES = (10 * 2 + 4) * 8 * 8
"""Derivatives of a segment of the arm: 10 intervals of 2 rows, 4 numbers of its end state, by 8 unknowns."""


@pytest.fixture(scope="module")
def long(arm_of):
    """Problem, coordinates and initial states of two long logs, weights, and windows of whole logs."""
    problem = arm_of(arm_log(20.0, name="one"), arm_log(12.0, seed=1, name="two"))
    rng = np.random.default_rng(0)
    theta = problem.parameters.start + 0.1 * rng.normal(size=4)
    weights = ResidualWeights(np.array([1e-3, 2e-3]), np.array([1e-3, 2e-3, 0.1, 0.2]), 2.0)
    return problem, theta, problem.initial_nodes(), weights, problem.layout.windows(problem.layout.size)


def use_tiles_of(monkeypatch, segments):
    """Hold the derivatives of so many segments at a time."""
    monkeypatch.setattr(equations, "TILE_BYTES", segments * SEGMENT_BYTES)


def equations_of(long):
    """Normal equations at a new point."""
    problem, theta, nodes, weights, windows = long
    return normal_equations(problem, point(problem, theta, nodes), weights, windows)


def test_tiles_change_no_number(long, monkeypatch):
    """Tiles that end within a log, and a last one that is smaller."""
    whole = equations_of(long)
    use_tiles_of(monkeypatch, 7)
    assert point(*long[:3]).sensitivity is None
    by_tile = equations_of(long)
    for expected, found in zip((*whole.chains, whole.corner, whole.gradient), _arrays(by_tile), strict=True):
        assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()
    assert abs(by_tile.cost / whole.cost - 1) < 1e-12


def _arrays(found):
    return *found.chains, found.corner, found.gradient


def test_intervals_are_the_same(long, monkeypatch):
    """The covariance takes its derivatives from tiles too."""
    problem, theta, nodes, weights, windows = long
    found = []
    for segments in (problem.layout.size, 7):
        use_tiles_of(monkeypatch, segments)
        noise = np.array([1e-3, 1e-3])
        solution = Solution(problem, theta, nodes, weights, windows, sensor_noise=noise, ending=Ending.CONVERGED)
        found.append(uncertainty(solution).coordinates)
    assert np.abs(found[1] - found[0]).max() < 1e-11 * np.abs(found[0]).max()


def test_only_a_tile_of_derivatives_is_held(long, monkeypatch):
    """The peak does not grow with the number of segments, but for a row of numbers of each."""
    problem, theta, nodes, weights, _ = long
    segments = 20
    count = problem.layout.size
    use_tiles_of(monkeypatch, segments)
    w = np.ones(problem.layout.valid.shape)
    at = point(problem, theta, nodes)
    list(zip(linearize(problem, at, weights, w), range(2), strict=False))  # compile
    tracemalloc.start()
    seen = 0
    for tile in linearize(problem, at, weights, w):
        seen += tile.residual.shape[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == count > 20 * segments
    assert peak < 10 * segments * SEGMENT_BYTES + w.nbytes < count * SEGMENT_BYTES / 2


def test_solving_holds_less_than_the_derivatives(long, monkeypatch):
    """Points and normal equations of a long log need less than with the derivatives of all segments."""
    peaks = []
    for segments in (long[0].layout.size, 20):
        use_tiles_of(monkeypatch, segments)
        equations_of(long)
        tracemalloc.start()
        held = equations_of(long)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del held
    assert peaks[1] < peaks[0] - 2 * long[0].layout.size * SEGMENT_BYTES


def test_trials_by_parts(long, monkeypatch):
    """Finite differences of few segments at a time, and values without derivatives, are the same."""
    problem, theta, nodes, *_ = long
    some = np.arange(40)
    wide = trial_problem.widen(problem, problem.simulator, ())
    tried = trial_problem.trial(wide, problem.solved, np.zeros(0, int), some)
    simulated, whole = tried.differentiate(theta, nodes.select(some))
    monkeypatch.setattr(trial_problem, "VARIANTS_BYTES", 1 << 14)
    _, by_part = tried.differentiate(theta, nodes.select(some))
    np.testing.assert_array_equal(by_part.residual, whole.residual)
    np.testing.assert_array_equal(by_part.state, whole.state)
    np.testing.assert_array_equal(tried.simulate(theta, nodes.select(some)).residual, simulated.residual)
    exact = problem.select(some).differentiate(theta, nodes.select(some))[1]
    assert np.abs(whole.residual - exact.residual).max() < 1e-4 * np.abs(exact.residual).max()
