"""Fits of arms by inverse-dynamics regression: candidates, their comparison on torque and motion, and the diagnosis."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.diagnose.diagnosis import Diagnosis, Part
from truesim.identification.diagnose.estimates import estimates
from truesim.identification.diagnose.evaluation import Prediction, errors, predictions
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Code, Diagnostic, Status
from truesim.identification.problem.fitted import coordinates_of, fitted_model
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.arm import ArmEstimate, estimate_of
from truesim.identification.regression.choose import Chosen, choose
from truesim.identification.regression.couplings import add_couplings
from truesim.identification.regression.errors import BAND, TorqueError, torque_errors
from truesim.identification.regression.signals import band_limited
from truesim.identification.solve.levenberg_marquardt import Ending
from truesim.identification.solve.noise import initial_noise
from truesim.identification.solve.normal_equations import ResidualWeights
from truesim.identification.solve.solution import Solution
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings

CHOSEN_FRICTION, BASIC_FRICTION, ROBOT_FILE = "chosen friction", "basic friction", "robot file"
SOME_FRICTION = "chosen friction at some joints"
"""Names of the candidates: friction terms are chosen at all joints, or where they predict torque and motion better."""
STRIBECK_FIELD = ".stribeck_velocity"
JOINT_LOSS = 0.02
"""Largest loss of a joint's torque or motion error, as a fraction, with which its friction terms are kept. Larger
keeps more terms."""
KEPT_GAIN = 0.01
"""A candidate replaces a simpler one if its torque and motion errors, as a geometric mean, are smaller by this
fraction. Larger prefers simpler ones."""
MIN_TORQUE_SAMPLES = 50
"""Least number of samples of a regression, after the band."""
POOR_TORQUE = 0.5
"""Relative torque error above which the model does not fit."""


@dataclasses.dataclass(frozen=True)
class ArmRegression:
    """Regression of an arm's torques, ready to be turned into a fit."""

    model: Model
    """The robot file's values; Stribeck velocities are those of the chosen friction."""
    chosen: Chosen
    candidates: Mapping[str, ArmEstimate]
    """Estimates by name, the richest first."""
    added: tuple[str, ...] = ()
    """Motors that turn with two joints which the robot file does not have."""

    @property
    def free(self) -> tuple[str, ...]:
        """Paths of all estimated parameters."""
        return tuple(self._richest.values)

    @property
    def reach(self) -> dict[str, float]:
        """Largest absolute value of each parameter, for which scales and bounds make room [SI units]."""
        return {path: float(np.abs(value).max()) for path, value in self._richest.values.items()}

    @property
    def _richest(self) -> ArmEstimate:
        return next(iter(self.candidates.values()))

    def coordinates(self, problem: Problem, name: str) -> Float[np.ndarray, " size"]:
        """Coordinates of a candidate in a problem whose free parameters are `free`."""
        if name == ROBOT_FILE:
            return problem.parameters.start
        start = {p.name: p.start for p in problem.parameters}
        return coordinates_of(problem, start | self.candidates[name].values)

    def uncertainty(self, problem: Problem, theta: Float[np.ndarray, " size"], name: str) -> Uncertainty:
        """Covariance of a candidate; numbers that it does not have are known exactly."""
        own = self.candidates[name if name in self.candidates else CHOSEN_FRICTION]
        at, first = {}, 0
        for path, value in own.values.items():
            at[path] = range(first, first + np.size(value))
            first += np.size(value)
        order = [k for p in problem.parameters for k in at.get(p.name, [-1] * np.size(p.start))]
        known = np.array(order) >= 0
        values = np.where(np.outer(known, known), own.covariance[np.ix_(order, order)], 0.0)
        J = problem.values(theta)[1]
        inverse = np.linalg.pinv(J)
        coordinates = inverse @ values @ inverse.T
        rows = len(problem.rows)
        return Uncertainty((coordinates + coordinates.T) / 2, values, np.resize(self.chosen.times, rows))


def regress_arm(model: Model, logs: Sequence[Log]) -> ArmRegression:
    """Regress the torques of logs, with basic friction and with friction terms chosen by cross-validation.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    count = len(band_limited(model, logs, BAND))
    if count < MIN_TORQUE_SAMPLES:
        raise TruesimError(
            f"The logs have {count} samples in a band of {BAND:g} Hz; a regression of torques needs "
            f"{MIN_TORQUE_SAMPLES}: add logs."
        )
    known, model = couplings(model), add_couplings(model, logs)
    chosen = choose(model, logs)
    found = {CHOSEN_FRICTION: estimate_of(model, chosen, chosen.best)}
    if chosen.best is not chosen.basic:
        found[BASIC_FRICTION] = estimate_of(model, chosen, chosen.basic)
    for path, value in found[CHOSEN_FRICTION].values.items():
        if path.endswith(STRIBECK_FIELD):
            model = paths.write(model, path, value)
    added = tuple(name for name in couplings(model) if name not in known)
    return ArmRegression(model, chosen, {name: without_speeds(estimate) for name, estimate in found.items()}, added)


def without_speeds(estimate: ArmEstimate) -> ArmEstimate:
    """The estimate without Stribeck velocities, which are chosen and not estimated."""
    known = {path for path in estimate.values if path.endswith(STRIBECK_FIELD)}
    mask = np.concatenate([np.full(np.size(v), path not in known) for path, v in estimate.values.items()])
    values = {path: v for path, v in estimate.values.items() if path not in known}
    return ArmEstimate(values, estimate.covariance[np.ix_(mask, mask)])


def conclude(
    regression: ArmRegression,
    problem: Problem,
    logs: Sequence[Log],
    held_out: Problem | None,
    held_out_logs: Sequence[Log],
    options: DiagnoseOptions,
) -> tuple[Solution, Diagnosis]:
    """Solution and diagnosis of the candidate that predicts torque and motion best.

    Candidates are compared on the held-out logs, or on the logs of the fit without any. A richer one must be better by
    `KEPT_GAIN`, so that neither the simpler regression nor the robot file predicts better than what is returned.

    Args:
        regression: The regression.
        problem: The problem whose free parameters are those of the regression.
        logs: Prepared logs of the fit.
        held_out: The same problem with held-out logs.
        held_out_logs: These logs.
        options: Thresholds, and the length of windows.
    """
    where, own = (problem, logs) if held_out is None else (held_out, held_out_logs)
    found = _Candidates(regression, problem, where, own, options.error_window)
    winner = found.best()
    thetas, simulated = found.thetas, found.simulated
    theta = thetas[winner]
    parts: dict[Part, Sequence[Prediction]] = {}
    for part, start, at in (
        (Part.TRAIN, Part.TRAIN_START, problem),
        (Part.HELD_OUT, Part.HELD_OUT_START, held_out),
    ):
        if at is where:
            parts |= {part: simulated[winner], start: simulated[ROBOT_FILE]}
        elif at is not None:
            both = (list(predictions(at, x, options.error_window)) for x in (theta, thetas[ROBOT_FILE]))
            parts |= dict(zip((part, start), both, strict=True))
    solution = _solution(problem, theta, parts[Part.TRAIN], options)
    uncertain = found.regression.uncertainty(problem, theta, winner)
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


class _Candidates:
    """Candidates of a regression with their errors: logarithms of torque and motion errors, joint by joint."""

    def __init__(self, regression: ArmRegression, problem: Problem, where: Problem, logs: Sequence[Log], window: float):
        self.regression, self.problem, self.where, self.logs, self.window = regression, problem, where, logs, window
        self.thetas: dict[str, np.ndarray] = {}
        self.simulated: dict[str, list[Prediction]] = {}
        self.torque: dict[str, np.ndarray] = {}
        self.motion: dict[str, np.ndarray] = {}
        for name in (ROBOT_FILE, *reversed([*regression.candidates])):
            self._add(name)

    def best(self) -> str:
        """The simplest candidate that no richer one improves; a richer one may not lose at any joint."""
        winner = ROBOT_FILE
        for name in [*self.thetas][1:]:
            winner = name if self._is_better(name, winner) else winner
        if winner == BASIC_FRICTION and (worse := self._worse_joints(CHOSEN_FRICTION, BASIC_FRICTION)):
            chosen, model = self.regression.chosen, self.regression.model
            terms = chosen.best.system.terms != chosen.basic.system.terms
            if np.delete(terms, worse, axis=0).any():
                estimate = estimate_of(model, chosen, chosen.without_terms(model, worse))
                candidates = {**self.regression.candidates, SOME_FRICTION: without_speeds(estimate)}
                self.regression = dataclasses.replace(self.regression, candidates=candidates)
                self._add(SOME_FRICTION)
                winner = SOME_FRICTION if self._is_better(SOME_FRICTION, winner) else winner
        return winner

    def _add(self, name: str) -> None:
        theta = self.regression.coordinates(self.problem, name)
        self.thetas[name], self.simulated[name] = theta, list(predictions(self.where, theta, self.window))
        torque = torque_errors(fitted_model(self.where, theta), self.logs).values()
        self.torque[name] = np.log([max(e.relative, 1e-12) for e in torque])
        motion = errors(self.where, self.simulated[name]).values()
        self.motion[name] = np.log([max(e.rmse, 1e-12) for e in motion])

    def _score(self, name: str) -> float:
        """Mean logarithm over joints of relative torque error and open-loop error; smaller is better."""
        score = (float(np.mean(self.torque[name])) + float(np.mean(self.motion[name]))) / 2
        return score if np.isfinite(score) else np.inf

    def _is_better(self, name: str, other: str) -> bool:
        """True if the errors are smaller in the mean, and, beside another regression, not larger at any joint."""
        if other != ROBOT_FILE and self._worse_joints(name, other):
            return False
        return bool(self._score(name) < self._score(other) + np.log1p(-KEPT_GAIN))

    def _worse_joints(self, name: str, other: str) -> list[int]:
        """Joints whose torque or motion error is larger than that of another candidate."""
        lost = [errors[name] - errors[other] for errors in (self.torque, self.motion)]
        return sorted({int(j) for each in lost for j in np.flatnonzero(~(each < np.log1p(JOINT_LOSS)))})


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
    winner: str,
    torque: Mapping[Part, Mapping[str, TorqueError]],
    found: Uncertainty,
    parts: Mapping[Part, Sequence[Prediction]],
) -> tuple[Status, tuple[Diagnostic, ...]]:
    """Status of a regression, and the candidate that was returned."""
    band, tested = regression.chosen.samples.band, torque.get(Part.HELD_OUT, torque.get(Part.TRAIN, {}))
    typical = float(np.mean([e.relative for e in tested.values()])) if tested else np.nan
    notes = [Diagnostic(Code.REGRESSION, (winner,), typical, band)]
    motors = couplings(regression.model)
    notes += [Diagnostic(Code.COUPLED_MOTOR, (name, " and ".join(motors[name]))) for name in regression.added]
    fitted = [p for part in (Part.TRAIN, Part.HELD_OUT) for p in parts.get(part, ())]
    if not all(np.isfinite(p.residual[p.valid]).all() for p in fitted):
        return Status.DIVERGED, (Diagnostic(Code.NOT_FINITE), *notes)
    if typical > POOR_TORQUE or winner == ROBOT_FILE:
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
