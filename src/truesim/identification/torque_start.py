"""Start of a trajectory fit from joint torques, and the comparison of the result with its start.

The torques are linear in most unknowns, so that a regression on them needs no good start. It is restricted to the
parameters that are free. The trajectory fit goes on from there; what it finds is returned only if it predicts at least
as well as the regression and the robot file.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.evaluation import ERROR_WINDOW, errors, predictions
from truesim.identification.diagnose.status import Code, Diagnostic
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.equations import (
    ARMATURE_TERM,
    DAMPING_TERM,
    FRICTION_TERM,
    OFFSET_TERM,
    TEN,
    TERMS,
    ArmBodies,
    reduce,
)
from truesim.identification.regression.errors import BAND, torque_errors
from truesim.identification.regression.signals import band_limited
from truesim.identification.regression.torques import TorqueMap
from truesim.identification.solve.prior import prior_residuals
from truesim.identification.solve.solution import Solution
from truesim.identification.torque_regression import MIN_TORQUE_SAMPLES
from truesim.math.spatial.inertia import INERTIA_ENTRIES
from truesim.optimize.box import minimize_in_box

INERTIAL_FIELDS, DRIVE_FIELDS = ("mass", "com", "inertia"), ("armature", "damping", "frictionloss")
MOTOR_FIELDS = ("offset", "gain")
REGRESSED_FIELDS = {"bodies": INERTIAL_FIELDS, "joints": DRIVE_FIELDS, "actuators": MOTOR_FIELDS}
"""Fields that a regression of torques can estimate, by group."""
TRAJECTORY, REGRESSED, FILE_VALUES = "trajectory", "regression", "file"
"""Names of the compared parameters, in the order of preference."""
REPLACING_GAIN = 0.03
"""The result of the trajectory fit is replaced by one that predicts better by this fraction. Larger replaces less."""
MOTION_LOSS = 0.02
"""Largest loss of motion error, as a fraction, for which a better torque error makes up."""
START_ITERATIONS = 40
"""Maximum number of Levenberg-Marquardt iterations of the regression."""
START_ROUNDS = 3
"""Rounds in which joints are weighted by their residuals."""


@dataclasses.dataclass(frozen=True)
class FreeTorques:
    """Torque equations of a problem as functions of its coordinates."""

    problem: Problem
    arm: ArmBodies
    gram: Float[np.ndarray, "joints columns columns"]
    count: Float[np.ndarray, " joints"]

    @classmethod
    def of(cls, problem: Problem, logs: Sequence[Log]) -> "FreeTorques | None":
        """Equations of logs; None if no free parameter shows in them, or if the logs are too short."""
        model = problem.simulator.model
        targets = [t for p in problem.solved if p.log is None for t in p.targets]
        known = [t for t in targets if t.path.field in REGRESSED_FIELDS.get(t.path.group or "", ())]
        samples = band_limited(model, logs, BAND)
        if not known or len(samples) < MIN_TORQUE_SAMPLES:
            return None
        moved = ArmBodies.of(model)
        bodies = sorted((*moved.free, *moved.fixed))
        scaled = any(t.path.field == "gain" for t in known)  # divides all that the gain does not multiply
        named = bodies if scaled else [t.path.index for t in known if t.path.group == "bodies"]
        arm = ArmBodies(tuple(b for b in bodies if b in named), tuple(b for b in bodies if b not in named))
        reduced = reduce(model, samples, np.zeros(len(samples), int), arm=arm)
        return cls(problem, arm, reduced.gram[0], np.maximum(reduced.count[0], 1.0))

    def columns(self, values: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, "joints columns"]:
        """Coefficients of the columns of each joint's equations, whose last is that of the torque.

        With another gain of the actuators the equations are divided by it, so that residuals are those of controls.
        """
        arrays = self._arrays(values)
        model = self.problem.simulator.model
        bodies = np.concatenate([np.zeros(0), *(_ten(arrays, b) for b in self.arm.free)])
        links = [link.joint for link in model.topology.links if link.joint >= 0]
        terms = np.zeros((model.nv, len(TERMS)))
        for field, term in zip(DRIVE_FIELDS, (ARMATURE_TERM, DAMPING_TERM, FRICTION_TERM), strict=True):
            terms[:, term] = arrays["joints", field][links]
        gain, start = arrays["actuators", "gain"], np.asarray(model.actuators.gain)
        offset = np.asarray(model.actuators.gear)[:, 0] * gain * arrays["actuators", "offset"]
        scale = np.ones(model.nv)
        for j in range(model.nv):
            own = np.flatnonzero(self._torques.gain[j])
            terms[j, OFFSET_TERM] = -offset[own].sum()
            if len(own) == 1:
                scale[j] = gain[own[0]] / start[own[0]]
        rows = np.concatenate([np.tile(bodies, (model.nv, 1)), terms, -scale[:, None]], axis=1)
        return rows / scale[:, None]

    def derivatives(self, values: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, "joints columns numbers"]:
        """Central differences of `columns` by the values."""
        steps = 1e-6 * np.maximum(np.abs(values), 1e-2)
        each = [(self.columns(values + h) - self.columns(values - h)) / (2 * h.max()) for h in np.diag(steps)]
        return np.stack(each, axis=-1)

    @functools.cached_property
    def _torques(self) -> TorqueMap:
        return TorqueMap.of(self.problem.simulator.model)

    @functools.cached_property
    def _base(self) -> dict[tuple[str, str], np.ndarray]:
        model = self.problem.simulator.model
        groups = {"bodies": model.bodies, "joints": model.joints, "actuators": model.actuators}
        return {
            (group, f): np.array(getattr(groups[group], f), float)
            for group, each in REGRESSED_FIELDS.items()
            for f in each
        }

    def _arrays(self, values: Float[np.ndarray, " numbers"]) -> dict[tuple[str, str], np.ndarray]:
        arrays = {key: value.copy() for key, value in self._base.items()}
        solved = self.problem.solved
        for parameter, at in zip(solved, solved.number_slices(), strict=True):
            for target in parameter.targets if parameter.log is None else ():
                key = (target.path.group or "", target.path.field)
                if key in arrays and target.path.index is not None:
                    value = target.sign * values[at].reshape(np.shape(parameter.start))
                    place = target.path.index if target.element is None else (target.path.index, target.element)
                    arrays[key][place] = value
        return arrays


def _ten(arrays: Mapping[tuple[str, str], np.ndarray], body: int) -> Float[np.ndarray, " 10"]:
    """Inertial parameters of a body about the origin of its frame."""
    mass, com, inertia = (arrays["bodies", field][body] for field in INERTIAL_FIELDS)
    shifted = mass * (com @ com * np.eye(3) - np.outer(com, com))
    out = np.concatenate([[mass], mass * com, inertia + [shifted[i, j] for i, j in INERTIA_ENTRIES]])
    assert len(out) == TEN, "ten inertial parameters"
    return out


def regress_free(problem: Problem, logs: Sequence[Log]) -> Float[np.ndarray, " size"] | None:
    """Coordinates at which the free parameters explain the joint torques best; others keep their start.

    Args:
        problem: A problem without networks, of an arm for which `inapplicable` gives no reason.
        logs: Prepared logs of the problem.
    """
    with jax.enable_x64(True):
        torques = FreeTorques.of(problem, logs)
    if torques is None:
        return None
    theta = problem.parameters.start.copy()
    for _ in range(START_ROUNDS):
        y = torques.columns(problem.values(theta)[0])
        noise = np.maximum(np.einsum("ji,jik,jk->j", y, torques.gram, y) / torques.count, 1e-12)
        theta = _minimize(torques, theta, 1 / noise)
    return theta if np.isfinite(theta).all() else None


def _minimize(
    torques: FreeTorques, theta: Float[np.ndarray, " size"], weights: Float[np.ndarray, " joints"]
) -> Float[np.ndarray, " size"]:
    """Levenberg-Marquardt within the bounds, on the Gram matrices."""
    problem, damping = torques.problem, 1e-4
    low, high = problem.parameters.bounds
    scaled = weights[:, None, None] * torques.gram

    def cost(at: np.ndarray) -> float:
        y, (b, _) = torques.columns(problem.values(at)[0]), prior_residuals(problem, at)
        return float(np.einsum("ji,jik,jk->", y, scaled, y) + b @ b)

    value = cost(theta)
    for _ in range(START_ITERATIONS):
        values, J = problem.values(theta)
        y, dy = torques.columns(values), torques.derivatives(values) @ J
        b, B = prior_residuals(problem, theta)
        H = np.einsum("jiu,jik,jkw->uw", dy, scaled, dy, optimize=True) + B.T @ B
        g = np.einsum("jiu,jik,jk->u", dy, scaled, y, optimize=True) + B.T @ b
        while damping < 1e8:
            step = minimize_in_box(H + damping * np.diag(np.diag(H)), g, low - theta, high - theta)
            if (trial := cost(theta + step)) <= value:
                break
            damping *= 10
        else:
            return theta
        gain, theta, value, damping = value - trial, theta + step, trial, max(damping / 10, 1e-9)
        if gain < 1e-3:
            break
    return theta


@dataclasses.dataclass(frozen=True)
class Compared:
    """Errors of some coordinates: mean logarithms over channels and joints."""

    motion: float
    torque: float

    @classmethod
    def of(cls, problem: Problem, theta: Float[np.ndarray, " size"], logs: Sequence[Log], window: float) -> "Compared":
        """Open-loop errors of motion, and relative torque errors, on logs."""
        motion = [
            np.log(max(e.rmse, 1e-12)) for e in errors(problem, list(predictions(problem, theta, window))).values()
        ]
        torque = [np.log(max(e.relative, 1e-12)) for e in torque_errors(fitted_model(problem, theta), logs).values()]
        both = float(np.mean(motion)), float(np.mean(torque)) if torque else 0.0
        return cls(*(x if np.isfinite(x) else np.inf for x in both))

    def is_better(self, other: "Compared") -> bool:
        """True if both errors together are clearly smaller, and that of motion is not larger."""
        if not np.isfinite(other.motion + other.torque):
            return bool(np.isfinite(self.motion + self.torque))
        gain = (other.motion - self.motion + other.torque - self.torque) / 2
        return bool(gain > REPLACING_GAIN and self.motion - other.motion < MOTION_LOSS)


def better_start(problem: Problem, theta: Float[np.ndarray, " size"], window: float) -> bool:
    """True if the motion of the logs is predicted better at these coordinates than at the robot file's values."""
    scores = []
    for at in (theta, problem.parameters.start):
        found = errors(problem, list(predictions(problem, at, window)))
        scores.append(float(np.mean([np.log(max(e.rmse, 1e-12)) for e in found.values()])))
    return not scores[0] >= scores[1]


def keep_best(
    solution: Solution,
    regressed: Float[np.ndarray, " size"],
    where: Problem,
    logs: Sequence[Log],
    window: float = ERROR_WINDOW,
) -> tuple[Solution, Diagnostic]:
    """The solution, or the regression or the robot file if they predict better, and which of them it is.

    Args:
        solution: Result of the trajectory fit.
        regressed: Coordinates of the regression of torques.
        where: The problem with the held-out logs, or with those of the fit without any.
        logs: Prepared logs of that problem.
        window: Length of the windows of open-loop errors [s].
    """
    problem = solution.problem
    thetas = {TRAJECTORY: solution.theta, REGRESSED: regressed, FILE_VALUES: problem.parameters.start}
    found = {name: Compared.of(where, theta, logs, window) for name, theta in thetas.items()}
    best = TRAJECTORY
    for name in (REGRESSED, FILE_VALUES):
        best = name if found[name].is_better(found[best]) else best
    other = REGRESSED if best != REGRESSED else TRAJECTORY
    ratios = np.exp(found[best].motion - found[other].motion), np.exp(found[best].torque - found[other].torque)
    note = Diagnostic(Code.TORQUE_START, (best, other), float(ratios[0]), float(ratios[1]))
    if best != TRAJECTORY:
        solution = dataclasses.replace(solution, theta=thetas[best], nodes=problem.initial_nodes())
    return solution, note
