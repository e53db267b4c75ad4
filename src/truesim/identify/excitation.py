"""Which parameters a recorded motion can show.

Inverse dynamics is linear in the inertial parameters, armature, damping and dry friction: `tau = W beta`. A parameter
shows as far as its column of W, scaled by the parameter's usual size, stands out from all others. The measure is a
share of the joint forces: 0.05 means that leaving the parameter out, with all others at their best, changes the force
of some joint by 5 %.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.data import Log, command_columns, motion
from truesim.data.checks import moves
from truesim.dynamics import base_parameters, regressors
from truesim.dynamics.regressor import PARAMETERS
from truesim.model.kinds import BALL, FREE
from truesim.model.model import Model

JOINT_PARAMETERS = ("armature", "damping", "frictionloss")
CLEAR, FAINT = 0.03, 0.01
"""Shares of the joint forces from which on a parameter shows clearly, or at all."""
HALF_WIDTH = 0.04
"""How far the differentiator looks to each side [s]: wide, since accelerations are noisy."""
SAMPLES = 400
"""Samples that are looked at, spread over the log."""
TYPICAL = 0.1
"""Share of the joint force that friction and armature are taken to have at least, whatever the file guesses."""


@dataclasses.dataclass(frozen=True)
class JointMotion:
    """How one degree of freedom moved."""

    name: str
    unit: str
    """`rad` or `m`."""
    travel: float
    """From the lowest to the highest position [rad or m]; the length of the path for quaternions."""
    speed: float
    """Highest speed, outliers left out [rad/s or m/s]."""
    forward: float
    """Part of the moving time in which the velocity is positive; NaN for several coordinates."""


@dataclasses.dataclass(frozen=True)
class BaseParameter:
    """A combination of parameters that motion can show, and how well this log shows it."""

    combination: str
    """Such as `lower.mz` or `upper.Iyy + shoulder.armature`."""
    share: float
    """Part of the joint forces that only it explains."""


@dataclasses.dataclass(frozen=True)
class Excitation:
    """What the motion in some logs can show of a robot."""

    joints: tuple[JointMotion, ...]
    alone: dict[str, float]
    """For every parameter, such as `lower.m` or `elbow.damping`, the part of the joint forces that only it explains."""
    together: dict[str, float]
    """The same, with whatever other parameters explain as well."""
    base: tuple[BaseParameter, ...]
    """Combinations that some motion of this robot can show, with how well this one does."""
    remarks: tuple[str, ...]
    """What limits this account, in sentences."""

    @property
    def rank(self) -> int:
        """How many of the combinations this log shows."""
        return sum(parameter.share > FAINT for parameter in self.base)


def excitation(logs: list[Log], model: Model) -> Excitation:
    """What the motion in these logs, all prepared, can show of the robot."""
    motions = [motion(log, model, half_width=HALF_WIDTH) for log in logs]
    q, v, a = (np.concatenate([getattr(m, field) for m in motions]) for field in ("q", "v", "a"))
    joints = _joint_motions(model, q, v)
    rows = np.flatnonzero(np.concatenate([m.complete for m in motions]))
    remarks = _remarks(logs, model, len(rows))
    if FREE in model.joints.kinds or len(rows) < model.nv * 10 or not model.nv:
        return Excitation(joints, {}, {}, (), remarks)
    rows = rows[np.linspace(0, len(rows) - 1, min(SAMPLES, len(rows))).astype(int)]
    moving = np.any([_moving(model, m.q) for m in motions], axis=0)
    return _account(model, joints, (q[rows], v[rows], a[rows]), moving, remarks)


def _account(
    model: Model,
    joints: tuple[JointMotion, ...],
    samples: tuple[np.ndarray, ...],
    moving: Bool[np.ndarray, "nv"],
    remarks: tuple[str, ...],
) -> Excitation:
    names = _names(model)
    W = _columns(model, *samples)
    sizes, force = _sizes(model, W, moving)
    shares = W * sizes / force[:, None]
    base = base_parameters(_columns(model, *_random_motion(model)).reshape(-1, len(names)))
    standing_out = _standing_out(shares[:, :, list(base.independent)])
    alone = np.zeros(len(names))
    single = np.sum(base.combination != 0, axis=1) == 1
    alone[list(base.independent)] = standing_out * single
    return Excitation(
        joints,
        alone=dict(zip(names, map(float, alone), strict=True)),
        together=dict(zip(names, map(float, _worst_joint(shares)), strict=True)),
        base=tuple(map(BaseParameter, base.describe(names), map(float, standing_out))),
        remarks=remarks,
    )


def _columns(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Float[np.ndarray, "samples nv parameters"]:
    """The regressor with columns for armature, damping and dry friction of every degree of freedom."""
    sign = np.tanh(v / (0.05 * np.sqrt(np.mean(v**2, axis=0)) + 1e-12))
    diagonal = np.eye(v.shape[1])
    return np.concatenate([regressors(model, q, v, a), *(x[:, :, None] * diagonal for x in (a, v, sign))], axis=2)


def _sizes(
    model: Model, W: np.ndarray, moving: Bool[np.ndarray, "nv"]
) -> tuple[Float[np.ndarray, "parameters"], Float[np.ndarray, "nv"]]:
    """Usual size of every parameter, and of the force of every degree of freedom."""
    count = len(model.bodies.names) * len(PARAMETERS)
    mass = np.maximum(model.bodies.mass, 1e-3 * np.sum(model.bodies.mass) + 1e-9)
    spread = np.sum(np.asarray(model.bodies.inertia)[:, :3], axis=1) / (2 * mass)
    length = np.sqrt(spread + np.sum(np.asarray(model.bodies.com) ** 2, axis=1)) + 1e-6
    powers = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    inertial = (mass[:, None] * length[:, None] ** powers).ravel()
    force = np.sqrt(np.mean(np.sum((W[:, :, :count] * inertial) ** 2, axis=2), axis=0)) + 1e-12
    own = np.sqrt(np.mean(W[:, :, count:] ** 2, axis=0)).sum(axis=0) + 1e-12
    usual = np.tile(TYPICAL * force * moving, len(JOINT_PARAMETERS)) / own
    stated = np.concatenate([_per_dof(model, getattr(model.joints, name)) for name in JOINT_PARAMETERS])
    return np.concatenate([inertial, np.maximum(stated, usual)]), force


def _standing_out(shares: Float[np.ndarray, "samples nv parameters"]) -> Float[np.ndarray, "parameters"]:
    """How much of each column no other column can make up for, in the joint where it counts most.

    The part of column k that is orthogonal to the others is `W G^-1 e_k / (G^-1)_kk`, with G = W^T W.
    """
    samples, nv, count = shares.shape
    U, s, Vt = np.linalg.svd(shares.reshape(-1, count), full_matrices=False)
    bounded = np.maximum(s, 1e-9 * s[0] + 1e-15)
    inverse = Vt.T / bounded
    left = U @ (inverse * s / bounded).T / np.sum(inverse**2, axis=1)
    return _worst_joint(left.reshape(samples, nv, count))


def _worst_joint(shares: Float[np.ndarray, "samples nv parameters"]) -> Float[np.ndarray, "parameters"]:
    return np.max(np.sqrt(np.mean(shares**2, axis=0)), axis=0)


def _moving(model: Model, q: Float[np.ndarray, "samples nq"]) -> Bool[np.ndarray, "nv"]:
    """Which degrees of freedom move by more than the noise of their positions."""
    links = [link for link in model.topology.links if link.joint >= 0]
    return np.repeat([any(map(moves, q[:, link.q].T)) for link in links], [link.kind.nv for link in links])


def _names(model: Model) -> list[str]:
    bodies = [f"{body}.{parameter}" for body in model.bodies.names for parameter in PARAMETERS]
    return bodies + [f"{dof}.{parameter}" for parameter in JOINT_PARAMETERS for dof in _dof_names(model)]


def _dof_names(model: Model) -> list[str]:
    joints = zip(model.joints.names, model.joints.kinds, strict=True)
    return [name if kind.nv == 1 else f"{name}/{i}" for name, kind in joints for i in range(kind.nv)]


def _per_dof(model: Model, values: np.ndarray) -> np.ndarray:
    return np.repeat(np.asarray(values), [kind.nv for kind in model.joints.kinds])


def _random_motion(model: Model, count: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States that have nothing in common: what they show, some motion shows."""
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
        remarks.append("The robot moves freely: forces from what it touches are not recorded, so only motion is shown.")
    elif complete < model.nv * 10:
        remarks.append("Positions of all joints at the same stamps are needed to tell which parameters show.")
    recorded = [name for name in command_columns(model) if any(name in log.columns for log in logs)]
    if not recorded:
        remarks.append("No force or control was recorded: only ratios of parameters show, so keep one mass fixed.")
    elif missing := [name for name in command_columns(model) if name not in recorded]:
        remarks.append(f"{', '.join(missing)} was not recorded and counts as zero.")
    return tuple(remarks)


def grade(alone: float, together: float) -> str:
    """How a parameter shows: `clear`, `faint`, `in sums` (only together with others) or `no`."""
    if alone > FAINT:
        return "clear" if alone > CLEAR else "faint"
    return "in sums" if together > FAINT else "no"
