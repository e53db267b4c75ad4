"""Fits of arms by inverse-dynamics regression: the best candidate, and the diagnosis."""

from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.diagnose.diagnosis import Diagnosis, Part
from truesim.identification.diagnose.estimates import estimates
from truesim.identification.diagnose.evaluation import Prediction, errors, predictions
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Code, Diagnostic, Status
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.errors import TorqueError, torque_errors
from truesim.identification.solve.levenberg_marquardt import Ending
from truesim.identification.solve.noise import initial_noise
from truesim.identification.solve.normal_equations import ResidualWeights
from truesim.identification.solve.solution import Solution
from truesim.identification.torque_candidates import ArmCandidate, Candidates
from truesim.identification.torque_regression import CHOSEN_FRICTION, ArmRegression, uncertainty
from truesim.physics.model.tendons import couplings

POOR_TORQUE = 0.5
"""Relative torque error above which the model does not fit."""


def conclude(
    regression: ArmRegression,
    problem: Problem,
    logs: Sequence[Log],
    held_out: Problem | None,
    held_out_logs: Sequence[Log],
    options: DiagnoseOptions,
) -> tuple[Solution, Diagnosis]:
    """Solution and diagnosis of the candidate that predicts torque and motion best.

    Candidates are compared on the held-out logs, or on the logs of the fit without any, so that neither the textbook's
    regression nor the robot file predicts better than what is returned.

    Args:
        regression: The regression.
        problem: The problem whose free parameters are those of the regression.
        logs: Prepared logs of the fit.
        held_out: The same problem with held-out logs.
        held_out_logs: These logs.
        options: Thresholds, and the length of windows.
    """
    where, own = (problem, logs) if held_out is None else (held_out, held_out_logs)
    found = Candidates(regression, problem, where, own, options.error_window)
    winner, start = found.best(), found.file
    theta = winner.theta
    parts: dict[Part, Sequence[Prediction]] = {}
    for part, before, at in (
        (Part.TRAIN, Part.TRAIN_START, problem),
        (Part.HELD_OUT, Part.HELD_OUT_START, held_out),
    ):
        if at is where:
            parts |= {part: winner.simulated, before: start.simulated}
        elif at is not None:
            both = (list(predictions(at, x, options.error_window)) for x in (theta, start.theta))
            parts |= dict(zip((part, before), both, strict=True))
    solution = _solution(problem, theta, parts[Part.TRAIN], options)
    uncertain = uncertainty(problem, theta, winner.estimate or regression.candidates[CHOSEN_FRICTION])
    torque = torque_parts(problem, theta, logs, held_out_logs)
    status, diagnostics = _assess(regression, winner, torque, uncertain, parts)
    scored = {
        part: errors(held_out if held_out is not None and part.startswith(Part.HELD_OUT) else problem, windows)
        for part, windows in parts.items()
    }
    diagnosis = Diagnosis(
        estimates=estimates(solution, uncertain, options),
        uncertainty=uncertain,
        not_identifiable=(),
        errors=scored,
        status=status,
        diagnostics=diagnostics,
        predictions=parts,
        torque_errors=torque,
    )
    return solution, diagnosis


def torque_parts(
    problem: Problem, theta: Float[np.ndarray, " size"], logs: Sequence[Log], held_out_logs: Sequence[Log]
) -> dict[Part, dict[str, TorqueError]]:
    """Torque errors of the fitted and of the start values; empty without torques."""
    fitted, start = fitted_model(problem, theta), problem.simulator.model
    out = {}
    for own, after, before in (
        (logs, Part.TRAIN, Part.TRAIN_START),
        (held_out_logs, Part.HELD_OUT, Part.HELD_OUT_START),
    ):
        for part, model in ((after, fitted), (before, start)) if own else ():
            if found := torque_errors(model, own):
                out[part] = found
    return out


def _solution(
    problem: Problem, theta: np.ndarray, simulated: Sequence[Prediction], options: DiagnoseOptions
) -> Solution:
    """The solution; segments are simulated when their derivatives are first asked for."""
    squares = [np.square(np.where(p.valid, p.residual, 0.0)).sum(axis=(0, 1)) for p in simulated]
    count = np.sum([p.valid.sum(axis=(0, 1)) for p in simulated], axis=0)
    noise = np.sqrt(np.sum(squares, axis=0) / np.maximum(count, 1))
    sensors = initial_noise(problem)
    return Solution(
        problem=problem,
        theta=theta,
        nodes=problem.initial_nodes(),
        weights=ResidualWeights(np.maximum(noise, sensors), np.ones(2 * problem.simulator.model.nv)),
        windows=problem.layout.windows(max(1, round(options.error_window / problem.layout.seconds))),
        sensor_noise=sensors,
        ending=Ending.CONVERGED,
    )


def _assess(
    regression: ArmRegression,
    winner: ArmCandidate,
    torque: Mapping[Part, Mapping[str, TorqueError]],
    found: Uncertainty,
    parts: Mapping[Part, Sequence[Prediction]],
) -> tuple[Status, tuple[Diagnostic, ...]]:
    """Status of a regression, and the candidate that was returned."""
    tested = torque.get(Part.HELD_OUT, torque.get(Part.TRAIN, {}))
    band = (regression.chosen if winner.estimate is None else winner.estimate).samples.band
    typical = float(np.mean([e.relative for e in tested.values()])) if tested else np.nan
    notes = [Diagnostic(Code.REGRESSION, (winner.name,), typical, band)]
    motors = couplings(regression.model)
    notes += [Diagnostic(Code.COUPLED_MOTOR, (name, " and ".join(motors[name]))) for name in regression.added]
    fitted = [p for part in (Part.TRAIN, Part.HELD_OUT) for p in parts.get(part, ())]
    if not all(np.isfinite(p.residual[p.valid]).all() for p in fitted):
        return Status.DIVERGED, (Diagnostic(Code.NOT_FINITE), *notes)
    if typical > POOR_TORQUE or winner.estimate is None:
        return Status.DOES_NOT_FIT, tuple(notes)
    rank, size = _rank(regression), regression.chosen.best.system.size
    if rank < size:
        notes.append(Diagnostic(Code.BASE_PARAMETERS, (), float(rank), float(size)))
        return Status.NOT_IDENTIFIABLE, tuple(notes)
    return Status.CONVERGED, tuple(notes)


def _rank(regression: ArmRegression) -> int:
    """Number of combinations of unknowns that the torques determine: independent columns of the regressor."""
    system = regression.chosen.best.system
    noise = regression.chosen.best.noise
    H = np.tensordot(noise**-2.0, system.grams.sum(axis=0)[:, :-1, :-1], axes=1)
    scale = 1 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    return int((np.linalg.eigvalsh(H * np.outer(scale, scale)) > 1e-8).sum())
