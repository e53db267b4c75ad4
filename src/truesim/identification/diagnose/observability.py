"""Excitation of parameters by a recorded motion.

Inverse dynamics is linear in the inertial parameters, armature, damping and dry friction: `tau = W beta`. The
excitation of a parameter is the part of its column of W, scaled by a typical value of the parameter, that is orthogonal
to all other columns, as a fraction of the joint force: 0.05 means that omitting the parameter, with all others
refitted, changes the force of some joint by 5 %.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.files.logs import Log, motion
from truesim.files.logs.checks import is_moving
from truesim.physics.dynamics import base_parameters, regressors
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS
from truesim.physics.model.columns import command_columns
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model

JOINT_PARAMETERS = ("armature", "damping", "frictionloss")
"""Parameters of joints in the regressor."""
CLEAR_SHARE, FAINT_SHARE = 0.03, 0.01
"""Fractions of the joint force above which a parameter is excited clearly, or at all. Larger grades lower."""
ACCELERATION_HALF_WIDTH = 0.04
"""Half width of the differentiation filter [s]. Larger reduces noise of accelerations and smooths fast motion."""
REGRESSOR_SAMPLES = 400
"""Maximum number of samples, evenly distributed over the logs. Larger is more accurate and slower."""
TYPICAL_JOINT_SHARE = 0.1
"""Minimum fraction of the joint force that friction and armature are assumed to have. Larger grades them higher."""


@dataclasses.dataclass(frozen=True)
class JointMotion:
    """Motion of one joint."""

    name: str
    unit: str
    """`rad` or `m`."""
    travel: float
    """Range of positions [rad or m]; the largest range of a coordinate for joints with several."""
    speed: float
    """99 % quantile of the speed [rad/s or m/s]."""
    forward: float
    """Fraction of the moving time in which the velocity is positive; NaN for several coordinates."""


@dataclasses.dataclass(frozen=True)
class BaseParameter:
    """An identifiable combination of parameters, and its excitation."""

    combination: str
    """Text such as `lower.mz` or `upper.Iyy + shoulder.armature`."""
    share: float
    """Fraction of the joint force that only this combination explains."""


@dataclasses.dataclass(frozen=True)
class Excitation:
    """Excitation of the parameters of a robot by logs."""

    joints: tuple[JointMotion, ...]
    alone: dict[str, float]
    """Fraction of the joint force that only this parameter explains, by name (`lower.m`, `elbow.damping`)."""
    together: dict[str, float]
    """Fraction of the joint force of each parameter, including what other parameters explain too."""
    base: tuple[BaseParameter, ...]
    """Base parameters: combinations that are identifiable from inverse dynamics, with their excitation."""
    remarks: tuple[str, ...]
    """Limitations of the result, as sentences."""

    @property
    def rank(self) -> int:
        """Number of base parameters that are excited."""
        return sum(parameter.share > FAINT_SHARE for parameter in self.base)


def excitation(logs: list[Log], model: Model) -> Excitation:
    """Excitation of the parameters by the motion in prepared logs."""
    motions = [motion(log, model, half_width=ACCELERATION_HALF_WIDTH) for log in logs]
    q, v, a = (np.concatenate([getattr(m, field) for m in motions]) for field in ("q", "v", "a"))
    joints = _joint_motions(model, q, v)
    rows = np.flatnonzero(np.concatenate([m.complete for m in motions]))
    remarks = _remarks(logs, model, len(rows))
    if FREE in model.joints.kinds or len(rows) < model.nv * 10 or not model.nv:
        return Excitation(joints, {}, {}, (), remarks)
    rows = rows[np.linspace(0, len(rows) - 1, min(REGRESSOR_SAMPLES, len(rows))).astype(int)]
    moving = np.any([_moving(model, m.q) for m in motions], axis=0)
    return _measure(model, joints, (q[rows], v[rows], a[rows]), moving, remarks)


def _measure(
    model: Model,
    joints: tuple[JointMotion, ...],
    samples: tuple[np.ndarray, ...],
    moving: Bool[np.ndarray, " nv"],
    remarks: tuple[str, ...],
) -> Excitation:
    names = _names(model)
    W = _columns(model, *samples)
    typical, force = _typical_values(model, W, moving)
    shares = W * typical / force[:, None]
    base = base_parameters(_columns(model, *_random_motion(model)).reshape(-1, len(names)))
    unique = _unique_shares(shares[:, :, list(base.independent)])
    alone = np.zeros(len(names))
    single = np.sum(base.combination != 0, axis=1) == 1
    alone[list(base.independent)] = unique * single
    return Excitation(
        joints,
        alone=dict(zip(names, map(float, alone), strict=True)),
        together=dict(zip(names, map(float, _largest_share(shares)), strict=True)),
        base=tuple(map(BaseParameter, base.describe(names), map(float, unique))),
        remarks=remarks,
    )


def _columns(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Float[np.ndarray, "samples nv parameters"]:
    """Regressor with columns for armature, damping and dry friction of each degree of freedom."""
    sign = np.tanh(v / (0.05 * np.sqrt(np.mean(v**2, axis=0)) + 1e-12))
    diagonal = np.eye(v.shape[1])
    return np.concatenate([regressors(model, q, v, a), *(x[:, :, None] * diagonal for x in (a, v, sign))], axis=2)


def _typical_values(
    model: Model, W: np.ndarray, moving: Bool[np.ndarray, " nv"]
) -> tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, " nv"]]:
    """Typical value of each parameter, and root-mean-square force of each degree of freedom."""
    count = len(model.bodies.names) * len(INERTIAL_PARAMETERS)
    mass = np.maximum(model.bodies.mass, 1e-3 * np.sum(model.bodies.mass) + 1e-9)
    radius2 = np.sum(np.asarray(model.bodies.inertia)[:, :3], axis=1) / (2 * mass)
    length = np.sqrt(radius2 + np.sum(np.asarray(model.bodies.com) ** 2, axis=1)) + 1e-6
    powers = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    inertial = (mass[:, None] * length[:, None] ** powers).ravel()
    force = np.sqrt(np.mean(np.sum((W[:, :, :count] * inertial) ** 2, axis=2), axis=0)) + 1e-12
    own = np.sqrt(np.mean(W[:, :, count:] ** 2, axis=0)).sum(axis=0) + 1e-12
    minimum = np.tile(TYPICAL_JOINT_SHARE * force * moving, len(JOINT_PARAMETERS)) / own
    stated = np.concatenate([_per_dof(model, getattr(model.joints, name)) for name in JOINT_PARAMETERS])
    return np.concatenate([inertial, np.maximum(stated, minimum)]), force


def _unique_shares(shares: Float[np.ndarray, "samples nv parameters"]) -> Float[np.ndarray, " parameters"]:
    """Part of each column that is orthogonal to all others, in the joint where it is largest.

    The part of column k that is orthogonal to the others is `W G^-1 e_k / (G^-1)_kk`, with G = W^T W.
    """
    samples, nv, count = shares.shape
    U, s, Vt = np.linalg.svd(shares.reshape(-1, count), full_matrices=False)
    bounded = np.maximum(s, 1e-9 * s[0] + 1e-15)
    inverse = Vt.T / bounded
    orthogonal = U @ (inverse * s / bounded).T / np.sum(inverse**2, axis=1)
    return _largest_share(orthogonal.reshape(samples, nv, count))


def _largest_share(shares: Float[np.ndarray, "samples nv parameters"]) -> Float[np.ndarray, " parameters"]:
    return np.max(np.sqrt(np.mean(shares**2, axis=0)), axis=0)


def _moving(model: Model, q: Float[np.ndarray, "samples nq"]) -> Bool[np.ndarray, " nv"]:
    """Degrees of freedom that move by more than the noise of their positions."""
    links = [link for link in model.topology.links if link.joint >= 0]
    return np.repeat([any(map(is_moving, q[:, link.q].T)) for link in links], [link.kind.nv for link in links])


def _names(model: Model) -> list[str]:
    bodies = [f"{body}.{parameter}" for body in model.bodies.names for parameter in INERTIAL_PARAMETERS]
    return bodies + [f"{dof}.{parameter}" for parameter in JOINT_PARAMETERS for dof in _dof_names(model)]


def _dof_names(model: Model) -> list[str]:
    joints = zip(model.joints.names, model.joints.kinds, strict=True)
    return [name if kind.nv == 1 else f"{name}/{i}" for name, kind in joints for i in range(kind.nv)]


def _per_dof(model: Model, values: np.ndarray) -> np.ndarray:
    return np.repeat(np.asarray(values), [kind.nv for kind in model.joints.kinds])


def _random_motion(model: Model, count: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random states, which excite all base parameters."""
    rng = np.random.default_rng(0)
    parts = []
    for kind in model.joints.kinds:
        part = rng.normal(size=(count, kind.nq))
        parts.append(part / np.linalg.norm(part, axis=1, keepdims=True) if kind == BALL else part)
    return np.concatenate(parts, axis=1), rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def _joint_motions(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[JointMotion, ...]:
    found = []
    for link in model.topology.links:
        if link.joint < 0:
            continue
        known, rate = q[:, link.q], v[:, link.v]
        known, rate = known[np.all(np.isfinite(known), axis=1)], rate[np.all(np.isfinite(rate), axis=1)]
        unit = "m" if link.kind.name in ("slide", "free") else "rad"
        size = np.linalg.norm(rate[:, :3], axis=1)
        speed = float(np.quantile(size, 0.99)) if len(rate) else np.nan
        travel = float(np.max(np.ptp(known[:, :3], axis=0))) if len(known) else np.nan
        moving = rate[size > 0.05 * speed, 0] if len(rate) else np.zeros(0)
        forward = float(np.mean(moving > 0)) if len(moving) and link.kind.nv == 1 else np.nan
        found.append(JointMotion(model.joints.names[link.joint], unit, travel, speed, forward))
    return tuple(found)


def _remarks(logs: list[Log], model: Model, complete: int) -> tuple[str, ...]:
    remarks = []
    if FREE in model.joints.kinds:
        remarks.append("The robot has a free joint: contact forces are not recorded, so only the motion is shown.")
    elif complete < model.nv * 10:
        remarks.append("Positions of all joints at the same times are needed to compute which parameters are excited.")
    recorded = [name for name in command_columns(model) if any(name in log.columns for log in logs)]
    if not recorded:
        remarks.append(
            "No force or command was recorded: only ratios of parameters are identifiable, so keep one mass fixed."
        )
    elif missing := [name for name in command_columns(model) if name not in recorded]:
        remarks.append(f"{', '.join(missing)} was not recorded and counts as zero.")
    return tuple(remarks)


def grade(alone: float | int, together: float | int) -> str:
    """Grade of the excitation of a parameter: `clear`, `faint`, `in sums` (only combined with others) or `no`."""
    if alone > FAINT_SHARE:
        return "clear" if alone > CLEAR_SHARE else "faint"
    return "in sums" if together > FAINT_SHARE else "no"
