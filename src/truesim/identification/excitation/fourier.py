"""Periodic excitation of arms: Fourier series whose torques determine the base parameters well.

Positions are finite Fourier series that start and end each period at rest. Periods can be averaged, and velocities and
accelerations are known exactly. Among series within the limits of positions, speeds and torques, without collisions,
the one whose equations of inverse dynamics have the smallest condition number is searched for.
"""

import dataclasses
from xml.etree import ElementTree

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.excitation.limits import Limits
from truesim.identification.regression.equations import STRIBECK_TERM, TEN, TERMS, ArmBodies, equations
from truesim.identification.regression.errors import joint_names, model_torques
from truesim.identification.regression.signals import (
    REST_SPEED,
    STRIBECK_SPEEDS,
    JointSamples,
    coupling_matrix,
    rest_speeds,
)
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.physics.model.model import Model

ROOM = 0.95
"""Part of each limit that motions use at most."""
WIDEST_RANGE = 2.5
"""Distance from zero that joints without limits move at most [rad or m]."""
TESTED_SAMPLES = 150
"""Samples of a period at which candidates are compared. Larger is slower and more accurate."""
SHRINK = 0.85
"""Factor of the amplitudes after a collision or too large a torque."""
SHRINKINGS = 12
"""Times that a candidate is shrunk before it is given up."""
BASE_TERMS = TERMS[:STRIBECK_TERM]
"""Unknowns of each joint beside the inertial parameters: armature, damping, friction and offset."""
INDEPENDENT = 1e-7
"""Eigenvalue of the scaled normal matrix below which a combination of unknowns does not show in any motion."""


@dataclasses.dataclass(frozen=True)
class FourierOptions:
    """Options of a periodic excitation."""

    seconds: float = 20.0
    """Duration, a whole number of periods [s]."""
    period: float = 10.0
    """Period of the series [s]; the duration, if that is shorter."""
    harmonics: int = 5
    """Number of harmonics."""
    rate: float = 200.0
    """Sampling rate [Hz]."""
    candidates: int = 60
    """Random series, of which the best is refined."""
    iterations: int = 150
    """Random changes of the best series."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("seconds", "period", "harmonics", "rate", "candidates", "iterations"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")
        if self.harmonics < 3:
            raise TruesimError(f"There are {self.harmonics} harmonics; motions from rest to rest need 3 or more.")


@dataclasses.dataclass(frozen=True)
class FourierMotion:
    """A periodic excitation with its condition number before and after the search."""

    model: Model
    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples joints"]
    v: Float[np.ndarray, "samples joints"]
    a: Float[np.ndarray, "samples joints"]
    torque: Float[np.ndarray, "samples joints"]
    """Torques that the file's values need [N m or N]."""
    condition: float
    """Condition number of the equations of all base parameters, columns scaled to one."""
    typical_condition: float
    """Median condition number of random series within the same limits."""

    @property
    def reversals(self) -> dict[str, int]:
        """Times that each joint reverses its motion; friction needs both directions."""
        rest = rest_speeds(self.model)
        out = {}
        for j, name in enumerate(joint_names(self.model)):
            moving = self.v[np.abs(self.v[:, j]) > rest[j], j]
            out[name] = int((np.diff(np.sign(moving)) != 0).sum())
        return out

    def columns(self) -> dict[str, Float[np.ndarray, " samples"]]:
        """Time, positions, velocities and torques by column of a log."""
        columns = {"time": self.time}
        for names, values in (
            (position_columns(self.model), self.q),
            (velocity_columns(self.model), self.v),
            (command_columns(self.model), self.torque),
        ):
            columns |= {name: values[:, j] for j, name in enumerate(names)}
        return columns


def file_speeds(model: Model) -> dict[str, float]:
    """Speed limits of a URDF by joint, which a model does not hold [rad/s or m/s]."""
    if model.source is None or model.source.format != "urdf":
        return {}
    out = {}
    for joint in ElementTree.fromstring(model.source.text).iter("joint"):
        limit = joint.find("limit")
        speed = 0.0 if limit is None else float(limit.get("velocity", "0"))
        if speed > 0 and joint.get("name") in model.joints.names:
            out[str(joint.get("name"))] = speed
    return out


def design_fourier(model: Model, limits: Limits, options: FourierOptions | None = None) -> FourierMotion:
    """Search for a periodic excitation of an arm.

    Args:
        model: An arm of hinges and slides with one motor for each joint.
        limits: Limits of positions, speeds and forces.
        options: Duration, period, harmonics and effort of the search.
    """
    options = options or FourierOptions()
    if model.nu != model.nv:
        raise TruesimError(f"The robot has {model.nv} joints and {model.nu} actuators; a motor for each is needed.")
    search = _FourierSearch(model, limits, options)
    rng = np.random.default_rng(options.seed)
    shape = (2, options.harmonics, model.nv)
    decay = 1 / np.sqrt(np.arange(1, options.harmonics + 1))[None, :, None]
    tried = [search.fit(rng.normal(size=shape) * decay) for _ in range(options.candidates)]
    found = [(search.condition(x), k) for k, x in enumerate(tried) if x is not None]
    if not found:
        raise TruesimError("No motion within the limits is free of collisions; give a smaller --range.")
    best, index = min(found)
    x = tried[index]
    assert x is not None, "it was compared"
    for _ in range(options.iterations):
        size = np.abs(x).mean() * 10 ** rng.uniform(-1.5, 0.3)
        trial = search.fit(x + size * rng.normal(size=shape) * decay)
        if trial is not None and (value := search.condition(trial)) < best:
            best, x = value, trial
    return search.motion(x, float(best), float(np.median([c for c, _ in found])))


class _FourierSearch:
    """Candidates of a periodic excitation: limits, collisions and condition numbers."""

    def __init__(self, model: Model, limits: Limits, options: FourierOptions):
        n = model.nv
        low, high = limits.low[:n].copy(), limits.high[:n].copy()
        self.low = np.where(np.isfinite(low), low, -WIDEST_RANGE)
        self.high = np.where(np.isfinite(high), high, WIDEST_RANGE)
        self.speed = ROOM * limits.high[n : 2 * n]
        joint = np.asarray(model.joints.force_range)[:, 1]
        own = np.where(model.joints.force_limited, joint, np.inf)
        self.torque = ROOM * np.minimum(own, limits.high[2 * n : 3 * n])
        self.model, self.options = model, options
        self.period = min(options.period, options.seconds)
        self.scene = None if model.source is None else model.source.compiled
        self.rank = self._rank()

    def signals(self, x: np.ndarray, time: np.ndarray) -> Float[np.ndarray, "3 samples joints"]:
        """Position, velocity and acceleration of a series around the middle of the ranges."""
        w = 2 * np.pi / self.period * np.arange(1, x.shape[1] + 1)
        s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
        q = s @ (x[0] / w[:, None]) - c @ (x[1] / w[:, None])
        v = c @ x[0] + s @ x[1]
        a = c @ (x[1] * w[:, None]) - s @ (x[0] * w[:, None])
        return np.stack([q, v, a])

    def fit(self, x: np.ndarray) -> Float[np.ndarray, "2 harmonics joints"] | None:
        """The series from rest to rest, scaled to the limits; None if it cannot avoid collisions."""
        w = np.arange(1, x.shape[1] + 1)
        x = np.stack([x[0] - x[0].mean(axis=0), x[1] - w[:, None] * (w @ x[1]) / (w @ w)])
        time = np.linspace(0, self.period, TESTED_SAMPLES, endpoint=False)
        q, v, _ = self.signals(x, time)
        room = ROOM * (self.high - self.low) / np.maximum(np.ptp(q, axis=0), 1e-12)
        x = x * np.minimum(room, self.speed / np.maximum(np.abs(v).max(axis=0), 1e-12))
        for _ in range(SHRINKINGS):
            q, v, a = self.placed(x, time)
            over = np.abs(model_torques(self.model, self._samples(time, q, v, a))).max(axis=0) > self.torque
            if not over.any() and not self._collides(q):
                return x
            x = x * (SHRINK if not over.any() else np.where(over, SHRINK, 1.0))
        return None

    def placed(self, x: np.ndarray, time: np.ndarray) -> Float[np.ndarray, "3 samples joints"]:
        """Signals with positions in the middle of their ranges."""
        q, v, a = self.signals(x, time)
        middle = (q.max(axis=0) + q.min(axis=0)) / 2
        return np.stack([q - middle + (self.low + self.high) / 2, v, a])

    def condition(self, x: np.ndarray) -> float:
        """Condition number of the scaled equations, over the combinations that any motion shows."""
        time = np.linspace(0, self.period, TESTED_SAMPLES, endpoint=False)
        values = self._eigenvalues(self._samples(time, *self.placed(x, time)))
        return float(np.sqrt(values[-1] / max(values[-self.rank], 1e-30)))

    def _rank(self) -> int:
        """Number of combinations of unknowns that show in random motions."""
        rng = np.random.default_rng(0)
        q, v, a = rng.uniform(-1, 1, (3, 4 * TESTED_SAMPLES, self.model.nv))
        q = (self.low + self.high) / 2 + q * (self.high - self.low) / 2
        values = self._eigenvalues(self._samples(np.arange(len(q), dtype=float), q, v * self.speed, 5 * a * self.speed))
        return int((values > INDEPENDENT).sum())

    def _eigenvalues(self, samples: JointSamples) -> Float[np.ndarray, " unknowns"]:
        """Eigenvalues of the normal matrix with columns scaled to one and rows to the torque limits."""
        base, own = TEN * len(ArmBodies.of(self.model).free), len(BASE_TERMS)
        H = np.zeros((base + own * self.model.nv,) * 2)
        for _, j, rows in equations(self.model, samples):
            full = np.zeros((len(rows), len(H)))
            full[:, :base] = rows[:, :base]
            full[:, base + own * j : base + own * (j + 1)] = rows[:, base : base + own]
            size = self.torque[j] if np.isfinite(self.torque[j]) else 1.0
            H += full.T @ full / size**2
        scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
        return np.linalg.eigvalsh(H / np.outer(scale, scale))

    def motion(self, x: np.ndarray, condition: float, typical: float) -> FourierMotion:
        """The whole motion at the sampling rate."""
        periods = max(1, round(self.options.seconds / self.period))
        time = np.arange(round(periods * self.period * self.options.rate) + 1) / self.options.rate
        q, v, a = self.placed(x, time)
        torque = model_torques(self.model, self._samples(time, q, v, a))
        return FourierMotion(self.model, time, q, v, a, torque, condition, typical)

    def _samples(self, time: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> JointSamples:
        direction = np.tanh(v / rest_speeds(self.model))
        onsets = np.stack([direction * np.exp(-((v / s) ** 2)) for s in STRIBECK_SPEEDS], axis=-1)
        one = np.zeros(len(time), int)
        coupled = np.tanh(v @ coupling_matrix(self.model).T / REST_SPEED[False])
        return JointSamples(q, v, a, direction, onsets, coupled, np.zeros_like(q), one, one, time, np.inf)

    def _collides(self, q: np.ndarray) -> bool:
        """True if bodies touch each other in some configuration."""
        if self.scene is None or not self.scene.ngeom:
            return False
        data = mujoco.MjData(self.scene)
        for row in q:
            data.qpos[: len(row)] = row
            mujoco.mj_fwdPosition(self.scene, data)
            if any(data.contact[k].dist < 0 for k in range(data.ncon)):
                return True
        return False
