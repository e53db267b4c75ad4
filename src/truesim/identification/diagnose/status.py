"""Status of a fit: one code for the whole fit, and diagnostics as reasons. Sentences are in `messages`."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from truesim.identification.diagnose.contradicted_parameters import Contradiction
from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.score_test import Alternative
from truesim.identification.diagnose.stamps import StampJitter, stamp_jitter
from truesim.identification.solve.levenberg_marquardt import Ending
from truesim.identification.solve.solution import Solution

NORMAL_MEDIAN_SQUARE = 0.454936
"""Median of the square of a standard normal number."""
WORSE_RATIO = 1.5
"""Open-loop errors larger than those of the start values by this factor: the model does not fit."""


class Status(enum.StrEnum):
    """State of a fit as a whole."""

    CONVERGED = "converged"
    NOT_IDENTIFIABLE = "not identifiable"
    """Converged, but not all parameters are identifiable."""
    DOES_NOT_FIT = "model does not fit"
    ITERATION_LIMIT = "iteration limit"
    STALLED = "stalled"
    DIVERGED = "diverged"
    """A simulation is not finite at the end."""
    INTERRUPTED = "interrupted"


class Code(enum.StrEnum):
    """Kind of a diagnostic."""

    INTERRUPTED = "interrupted"
    NOT_FINITE = "not finite"
    ITERATION_LIMIT = "iteration limit"
    SEARCH_LIMIT = "search limit"
    TRAINING_LIMIT = "training limit"
    STALLED = "stalled"
    UNEXPLAINED_MOTION = "unexplained motion"
    HELD_OUT_WORSE = "held-out error"
    RESIDUAL_ABOVE_NOISE = "residual above noise"
    """`value` is the residual without what jitter of the stamps explains, `ratio` its ratio to the noise."""
    STAMP_JITTER = "stamp jitter"
    """Samples were not taken at their stamps; `value` is the standard deviation of the difference [s], `ratio` the
    fraction of the squares of the residuals that it explains."""
    FIXED_PARAMETER = "fixed parameter"
    """Parameters that are not free explain the residual."""
    CONTRADICTED = "contradicted parameter"
    """The residuals contradict fixed parameters; `subjects` are their pattern, the free parameter that changes most
    with them, and other patterns that may be wrong instead; `value` is its change in standard deviations, `ratio` the
    score over what chance gives."""
    CONTRADICTORY_LOGS = "contradictory logs"
    """Each log fits alone; `subjects` are a parameter and its extreme values with their logs."""
    WORSE_THAN_START = "worse than start"
    """Open-loop errors are larger than with the values of the robot file."""
    IMPLAUSIBLE = "implausible value"
    NEAR_FORCE_LIMIT = "near force limit"
    """Joint friction close to what the actuator of the joint can exert."""
    TIME_STEP = "time step"
    """`subjects` are a parameter and half the time step [ms]; `value` is what the parameter would be with it."""
    NOT_IDENTIFIABLE = "not identifiable"
    ONLY_COMBINATION = "only a combination identifiable"
    REGRESSION = "regression"
    """The values are those of a regression of joint torques; `subjects` names the candidate that predicts best."""
    TORQUE_START = "torque start"
    """A regression of joint torques started the fit; `subjects` are what is returned and what it was compared with,
    `value` and `ratio` are the ratios of their motion and torque errors."""
    COUPLED_MOTOR = "coupled motor"
    """A motor that turns with two joints was added: its tendon, its joints."""
    BASE_PARAMETERS = "base parameters"
    """Of `ratio` numbers of an arm, only `value` combinations are identifiable."""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One observation about a fit."""

    code: Code
    subjects: tuple[str, ...] = ()
    """Rows of the residual, or paths and patterns of parameters."""
    value: float = np.nan
    """Size of the residual or error [the row's unit]."""
    ratio: float = np.nan
    """The value relative to its reference: the noise, the motion, the start, or the error on the logs of the fit."""


def assess(
    solution: Solution,
    groups: Sequence[tuple[str, ...]],
    train: Mapping[str, Errors],
    held_out: Mapping[str, Errors] | None = None,
    options: DiagnoseOptions | None = None,
    alternatives: Sequence[Alternative] = (),
    start: Mapping[str, Errors] | None = None,
) -> tuple[Status, tuple[Diagnostic, ...]]:
    """Status and diagnostics of a solution.

    Args:
        solution: The solved problem.
        groups: Groups of parameters that are not identifiable, from `undetermined_groups`.
        train: Open-loop errors on the logs of the fit.
        held_out: Open-loop errors on other logs.
        options: Thresholds.
        alternatives: Groups of fixed parameters that explain the residual, from `score_test`.
        start: Open-loop errors on the logs of the fit with the start values.
    """
    options = options or DiagnoseOptions()
    jitter = _jitter(solution)
    sizes = residual_sizes(solution, jitter)
    noisy, unexplained = misfit(solution, options, sizes)
    fixed = explained_by_fixed(alternatives, options)
    converged = solution.ending is Ending.CONVERGED  # otherwise more iterations may explain the residual
    above = converged and any(size.exceeds(options) for size in sizes)
    noisy = [*([Diagnostic(Code.STAMP_JITTER, (), jitter.std, jitter.share)] if jitter.std > 0 else []), *noisy]
    unknown = [Diagnostic(Code.NOT_IDENTIFIABLE if len(g) == 1 else Code.ONLY_COMBINATION, g) for g in groups]
    worse = [*_worse(train, held_out or {}, options.held_out_ratio), *_worse_than_start(train, start or {})]
    if solution.ending is Ending.INTERRUPTED:
        return Status.INTERRUPTED, (Diagnostic(Code.INTERRUPTED), *noisy)
    if not np.isfinite(solution.at.simulated.residual[solution.problem.layout.valid]).all():
        return Status.DIVERGED, (Diagnostic(Code.NOT_FINITE), *noisy)
    if unexplained or worse or fixed or above:
        return Status.DOES_NOT_FIT, (*fixed, *unexplained, *worse, *noisy, *unknown)
    if solution.ending is not Ending.CONVERGED and solution.problem.blueprint is not None:
        noisy.append(Diagnostic(Code.TRAINING_LIMIT))
    elif solution.ending is Ending.STALLED:
        return Status.STALLED, (Diagnostic(Code.STALLED), *noisy)
    elif solution.ending is not Ending.CONVERGED:
        code = Code.ITERATION_LIMIT if solution.found is None else Code.SEARCH_LIMIT
        return Status.ITERATION_LIMIT, (Diagnostic(code), *noisy)
    if unknown:
        return Status.NOT_IDENTIFIABLE, (*unknown, *noisy)
    return Status.CONVERGED, tuple(noisy)


def needs_score_test(solution: Solution, train: Mapping[str, Errors], options: DiagnoseOptions) -> bool:
    """True if residuals, or open-loop errors on the logs of the fit, are well above the noise of the sensors.

    Initial states of short windows may absorb what is wrong; open-loop errors over longer ones do not.
    """
    rows = zip(solution.problem.rows, solution.sensor_noise, strict=True)
    open_loop = [train[row].median / max(float(noise), 1e-300) for row, noise in rows if row in train]
    return any(misfit(solution, options)) or max(open_loop, default=0.0) > options.misfit_ratio


def explained_by_fixed(alternatives: Sequence[Alternative], options: DiagnoseOptions) -> list[Diagnostic]:
    """Diagnostics of the best group of fixed parameters, and of those that are freed on top of it."""
    return [
        Diagnostic(Code.FIXED_PARAMETER, (a.pattern, *a.after), a.explained)
        for k, a in enumerate(alternatives)
        if a.explained >= options.explained and (k == 0 or a.after)
    ]


def contradicted(test: Contradiction) -> Diagnostic:
    """The diagnostic of fixed parameters that the logs contradict."""
    subjects = (test.pattern, test.most_sensitive, *test.others)
    return Diagnostic(Code.CONTRADICTED, subjects, test.change, test.statistic / test.count)


class ResidualSize(NamedTuple):
    """Size of the residuals of a row, without what jitter of the stamps explains."""

    rms: float
    """Root-mean-square [the row's unit]."""
    ratio: float
    """The root-mean-square relative to the sensor's noise."""
    typical: float
    """The same for the bulk of the residuals, by their median: impacts enlarge few of them."""

    def exceeds(self, options: DiagnoseOptions) -> bool:
        """True if the model does not fit the row."""
        return self.ratio > options.misfit_ratio or self.typical > options.noise_ratio


def residual_sizes(solution: Solution, jitter: StampJitter | None = None) -> list[ResidualSize]:
    """Size of the residuals of each row."""
    jitter = jitter or _jitter(solution)
    sizes = []
    for k, noise in enumerate(solution.sensor_noise):
        valid = solution.problem.layout.valid[..., k]
        squares = solution.at.simulated.residual[..., k][valid] ** 2
        if not len(squares):
            sizes.append(ResidualSize(0.0, 0.0, 0.0))
            continue
        total = float(np.mean(squares))
        left = max(total - float(np.mean(jitter.squares[..., k][valid])), 0.0)
        typical = float(np.sqrt(np.median(squares) / NORMAL_MEDIAN_SQUARE * (left / max(total, 1e-300))))
        rms, unit = float(np.sqrt(left)), max(float(noise), 1e-300)
        sizes.append(ResidualSize(rms, rms / unit, typical / unit))
    return sizes


def misfit(
    solution: Solution, options: DiagnoseOptions, sizes: Sequence[ResidualSize] | None = None
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Rows with residuals above the sensors' noise, and rows with residuals comparable to the motion."""
    noisy, unexplained = [], []
    for k, (row, size) in enumerate(zip(solution.problem.rows, sizes or residual_sizes(solution), strict=True)):
        motion = _motion(solution, solution.windows.window, k)
        if size.ratio <= options.noise_ratio:
            continue
        if size.rms > options.unexplained * motion > 0:  # zero for rotations
            unexplained.append(Diagnostic(Code.UNEXPLAINED_MOTION, (row,), size.rms, size.rms / max(motion, 1e-300)))
        else:
            noisy.append(Diagnostic(Code.RESIDUAL_ABOVE_NOISE, (row,), size.rms, size.ratio))
    return noisy, unexplained


def _jitter(solution: Solution) -> StampJitter:
    return stamp_jitter(solution.problem, solution.at.simulated, solution.weights.noise)


def _motion(solution: Solution, window: np.ndarray, row: int) -> float:
    """Root-mean-square over windows of the standard deviation of a measured row within each [the row's unit]."""
    problem = solution.problem
    measured = problem.measured_rows[..., row]
    valid = problem.layout.valid[..., row]
    each = [np.std(measured[window == w][valid[window == w]]) for w in np.unique(window) if valid[window == w].any()]
    return float(np.sqrt(np.mean(np.square(each)))) if each else 0.0


def _worse(train: Mapping[str, Errors], held_out: Mapping[str, Errors], factor: float) -> list[Diagnostic]:
    return [
        Diagnostic(Code.HELD_OUT_WORSE, (row,), held_out[row].median, held_out[row].median / train[row].median)
        for row in held_out
        if row in train and held_out[row].median > factor * train[row].median > 0
    ]


def _worse_than_start(train: Mapping[str, Errors], start: Mapping[str, Errors]) -> list[Diagnostic]:
    """A diagnostic if the errors of all rows together are well above those of the start values."""
    rows = [row for row in train if row in start and min(train[row].median, start[row].median) > 0]
    ratios = [train[row].median / start[row].median for row in rows]
    if not ratios or np.exp(np.mean(np.log(ratios))) < WORSE_RATIO:
        return []
    worst = int(np.argmax(ratios))
    return [Diagnostic(Code.WORSE_THAN_START, (rows[worst],), train[rows[worst]].median, ratios[worst])]
