"""Diagnosis of a solved problem: estimates with intervals, open-loop errors, status."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identification.diagnose.contradicted_parameters import find_contradiction
from truesim.identification.diagnose.covariance import Uncertainty, uncertainty
from truesim.identification.diagnose.estimates import Estimate, estimates
from truesim.identification.diagnose.evaluation import Errors, Prediction, errors, predictions
from truesim.identification.diagnose.identifiability import undetermined_groups
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.plausibility import implausible
from truesim.identification.diagnose.score_test import Alternative, largest_shift, score_test
from truesim.identification.diagnose.status import Diagnostic, Status, assess, contradicted, needs_score_test
from truesim.identification.diagnose.time_step import time_step_diagnostics
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.errors import TorqueError
from truesim.identification.solve.solution import Solution


class Part(enum.StrEnum):
    """Logs and parameters of a set of open-loop predictions."""

    TRAIN = "train"
    """Logs of the fit, estimates."""
    TRAIN_START = "train_start"
    """Logs of the fit, start values."""
    HELD_OUT = "held_out"
    """Held-out logs, estimates."""
    HELD_OUT_START = "held_out_start"
    """Held-out logs, start values."""


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Estimates, open-loop errors and status of a fit."""

    estimates: tuple[Estimate, ...]
    uncertainty: Uncertainty
    not_identifiable: tuple[tuple[str, ...], ...]
    """Groups of parameters of which at most a combination is identifiable."""
    errors: Mapping[Part, Mapping[str, Errors]]
    """Open-loop errors of each channel."""
    status: Status
    diagnostics: tuple[Diagnostic, ...]
    torque_errors: Mapping[Part, Mapping[str, TorqueError]] = dataclasses.field(default_factory=dict)
    """Relative torque error of each joint; empty without joint torques."""
    alternatives: tuple[Alternative, ...] = ()
    """Groups of fixed parameters that would explain the residual, best first."""
    predictions: Mapping[Part, Sequence[Prediction]] = dataclasses.field(default_factory=dict)
    """Simulated windows; empty for a fit that was loaded, whose folder holds the signals."""


class Assessment(NamedTuple):
    """Status of a solution, and the reasons."""

    status: Status
    diagnostics: tuple[Diagnostic, ...]
    alternatives: tuple[Alternative, ...]
    """Groups of fixed parameters that would explain the residual, best first."""
    shift: Float[np.ndarray, " solved"]
    """Distance of the coordinates to those with wrong fixed parameters freed, by which intervals are widened."""


def diagnose(
    solution: Solution,
    held_out: Problem | None = None,
    options: DiagnoseOptions | None = None,
    minimal: bool = True,
) -> Diagnosis:
    """Compute intervals, open-loop errors and status of a solved problem.

    Args:
        solution: The solved problem.
        held_out: The same problem with held-out logs.
        options: Thresholds, and the length of the windows of open-loop errors.
        minimal: Whether the solution minimizes its cost, so that fixed parameters can be tested by its gradient.
    """
    options = options or DiagnoseOptions()
    problem, window = solution.problem, options.error_window
    start = problem.parameters.start
    simulated: dict[Part, Sequence[Prediction]] = {
        Part.TRAIN: list(predictions(problem, solution.theta, window)),
        Part.TRAIN_START: list(predictions(problem, start, window)),
    }
    if held_out is not None:
        simulated[Part.HELD_OUT] = list(predictions(held_out, solution.theta, window))
        simulated[Part.HELD_OUT_START] = list(predictions(held_out, start, window))
    return diagnose_predictions(solution, uncertainty(solution), simulated, held_out, options, minimal)


def diagnose_predictions(
    solution: Solution,
    found: Uncertainty,
    simulated: Mapping[Part, Sequence[Prediction]],
    held_out: Problem | None = None,
    options: DiagnoseOptions | None = None,
    minimal: bool = True,
) -> Diagnosis:
    """Diagnose a solution whose covariance and predictions are known.

    Args:
        solution: The solved problem.
        found: Covariance of the estimates.
        simulated: Open-loop windows.
        held_out: The same problem with held-out logs.
        options: Thresholds.
        minimal: Whether the solution minimizes its cost, so that fixed parameters can be tested by its gradient.
    """
    options = options or DiagnoseOptions()
    groups = undetermined_groups(solution, found, options.identifiable_std)
    scored = {
        part: errors(held_out if held_out is not None and part.startswith(Part.HELD_OUT) else solution.problem, windows)
        for part, windows in simulated.items()
    }
    status, diagnostics, alternatives, shift = find_misfit(solution, found, groups, scored, options, minimal)
    jacobian = solution.problem.values(solution.theta)[1]
    found = found.widen(shift, jacobian) if shift.any() else found
    widened = shift**2 > np.diag(found.coordinates)
    values = estimates(solution, found, options, widened, status is Status.DOES_NOT_FIT)
    usable = minimal and status is not Status.DOES_NOT_FIT
    stepped = time_step_diagnostics(solution, values, options) if usable else ()
    return Diagnosis(
        estimates=values,
        uncertainty=found,
        not_identifiable=tuple(groups),
        errors=scored,
        status=status,
        diagnostics=(*diagnostics, *implausible(values, solution.problem.simulator.model, options), *stepped),
        alternatives=alternatives,
        predictions=simulated,
    )


def find_misfit(
    solution: Solution,
    found: Uncertainty,
    groups: Sequence[tuple[str, ...]],
    scored: Mapping[Part, Mapping[str, Errors]],
    options: DiagnoseOptions,
    minimal: bool = True,
) -> Assessment:
    """Find the status of a solution, and fixed parameters that its residuals tell to be wrong.

    Args:
        solution: The solved problem.
        found: Covariance of the estimates.
        groups: Groups of parameters that are not identifiable.
        scored: Open-loop errors; those of the logs of the fit are needed.
        options: Thresholds.
        minimal: Whether the solution minimizes its cost, so that fixed parameters can be tested by its gradient.
    """
    tested = minimal and needs_score_test(solution, scored[Part.TRAIN], options)
    alternatives = score_test(solution) if tested else ()
    train, other, start = (scored.get(part) for part in (Part.TRAIN, Part.HELD_OUT, Part.TRAIN_START))
    status, diagnostics = assess(solution, groups, train or {}, other, options, alternatives, start)
    shift = largest_shift(alternatives, solution.problem.solved.size, options.explained)
    if minimal and not alternatives and status in (Status.CONVERGED, Status.NOT_IDENTIFIABLE):
        test = find_contradiction(solution, found)
        if test is not None and test.significant:
            diagnostics, shift = (contradicted(test), *diagnostics), np.abs(test.shift)
            status = Status.DOES_NOT_FIT if abs(test.change) > options.contradicted_change else status
    return Assessment(status, diagnostics, alternatives, shift)
