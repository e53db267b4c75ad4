"""Test of fixed masses: whether the residuals of a fit that looks right contradict them.

Free parameters make up for a wrong mass: gains, friction and armature take values that are too large in proportion, and
the residual stays close to the noise, where `score_test` is not run. Rao's score test needs no such residual, only the
gradient of the cost by the masses. Its statistic is a chi-square if the masses are right; the variance of the gradient
is that of noise with memory, which would otherwise pass for a wrong mass.
"""

import dataclasses

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core import libraries
from truesim.core.timing import part
from truesim.core.typing import Float, Int
from truesim.identification.diagnose.covariance import Uncertainty, by_window, profiled_jacobian
from truesim.identification.diagnose.fixed_parameters import FixedGroup, fixed_groups, with_room
from truesim.identification.diagnose.trial_problem import TrialProblem, trial, widen
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.levenberg_marquardt import Ending, eliminate_states
from truesim.identification.solve.normal_equations import huber_weights, normal_equations, point, scaled_residual
from truesim.identification.solve.solution import Solution

PATTERN = "bodies/*.mass"
CHANCE = 1e-6
"""Probability with which the test finds right masses wrong. Larger finds smaller errors."""
MASS_TEST_STEPS = 4000
"""Simulator steps in all tested windows together, approximately. Larger is slower and finds smaller errors."""
AT_BOUND = 1e-6
"""Distance from a bound, in coordinates, below which a free parameter counts as fixed."""
CHANGE = 0.01
"""Relative change of all masses for which the change of the estimates is reported."""


@dataclasses.dataclass(frozen=True)
class MassTest:
    """Result of the test."""

    statistic: float
    """Rao's score, a chi-square if the masses are right."""
    count: int
    """Number of fixed masses, the mean of the statistic."""
    most_sensitive: str
    """The free parameter that changes most, in standard deviations, with all masses together."""
    change: float
    """Its change in standard deviations if all fixed masses change by one percent."""

    @property
    def contradicted(self) -> bool:
        """True if the logs contradict the masses."""
        return bool(libraries.scipy.special.chdtrc(self.count, self.statistic) < CHANCE)


def mass_test(solution: Solution, found: Uncertainty) -> MassTest | None:
    """Test the fixed masses; none if there are none, or if the fit did not converge.

    Args:
        solution: The solved problem.
        found: Covariance of the estimates, with the memory of the noise.
    """
    problem = solution.problem
    if found.noise is None or not solution.differentiable or solution.ending is not Ending.CONVERGED:
        return None
    if problem.simulator.constraint_contact is not None or problem.blueprint is not None or not len(problem.solved):
        return None  # as in `score_test`: no kernel of other parameters; and networks may take the place of masses
    groups = [g for g in fixed_groups(problem) if g.pattern == PATTERN]
    if not groups:
        return None
    with part("testing"), jax.enable_x64(True), threadpool_limits(1):
        return _test(solution, found, groups[0])


def _test(solution: Solution, found: Uncertainty, group: FixedGroup) -> MassTest | None:
    """Rao's score of a group on some windows, with the free parameters and initial states eliminated."""
    assert found.noise is not None, "checked by the caller"
    segments, windows, across = _choose_windows(solution)
    own, wide = solution.problem.solved.size, _with_group(solution, group, segments)
    problem, at, weights = wide.problem, wide.at, wide.weights
    system = eliminate_states(normal_equations(problem, at, weights, windows))
    low, high = solution.problem.solved.bounds
    theta = solution.theta[:own]
    free = np.flatnonzero((theta - low > AT_BOUND) & (high - theta > AT_BOUND))
    fixed = np.arange(own, own + group.size)
    H, g = system.corner, system.gradient
    follows = np.linalg.lstsq(H[np.ix_(free, free)], H[np.ix_(free, fixed)], rcond=1e-12)[0]
    w = huber_weights(scaled_residual(problem, at, weights), weights.threshold)
    J = profiled_jacobian(wide, system.sensitivity()[windows.window, windows.place], w)
    across_windows = found.noise.information(by_window(across, J[..., fixed] - J[..., free] @ follows))
    score = g[fixed] - follows.T @ g[free]
    statistic = float(score @ np.linalg.lstsq(across_windows, score, rcond=1e-12)[0])
    if not np.isfinite(statistic) or not len(free):
        return None
    std = np.sqrt(np.maximum(np.diag(found.coordinates), 1e-300))[free]
    moves = np.abs(follows @ np.full(group.size, CHANGE)) / std  # masses have logarithmic coordinates
    most = int(np.argmax(moves))
    return MassTest(statistic, group.size, _name(solution, int(free[most])), float(moves[most]))


def _with_group(solution: Solution, group: FixedGroup, segments: Int[np.ndarray, " some"]) -> Solution:
    """The solution as a point of the problem in which a group is free too, on some segments."""
    problem, own = solution.problem, solution.problem.solved.size
    wide = widen(problem, with_room(problem, [group]), group.parameters)
    freed = len(problem.solved) + np.arange(len(group.parameters))
    tested: TrialProblem = trial(wide, problem.solved, freed, segments)
    start = [p.transform.coordinates(p.start) for p in group.parameters]
    theta: Float[np.ndarray, " size"] = np.concatenate([solution.theta[:own], *start, solution.theta[own:]])
    at = point(tested, theta, solution.nodes.select(segments))
    return Solution.at_point(
        tested,
        at,
        weights=solution.weights,
        windows=solution.windows,
        sensor_noise=solution.sensor_noise,
        ending=solution.ending,
    )


def _choose_windows(solution: Solution) -> tuple[Int[np.ndarray, " some"], Windows, Windows]:
    """Segments of the tested windows, their windows, and the windows through which noise goes on."""
    layout, windows = solution.problem.layout, solution.windows
    count, longest = windows.shape
    steps = longest * layout.intervals.duration.shape[1] * solution.problem.substeps
    some = min(count, max(2, MASS_TEST_STEPS // max(steps, 1)))
    if some == count:
        return np.arange(layout.size), windows, layout.windows(layout.size)
    chosen = np.unique(np.linspace(0, count - 1, some).astype(int))
    segments = np.flatnonzero(np.isin(windows.window, chosen))
    own = Windows(np.searchsorted(chosen, windows.window[segments]), windows.place[segments])
    return segments, own, own


def _name(solution: Solution, coordinate: int) -> str:
    """Name of the parameter to which a coordinate belongs."""
    parameters = solution.problem.solved
    places = zip(parameters, parameters.slices(), strict=True)
    return next(p.name for p, at in places if at.start <= coordinate < at.stop)
