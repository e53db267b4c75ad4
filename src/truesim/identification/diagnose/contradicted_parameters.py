"""Test of fixed parameters: whether the residuals of a fit that looks right contradict them.

Free parameters make up for a wrong mass or a wrong gain of a servo: others take values that are wrong too, and the
residual stays close to the noise, where `score_test` is not run. Rao's score test needs no such residual, only the
gradient of the cost by the fixed parameters. Its statistic is a chi-square if they are right; the variance of the
gradient is that of noise with memory, which would otherwise pass for a wrong parameter. So would the error of a long
time step: a group must be contradicted without it as well, by the gradient that half the step extrapolates to. One
Gauss-Newton step tells what the free parameters would become if the most contradicted group were free as well.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.timing import part
from truesim.core.typing import Bool, Float, Int
from truesim.identification.diagnose.covariance import Uncertainty, by_window, profiled_jacobian
from truesim.identification.diagnose.fixed_parameters import FixedGroup, fixed_groups, with_room
from truesim.identification.diagnose.halved_step import simulate_halved
from truesim.identification.diagnose.noise_memory import NoiseMemory
from truesim.identification.diagnose.stamps import stamp_jitter
from truesim.identification.diagnose.trial_problem import TrialProblem, trial, widen
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.levenberg_marquardt import Ending, eliminate_states
from truesim.identification.solve.normal_equations import huber_weights, normal_equations, point, scaled_residual
from truesim.identification.solve.solution import Solution
from truesim.math.chi_square import chi_square_tail

TESTED = ("kp", "kv", "gain", "delay", "damping", "frictionloss", "armature", "stiffness", "mass", "time_scale")
"""Fields that are tested: those that robot files often have wrong."""
CHANCE = 1e-6
"""Probability with which the test finds right parameters wrong. Larger finds smaller errors."""
CONTRADICTION_STEPS = 4000
"""Simulator steps in all tested windows together, approximately. Larger is slower and finds smaller errors."""
KEPT_TILES = 16
"""Tiles up to which derivatives, which are needed twice, are kept. Larger needs more memory."""
PRIOR = 2.0
"""Standard deviation of the coordinates of a group that is freed: a factor of seven either way. Larger trusts its
derivatives further."""
AT_BOUND = 1e-6
"""Distance from a bound, in coordinates, below which a free parameter counts as fixed."""
DISTINCT = 1e-3
"""Fraction of the information on a fixed parameter that must be left beside the free ones; a damping beside a velocity
gain leaves none. Larger tests fewer."""


@dataclasses.dataclass(frozen=True)
class Contradiction:
    """The group of fixed parameters that the residuals contradict most."""

    pattern: str
    """Pattern for `--free`."""
    statistic: float
    """Rao's score, a chi-square if the parameters are right."""
    count: int
    """Number of tested coordinates, the mean of the statistic."""
    shift: Float[np.ndarray, " solved"]
    """Change of the coordinates of the free parameters if the group is freed, by one Gauss-Newton step; the largest
    one where other groups are contradicted too."""
    most_sensitive: str
    """The free parameter that changes most, in standard deviations."""
    change: float
    """Its change in standard deviations."""
    others: tuple[str, ...] = ()
    """Other groups that are contradicted, the most contradicted first."""

    @property
    def significant(self) -> bool:
        """True if the logs contradict the parameters."""
        return chi_square_tail(self.count, self.statistic) < CHANCE


class _Score(NamedTuple):
    """Gradient and curvature of the cost by free and fixed parameters, initial states eliminated."""

    H: Float[np.ndarray, "size size"]
    g: Float[np.ndarray, " size"]
    J: Float[np.ndarray, "pieces samples rows size"]
    noise: NoiseMemory
    jitter: Float[np.ndarray, "pieces samples rows"]
    """Scaled standard deviation of each residual by jitter of the stamps, which the rows of a sample share."""
    free: Int[np.ndarray, " free"]
    """Coordinates that are free and not at a bound."""
    halved: Callable[[], Float[np.ndarray, " size"]]
    """Computes the gradient with half the time step."""


def find_contradiction(solution: Solution, found: Uncertainty) -> Contradiction | None:
    """The group that is contradicted most, significant or not; none if the fit did not converge.

    Args:
        solution: The solved problem.
        found: Covariance of the estimates, with the memory of the noise.
    """
    problem = solution.problem
    if found.noise is None or not solution.differentiable or solution.ending is not Ending.CONVERGED:
        return None
    if problem.simulator.constraint_contact is not None or problem.blueprint is not None or not len(problem.solved):
        return None  # as in `score_test`: no kernel of other parameters; and networks may take the place of masses
    groups = [g for g in fixed_groups(problem) if g.pattern.rpartition(".")[2] in TESTED]
    if not groups:
        return None
    with part("testing"), jax.enable_x64(True), threadpool_limits(1):
        score = _score(solution, found.noise, groups)
        places = np.cumsum([problem.solved.size, *(g.size for g in groups)])
        tested = [
            _test(score, solution, found, group, np.arange(*at))
            for group, at in zip(groups, itertools.pairwise(places), strict=True)
        ]
        if any(t is not None and t.significant for t in tested) and problem.simulator.contact is None:
            exact = score._replace(g=2 * score.halved() - score.g)  # integration errors are of first order
            again = [
                _test(exact, solution, found, group, np.arange(*at))
                for group, at in zip(groups, itertools.pairwise(places), strict=True)
            ]
            tested = [
                None if one is None or other is None else min(one, other, key=_standard_score)
                for one, other in zip(tested, again, strict=True)
            ]
    ordered = sorted((t for t in tested if t is not None), key=_standard_score, reverse=True)
    if not ordered or not ordered[0].significant:
        return ordered[0] if ordered else None
    best, *others = [t for t in ordered if t.significant]
    reach = np.max([np.abs(t.shift) for t in (best, *others)], axis=0)
    return dataclasses.replace(best, shift=reach, others=tuple(t.pattern for t in others))


def _standard_score(test: Contradiction) -> float:
    """Statistic as a standard normal number (Wilson and Hilferty), which compares groups of different sizes."""
    variance = 2 / (9 * test.count)
    return float((np.cbrt(test.statistic / test.count) - 1 + variance) / np.sqrt(variance))


def _score(solution: Solution, noise: NoiseMemory, groups: Sequence[FixedGroup]) -> _Score:
    """Derivatives by the groups on some windows."""
    segments, windows, across = _choose_windows(solution)
    wide = _with_groups(solution, groups, segments)
    problem, at, weights = wide.problem, wide.at, wide.weights
    system = eliminate_states(normal_equations(problem, at, weights, windows))
    low, high = solution.problem.solved.bounds
    theta = solution.theta[: solution.problem.solved.size]
    free = np.flatnonzero((theta - low > AT_BOUND) & (high - theta > AT_BOUND))
    w = huber_weights(scaled_residual(problem, at, weights), weights.threshold)
    J = profiled_jacobian(wide, system.sensitivity()[windows.window, windows.place], w)
    jitter = stamp_jitter(problem, at.simulated, weights.noise).deviations * w / weights.noise

    def halved() -> Float[np.ndarray, " size"]:
        every = simulate_halved(solution.problem, solution.theta, solution.nodes)
        finer = dataclasses.replace(at, simulated=jax.tree.map(lambda x: x[segments], every))
        return eliminate_states(normal_equations(problem, finer, weights, windows)).gradient

    jitter = by_window(across, jitter)
    return _Score(system.corner, system.gradient, by_window(across, J), noise, jitter, free, halved)


def _variance(score: _Score, J: Float[np.ndarray, "pieces samples rows size"]) -> Float[np.ndarray, "size size"]:
    """Covariance of the gradient J^T r by the noise, and by jitter of the stamps."""
    shared = np.einsum("psrk,psr->psk", J, score.jitter).reshape(-1, J.shape[-1])
    return score.noise.information(J) + shared.T @ shared


def _test(
    score: _Score, solution: Solution, found: Uncertainty, group: FixedGroup, fixed: Int[np.ndarray, " fixed"]
) -> Contradiction | None:
    """Rao's score of a group, with the free parameters eliminated; none if it cannot be told from them."""
    H, g, J, free = score.H, score.g, score.J, score.free
    follows = np.linalg.lstsq(H[np.ix_(free, free)], H[np.ix_(free, fixed)], rcond=1e-12)[0]
    gradient = g[fixed] - follows.T @ g[free]
    alone = np.diag(_variance(score, J[..., fixed]))
    variance = _variance(score, J[..., fixed] - J[..., free] @ follows)
    distinct = (np.diag(variance) > DISTINCT * alone) & ~_outwards(group, gradient)
    if not distinct.any() or not len(free):
        return None
    chosen = np.ix_(distinct, distinct)
    statistic = float(gradient[distinct] @ np.linalg.lstsq(variance[chosen], gradient[distinct], rcond=1e-12)[0])
    if not np.isfinite(statistic):
        return None
    own = fixed[distinct]
    curvature = H[np.ix_(own, own)] - follows.T[distinct] @ H[np.ix_(free, own)] + np.eye(len(own)) / PRIOR**2
    shift = np.zeros(solution.problem.solved.size)
    shift[free] = follows[:, distinct] @ np.linalg.solve(curvature, gradient[distinct])
    std = np.sqrt(np.maximum(np.diag(found.coordinates), 1e-300))
    most = int(np.argmax(np.abs(shift) / std))
    change = float(shift[most] / std[most])
    return Contradiction(group.pattern, statistic, len(own), shift, _name(solution, most), change)


def _outwards(group: FixedGroup, gradient: Float[np.ndarray, " fixed"]) -> Bool[np.ndarray, " fixed"]:
    """True for coordinates at a bound, such as a friction of zero, that would leave it."""
    z = np.concatenate([p.transform.coordinates(p.start) for p in group.parameters])
    low, high = (np.concatenate([p.bounds()[k] for p in group.parameters]) for k in (0, 1))
    return ((z - low < AT_BOUND) & (gradient > 0)) | ((high - z < AT_BOUND) & (gradient < 0))


def _with_groups(solution: Solution, groups: Sequence[FixedGroup], segments: Int[np.ndarray, " some"]) -> Solution:
    """The solution as a point of the problem in which groups are free too, on some segments."""
    problem, own = solution.problem, solution.problem.solved.size
    added = tuple(p for group in groups for p in group.parameters)
    wide = widen(problem, with_room(problem, list(groups)), added)
    freed = len(problem.solved) + np.arange(len(added))
    tested: TrialProblem = trial(wide, problem.solved, freed, segments)
    start = [p.transform.coordinates(p.start) for p in added]
    theta: Float[np.ndarray, " size"] = np.concatenate([solution.theta[:own], *start, solution.theta[own:]])
    at = point(tested, theta, solution.nodes.select(segments), KEPT_TILES)
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
    some = min(count, max(2, CONTRADICTION_STEPS // max(steps, 1)))
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
