"""Score test over all parameters that are not free: which of them would explain the residual that remains.

Each group of fixed parameters of one kind, such as `actuators/*.kp`, is freed together with the free ones. Rao's score
(the decrease of the cost that the gradient predicts) screens the groups. Those that pass, and the usual suspects, are
solved for on some windows of the logs, since a number that is wrong by a factor of twenty may not show in a gradient.
The best group is kept, and further groups are tested on top of it.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.timing import part
from truesim.core.typing import Float, Int
from truesim.identification.diagnose.fixed_parameters import FixedGroup, fixed_groups, with_room
from truesim.identification.diagnose.stamps import stamp_jitter
from truesim.identification.diagnose.trial_problem import TrialProblem, trial, widen
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.levenberg_marquardt import Outcome, StageOptions, eliminate_states, solve
from truesim.identification.solve.noise import initial_defect_std
from truesim.identification.solve.normal_equations import ResidualWeights, normal_equations, point
from truesim.identification.solve.solution import Solution
from truesim.physics.parameters import Parameter
from truesim.physics.parameters.transforms import Positive

TESTED_WINDOW = 0.5
"""Length of the windows on which groups are tested [s]: initial states of shorter ones would hide what is wrong."""
TESTED_STEPS = 2000
"""Simulator steps in all windows together, at most. Larger is slower and more exact; half as many do not find wrong
damping of an arm with 70 free inertial parameters, which make up for it."""
CONTINUITY = 3e-2
"""Standard deviation of defects within a window, relative to the roughness of the measured states."""
USUAL_FIELDS = ("kp", "delay", "frictionloss", "damping", "armature", "mass")
"""Fields whose groups are solved for even if the gradient is small: those that robot files often have wrong."""
SCREENED_FRACTION = 0.1
"""Fraction of the residual that a gradient must predict for any other group to be solved for. Larger tests fewer."""
MIN_EXPLAINED = 0.05
"""Smallest fraction of the residual for which a group is reported. Larger reports fewer."""
SQUARES_PER_COORDINATE = 10.0
"""Decrease of the sum of squares, in units of the residual's variance, that a coordinate must bring to count; one
coordinate brings one by chance, and more where residuals are correlated in time. Larger reports fewer."""
SCALES = (-3.0, -1.5, 1.5)
"""Logarithms of factors by which positive parameters are changed before they are solved for."""
FIRST_ITERATIONS, TRIAL_ITERATIONS = 4, 10
"""Iterations from every start, and further ones from the best."""
MAX_ROUNDS = 3
"""Groups that are freed together at most."""
ENOUGH = 0.95
"""Explained fraction at which no further group is tested."""


@dataclasses.dataclass(frozen=True)
class Alternative:
    """A group of fixed parameters that would explain much of the residual if it were free."""

    pattern: str
    """Pattern for `--free`."""
    explained: float
    """Fraction of the sum of squares beyond sensor noise that disappears with it, and with those before it."""
    after: tuple[str, ...] = ()
    """Patterns that are freed as well; none for a group that is freed alone."""
    fixed: tuple[float, float] = (np.nan, np.nan)
    """Smallest and largest value that the fit has kept [SI units]."""
    found: tuple[float, float] = (np.nan, np.nan)
    """Smallest and largest value with which the residual disappears [SI units]."""
    unit: str = ""
    shift: Float[np.ndarray, " solved"] = dataclasses.field(default_factory=lambda: np.zeros(0))
    """Change of the coordinates of the free parameters from their estimates, if the group is freed."""


def alternative_document(alternative: Alternative) -> dict[str, Any]:
    """A group as plain values for JSON, without its effect on single coordinates."""
    fields = dataclasses.asdict(alternative)
    return {name: value for name, value in fields.items() if name != "shift"}


def read_alternative(document: Mapping[str, Any]) -> Alternative:
    """The group of a document from `alternative_document`."""
    fixed, found = ([np.nan if x is None else float(x) for x in document[name]] for name in ("fixed", "found"))
    return Alternative(
        pattern=document["pattern"],
        explained=document["explained"],
        after=tuple(document["after"]),
        fixed=(fixed[0], fixed[1]),
        found=(found[0], found[1]),
        unit=document["unit"],
    )


def score_test(solution: Solution) -> tuple[Alternative, ...]:
    """Groups of fixed parameters that explain the residual, each with those before it, best first; then single ones.

    Args:
        solution: The solved problem.
    """
    if solution.problem.simulator.constraint_contact is not None:
        return ()  # the file's contact is simulated by routines, which have no kernel of all parameters at once
    groups = fixed_groups(solution.problem)
    if not groups or not solution.differentiable or not len(solution.problem.solved):
        return ()
    with part("testing"), jax.enable_x64(True), threadpool_limits(1), np.errstate(over="ignore", invalid="ignore"):
        return _Test(solution, groups).run()  # trials that diverge overflow, and lose by their cost


def largest_shift(alternatives: Sequence[Alternative], size: int, threshold: float) -> Float[np.ndarray, " solved"]:
    """Largest distance of the estimates to those of the models that explain the residual, in coordinates.

    Args:
        alternatives: Groups that were tested.
        size: Number of coordinates.
        threshold: Fraction that a group must explain to count.
    """
    shifts = [np.abs(a.shift) for a in alternatives if a.explained >= threshold]
    return np.max([np.zeros(size), *shifts], axis=0)


class _Test:
    """Trials of groups on the same segments."""

    def __init__(self, solution: Solution, groups: list[FixedGroup]):
        problem = solution.problem
        every = tuple(p for g in groups for p in g.parameters)
        self.solution, self.groups, self.own = solution, groups, len(problem.solved)
        self.wide = widen(problem, with_room(problem, groups), every, level=1)
        self.segments, self.windows = _choose_windows(problem)
        starts = self.own + np.cumsum([0, *(len(g.parameters) for g in groups)])
        self.members = [np.arange(a, b) for a, b in itertools.pairwise(starts)]
        self.nodes = solution.nodes.select(self.segments)
        self.weights = ResidualWeights(solution.sensor_noise, CONTINUITY * initial_defect_std(problem))
        exact, theta = problem.select(self.segments), solution.theta
        for _ in range(2):  # the second time with the noise of the residuals that the first has left
            refitted = self._solve(exact, (theta,))
            noise, theta = _root_mean_squares(exact, refitted), refitted.at.theta
            ratio = max(1.0, float(np.median(noise / solution.sensor_noise)))
            defects = CONTINUITY * ratio * initial_defect_std(problem)
            self.weights = ResidualWeights(np.maximum(noise, solution.sensor_noise), defects)
        jitter = stamp_jitter(problem, solution.at.simulated, solution.weights.noise).squares[self.segments]
        expected = exact.layout.valid * (solution.sensor_noise**2 + jitter)
        self.floor = float((expected / self.weights.noise**2).sum())
        self.first = self._solve(self._problem(()), (theta,))
        self.before = 2 * self.first.cost

    def run(self) -> tuple[Alternative, ...]:
        """Test single groups, then further ones on top of the best."""
        if not self.before > self.floor:
            return ()
        kept: tuple[int, ...] = ()
        chain: list[Alternative] = []
        single: list[Alternative] = []
        last, tested, already = self.first, self._screen(), 0.0
        while len(kept) < MAX_ROUNDS:
            trials = {k: self._refit((*kept, k), (self._beside(kept, k, last),), last) for k in tested if k not in kept}
            if not kept and max(map(self._explained, trials.values()), default=1.0) < ENOUGH:
                trials = {k: self._from_scaled(k, outcome) for k, outcome in trials.items()}
            scores = {k: self._explained(outcome) for k, outcome in trials.items()}
            chances = {k: s - self._chance((*kept, k)) for k, s in scores.items()}
            best = max(chances, key=lambda k: chances[k], default=None)
            if best is None or chances[best] < already + MIN_EXPLAINED:
                break
            already = chances[best]
            if not kept:
                others = [k for k in chances if k != best and chances[k] > MIN_EXPLAINED]
                others.sort(key=lambda k: -scores[k])
                single = [self._alternative((k,), trials[k], scores[k]) for k in others]
            kept, last = (*kept, best), trials[best]
            chain.append(self._alternative(kept, last, scores[best]))
            if scores[best] > ENOUGH:
                break
            tested = [k for k in tested if _field(self.groups[k]) in USUAL_FIELDS]
        return (*chain, *single)

    def _problem(self, kept: Sequence[int]) -> TrialProblem:
        freed = np.concatenate([np.zeros(0, int), *(self.members[k] for k in kept)])
        return trial(self.wide, self.solution.problem.solved, freed, self.segments)

    def _screen(self) -> list[int]:
        """Groups to solve for: the usual ones, and those whose score is high."""
        every = tuple(range(len(self.groups)))
        problem = self._problem(every)
        at = point(problem, self._theta(every, self.first.at.theta), self.first.at.nodes)
        found = eliminate_states(normal_equations(problem, at, self.weights, self.windows))
        places = problem.solved.slices()
        own = np.arange(self.solution.problem.solved.size)
        base = _decrease(found.corner, found.gradient, own)
        passed = []
        for k, group in enumerate(self.groups):
            at_group = [np.arange(places[m].start, places[m].stop) for m in self.members[k]]
            gain = _decrease(found.corner, found.gradient, np.concatenate([own, *at_group])) - base
            usual = _field(group) in USUAL_FIELDS
            if usual or gain / (self.before - self.floor) > SCREENED_FRACTION:
                passed.append(k)
        return passed

    def _theta(self, kept: Sequence[int], theta: np.ndarray, moved: np.ndarray | None = None) -> np.ndarray:
        """Coordinates of a trial: free parameters, start values of its groups, weights of networks."""
        own = self.solution.problem.solved.size
        groups = [p.transform.coordinates(p.start) for k in kept for p in self.groups[k].parameters]
        added = np.concatenate([np.zeros(0), *groups]) if moved is None else moved
        return np.concatenate([theta[:own], added, self.solution.theta[own:]])

    def _beside(self, kept: tuple[int, ...], k: int, last: Outcome) -> np.ndarray:
        """Start of a trial: the best so far, with the file's values of one more group."""
        own, trained = self.solution.problem.solved.size, self.solution.problem.trained.size
        end = len(last.at.theta) - trained
        still = np.concatenate([p.transform.coordinates(p.start) for p in self.groups[k].parameters])
        return self._theta((*kept, k), last.at.theta, np.concatenate([last.at.theta[own:end], still]))

    def _from_scaled(self, k: int, outcome: Outcome) -> Outcome:
        """The trial of a group, or a better one that starts with the file's values times common factors."""
        parameters = self.groups[k].parameters
        if not all(np.size(p.start) == 1 and np.all(p.start > 0) for p in parameters):
            return outcome
        begin = self.solution.problem.parameters.start
        scaled = (np.concatenate([_scaled(p, s) for p in parameters]) for s in SCALES)
        found = self._refit((k,), tuple(self._theta((k,), begin, z) for z in scaled))
        return min(outcome, found, key=lambda o: o.cost)

    def _refit(self, kept: tuple[int, ...], starts: tuple[np.ndarray, ...], last: Outcome | None = None) -> Outcome:
        """Solve a trial, from where another ended if it is given; if its cost hardly falls, not to the end."""
        problem = self._problem(kept)
        if last is not None and last.at.sensitivity is not None:
            problem.begin(last.at.sensitivity, starts[0])
        return self._solve(problem, starts, (1 - MIN_EXPLAINED) * self.first.cost)

    def _solve(self, problem: Problem, starts: tuple[np.ndarray, ...], promising: float = np.inf) -> Outcome:
        """Solve for some iterations from several starts, and for more from the best if its cost is promising."""
        weights, windows = self.weights, self.windows
        low, high = problem.solved.bounds
        size = problem.solved.size
        outcomes = []
        for theta in starts:
            inside = np.concatenate([np.clip(theta[:size], low, high), theta[size:]])
            options = StageOptions(FIRST_ITERATIONS, gain=1e-2, damping=1e-3, decrease=1e-3)
            outcomes.append(solve(problem, point(problem, inside, self.nodes), weights, windows, options))
        best = min(outcomes, key=lambda o: o.cost)
        if best.cost > promising:
            return best
        options = StageOptions(TRIAL_ITERATIONS, gain=1e-2, damping=1e-3, decrease=1e-3)
        return solve(problem, best.at, weights, windows, options)

    def _explained(self, outcome: Outcome) -> float:
        return (self.before - 2 * outcome.cost) / (self.before - self.floor)

    def _chance(self, kept: Sequence[int]) -> float:
        """Fraction that so many coordinates may explain without being wrong."""
        size = sum(self.groups[k].size for k in kept)
        return SQUARES_PER_COORDINATE * size / (self.before - self.floor)

    def _alternative(self, kept: tuple[int, ...], outcome: Outcome, explained: float) -> Alternative:
        group = self.groups[kept[-1]]
        problem, own = self._problem(kept), self.solution.problem.solved.size
        values, _ = problem.values(outcome.at.theta)
        count = sum(np.size(p.start) for p in group.parameters)
        fixed = np.concatenate([np.ravel(p.start) for p in group.parameters])
        found = values[len(values) - count :]
        return Alternative(
            pattern=group.pattern,
            explained=min(1.0, float(explained)),  # initial states absorb some of the noise that is expected
            after=tuple(self.groups[k].pattern for k in kept[:-1]),
            fixed=(float(fixed.min()), float(fixed.max())),
            found=(float(found.min()), float(found.max())),
            unit=group.parameters[0].unit,
            shift=outcome.at.theta[:own] - self.solution.theta[:own],
        )


def _choose_windows(problem: Problem) -> tuple[Int[np.ndarray, " some"], Windows]:
    """Segments of windows at regular places in the logs, and their windows."""
    layout = problem.layout
    every = layout.windows(max(1, round(TESTED_WINDOW / layout.seconds)))
    count, longest = every.shape
    steps = longest * layout.intervals.duration.shape[1] * problem.substeps
    chosen = np.unique(np.linspace(0, count - 1, min(count, max(2, TESTED_STEPS // steps))).astype(int))
    segments = np.flatnonzero(np.isin(every.window, chosen))
    return segments, Windows(np.searchsorted(chosen, every.window[segments]), every.place[segments])


def _root_mean_squares(problem: Problem, outcome: Outcome) -> Float[np.ndarray, " rows"]:
    """Root mean square of the residuals of each row."""
    valid = problem.layout.valid & np.isfinite(outcome.at.simulated.residual)
    squares = np.where(valid, outcome.at.simulated.residual, 0.0) ** 2
    return np.sqrt(squares.sum(axis=(0, 1)) / np.maximum(valid.sum(axis=(0, 1)), 1))


def _decrease(H: np.ndarray, g: np.ndarray, at: Int[np.ndarray, " some"]) -> float:
    """Decrease of twice the cost that gradient and curvature predict if these coordinates are free."""
    scale = np.sqrt(np.maximum(np.diag(H)[at], 1e-300))
    unit = H[np.ix_(at, at)] / scale[:, None] / scale
    return float(g[at] / scale @ np.linalg.lstsq(unit, g[at] / scale, rcond=1e-10)[0])


def _scaled(parameter: Parameter, logarithm: float) -> np.ndarray:
    z = parameter.transform.coordinates(parameter.start)
    return z + logarithm if isinstance(parameter.transform, Positive) else z * np.exp(logarithm)


def _field(group: FixedGroup) -> str:
    return group.pattern.rpartition(".")[2]
