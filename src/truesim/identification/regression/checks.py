"""Tests of torque logs before a fit: wrong signs, scales, mounts, encoder zeros and limits, and joints without motion.

The torque of a joint is regressed, with free signs, on the torque that the file's bodies need and on acceleration,
velocity, direction of motion and a constant. Friction that drives the joint betrays a wrong sign; a load factor far
from those of the other joints, a wrong scale; a direction of gravity other than the file's, a wrong mount.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.files.logs import Log
from truesim.identification.regression.errors import BAND, joint_names, rigid_torques
from truesim.identification.regression.gains import MAX_PERCENT, doubted_gain
from truesim.identification.regression.limits import lift_position_limits
from truesim.identification.regression.signals import JointSamples, band_limited, rest_speeds
from truesim.identification.regression.torques import TorqueMap
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

CHECKED_SAMPLES = 400
"""Samples that are looked at. Larger is slower and finds smaller faults."""
SHIFTED_SAMPLES = 100
"""Samples at which other encoder zeros are tried."""
SHIFTS = tuple(np.pi / 6 * np.array([-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5]))
"""Errors of encoder zeros that are tried [rad]."""
MIN_ROWS = 20
"""Moving samples that a joint needs."""
LOADED = 0.5
"""A joint is loaded if gravity makes more than this part of the rest of its torque. Larger tests fewer joints."""
SIGNED = 0.1
"""Load relative to the rest of a joint's torque from which its sign counts. The load of a joint that carries less may
have the wrong sign for a wrong center of mass. Larger doubts less."""
SCALE_RATIO = 1.65
"""Ratio between the load factor of a joint and that of the others from which its scale is doubted. Masses of real files
differ by 1.2. Larger doubts less."""
TURNED = np.radians(35.0)
"""Angle between gravity of the log and of the file from which the mount is doubted [rad]."""
EXPLAINED = 0.5
"""Residual that another zero or mount must leave, relative to the file's. Smaller doubts less."""


@dataclasses.dataclass(frozen=True)
class _JointTest:
    """Regression of one joint's torque on the file's load and its own terms, with free signs."""

    factor: float
    """Coefficient of the file's load; one if file and log agree."""
    viscous: float
    coulomb: float
    share: float
    """Load relative to the rest of the torque."""
    misfit: float
    """Residual relative to the torque."""
    coulomb_std: float

    @property
    def is_inverted(self) -> bool:
        """True if the joint carries the file's load with the wrong sign; a joint without load shows no sign."""
        return self.factor <= 0 and self.share > SIGNED


def check_torques(model: Model, logs: Sequence[Log]) -> list[Finding]:
    """Probable faults of logs of joint torques, as warnings.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    every = band_limited(model, logs, BAND)
    samples = every.at_most(CHECKED_SAMPLES)
    names = joint_names(model)
    found = _limits(model, logs, names)
    if len(samples) < 2 * MIN_ROWS:
        return found
    moving = np.abs(samples.v) > rest_speeds(model)
    found += _motion(samples, moving, names)
    tested = [j for j in range(model.nv) if moving[:, j].sum() >= MIN_ROWS and np.any(samples.torque[:, j])]
    if not tested:
        return found
    load = rigid_torques(model, samples.q, samples.v, samples.a)
    tests = {j: _test(samples, load, moving, j) for j in tested}
    signs = [_sign(names[j]) for j, t in tests.items() if _is_flipped(t)]
    if signs:
        return [*found, *signs]
    loaded = {j: t for j, t in tests.items() if t.share > LOADED}
    found += (
        _mount_or_zero(model, samples, moving, tests, names)
        or _scales(model, samples, loaded, names)
        or _contradiction(model, every, names)
    )
    return found


def _contradiction(model: Model, samples: JointSamples, names: Sequence[str]) -> list[Finding]:
    """A joint whose torque contradicts those of the others, which carry the same bodies."""
    doubted = doubted_gain(model, samples)
    if doubted is None:
        return []
    if doubted.joint is None:
        return [_percent_finding()]
    if doubted.factor < 0:
        text = "it contradicts the torques of the other joints unless its sign is changed: check its sign."
        return [Finding(names[doubted.joint], text, "warning")]
    text = (
        f"its torque is about {doubted.factor:.2g} times what fits to the torques of the other joints: check its gear "
        "ratio, torque constant and unit."
    )
    return [Finding(names[doubted.joint], text, "warning")]


def _limits(model: Model, logs: Sequence[Log], names: Sequence[str]) -> list[Finding]:
    """Torques and positions beyond the limits of the file, which would stop a simulation there."""
    found, torques = [], TorqueMap.of(model)
    links = [link for link in model.topology.links if link.joint >= 0]
    lifted = np.any(
        np.asarray(lift_position_limits(model, logs).joints.range) != np.asarray(model.joints.range), axis=1
    )
    for j, link in enumerate(links):
        if lifted[link.joint]:
            low, high = np.asarray(model.joints.range)[link.joint]
            text = f"its position leaves the file's range of {low:.3g} to {high:.3g}: the limit is lifted."
            found.append(Finding(names[j], text, "warning"))
        high = np.asarray(model.joints.force_range)[link.joint, 1]
        if model.joints.force_limited[link.joint]:
            peak = max(float(np.abs(torques.joint(log, j, log.time)).max(initial=0.0)) for log in logs)
            if peak > 1.001 * high:
                text = f"its torque reaches {peak:.4g}, but the file's effort limit is {high:.4g}: the limit is lifted."
                found.append(Finding(names[j], text, "warning"))
    return found


def _motion(samples: JointSamples, moving: Bool[np.ndarray, "samples joints"], names: Sequence[str]) -> list[Finding]:
    """Joints that never move, or only one way."""
    found = []
    for j, name in enumerate(names):
        v = samples.v[moving[:, j], j]
        if len(v) < MIN_ROWS:
            text = "hardly moves: the logs determine neither its friction nor its armature."
            found.append(Finding(name, text, "warning"))
        elif min(np.mean(v > 0), np.mean(v < 0)) < 0.02:
            text = "moves one way only: its friction cannot be told from an offset and gravity; add runs the other way."
            found.append(Finding(name, text, "warning"))
    return found


def _columns(samples: JointSamples, rows: np.ndarray, j: int) -> Float[np.ndarray, "rows 4"]:
    """Acceleration, velocity, direction of motion and a constant."""
    v = samples.v[rows, j]
    return np.stack([samples.a[rows, j], v, samples.direction[rows, j], np.ones_like(v)], axis=1)


def _test(samples: JointSamples, load: np.ndarray, moving: np.ndarray, j: int) -> _JointTest:
    rows = moving[:, j]
    own, torque = _columns(samples, rows, j), samples.torque[rows, j]
    x, std = _ridge(np.column_stack([load[rows, j], own]), torque)
    residual = torque - np.column_stack([load[rows, j], own]) @ x
    varying = load[rows, j] - load[rows, j].mean()
    noise = float(np.sqrt(residual @ residual / max(len(torque) / 10, 1)))
    return _JointTest(
        factor=float(x[0]),
        viscous=float(x[2]),
        coulomb=float(x[3]),
        share=float(np.linalg.norm(varying) / (np.linalg.norm(torque - x[0] * load[rows, j]) + 1e-12)),
        misfit=float(np.linalg.norm(residual) / (np.linalg.norm(torque) + 1e-12)),
        coulomb_std=noise * float(std[3]),
    )


def _ridge(A: Float[np.ndarray, "rows n"], b: Float[np.ndarray, " rows"]) -> tuple[np.ndarray, np.ndarray]:
    """Least squares with a small ridge on scaled columns, and standard deviations at unit noise."""
    scale = np.linalg.norm(A, axis=0) + 1e-12
    inverse = np.linalg.inv((A / scale).T @ (A / scale) + 1e-4 * np.eye(len(scale)))
    return inverse @ ((A / scale).T @ b) / scale, np.sqrt(np.diag(inverse)) / scale


def _is_flipped(test: _JointTest) -> bool:
    """True if friction drives the joint: dry friction is significantly negative, and viscous friction no better."""
    return bool(test.coulomb < -4 * test.coulomb_std and test.viscous <= 0)


def _sign(name: str) -> Finding:
    return Finding(
        name, "friction comes out negative: the sign of its torque, or of its position, is wrong.", "warning"
    )


def _scales(model: Model, samples: JointSamples, loaded: dict[int, _JointTest], names: Sequence[str]) -> list[Finding]:
    """Joints whose torque has another scale than the file's masses ask for."""
    found = []
    factors = {j: t.factor for j, t in loaded.items() if t.factor > 0}
    if len(factors) > 1 and (finding := _percent(model, samples, factors)):
        return [finding]
    for j, factor in factors.items() if len(factors) > 1 else ():
        others = float(np.median([f for k, f in factors.items() if k != j]))
        ratio = factor / others
        doubtful = max(ratio, 1 / ratio) > SCALE_RATIO and max(factor, 1 / factor) > SCALE_RATIO
        if doubtful and loaded[j].misfit < 0.5:
            text = (
                f"its torque is {factor:.2g} times what the file's masses need, {ratio:.2g} times that of the other "
                "joints: check its gear ratio, torque constant and unit."
            )
            found.append(Finding(names[j], text, "warning"))
    return found or _common_scale(factors)


def _percent(model: Model, samples: JointSamples, factors: dict[int, float]) -> Finding | None:
    """Torques in percent of the effort limits: factors agree, with each other or with one, only if converted."""
    links = [link for link in model.topology.links if link.joint >= 0]
    effort = {j: float(np.asarray(model.joints.force_range)[links[j].joint, 1]) for j in factors}
    if any(not model.joints.force_limited[links[j].joint] or effort[j] <= 0 for j in factors):
        return None
    if np.abs(samples.torque).max() > MAX_PERCENT:
        return None
    raw = np.log(list(factors.values()))
    converted = np.log([factors[j] * effort[j] / 100 for j in factors])
    unequal = np.ptp(raw) > np.log(1.8) and np.ptp(converted) < np.ptp(raw) / 2
    shifted = np.abs(raw).min() > np.log(SCALE_RATIO) and np.abs(converted).max() < np.log(SCALE_RATIO)
    if (unequal and np.abs(converted).max() < np.log(2.0)) or shifted:
        return _percent_finding()
    return None


def _percent_finding() -> Finding:
    text = "they fit the file's masses if they are percent of the effort limits; convert them in a mapping file."
    return Finding("torques", text, "warning")


def _common_scale(factors: dict[int, float]) -> list[Finding]:
    """Torques of all joints on another scale than the file's masses."""
    logs = np.log(list(factors.values()))
    if len(logs) < 2 or not (np.all(logs > np.log(SCALE_RATIO)) or np.all(logs < -np.log(SCALE_RATIO))):
        return []
    text = (
        f"they are {np.exp(np.median(logs)):.2g} times what the file's masses need at every loaded joint: check their "
        "unit, and the masses of the file."
    )
    return [Finding("torques", text, "warning")]


def _residual(samples: JointSamples, load: np.ndarray, moving: np.ndarray, joints: Sequence[int]) -> float:
    """Squared relative residual of some joints; one for a joint whose load clearly has the wrong sign."""
    tests = [_test(samples, load, moving, j) for j in joints]
    return float(sum(1.0 if t.is_inverted else t.misfit**2 for t in tests))


def _mount_or_zero(
    model: Model, samples: JointSamples, moving: np.ndarray, tests: dict[int, _JointTest], names: Sequence[str]
) -> list[Finding]:
    """Another direction of gravity or encoder zero, whichever explains the torques better."""
    few = samples.at_most(SHIFTED_SAMPLES)
    active = np.abs(few.v) > rest_speeds(model)
    joints = [j for j in tests if active[:, j].sum() > 8]
    gravity, zero = _mount(model, samples, moving, tests), _zeros(few, model, active, joints, names)
    if gravity is None:
        return [] if zero is None else [zero[1]]
    mounted = dataclasses.replace(model, gravity=gravity)
    left = _residual(few, rigid_torques(mounted, few.q, few.v, few.a), active, joints)
    if zero is not None and zero[0] < left:
        return [zero[1]]
    shown = ", ".join(f"{x:.2g}" for x in gravity)
    text = f"the torques ask for gravity along ({shown}) m/s^2 in the base's frame: mounted otherwise than in the file?"
    return [Finding("gravity", text, "warning")]


def _mount(
    model: Model, samples: JointSamples, moving: np.ndarray, tests: dict[int, _JointTest]
) -> Float[np.ndarray, "3"] | None:
    """Gravity that explains the torques, if it has another direction than the file's [m/s^2]."""
    size = float(np.linalg.norm(model.gravity))
    if size == 0:
        return None
    still = np.zeros_like(samples.v)
    weightless = dataclasses.replace(model, gravity=np.zeros(3))
    moved = rigid_torques(weightless, samples.q, samples.v, samples.a)
    unit = [rigid_torques(dataclasses.replace(model, gravity=size * e), samples.q, still, still) for e in np.eye(3)]
    H, g, total = np.zeros((3, 3)), np.zeros(3), 0.0
    for j in tests:
        rows = moving[:, j]
        own, torque = _columns(samples, rows, j), samples.torque[rows, j] - moved[rows, j]
        Q = np.linalg.qr(own)[0]
        A = np.stack([u[rows, j] for u in unit], axis=1)
        A, torque = A - Q @ (Q.T @ A), torque - Q @ (Q.T @ torque)
        weight = 1 / max(torque @ torque, 1e-12)
        explained = weight * torque @ A @ np.linalg.lstsq(A, torque, rcond=1e-6)[0]
        if explained > EXPLAINED:  # others carry too little to show a direction
            H, g, total = H + weight * A.T @ A, g + weight * A.T @ torque, total + 1.0
    if total == 0:
        return None
    values = np.linalg.eigvalsh(H)
    if values[0] < 1e-3 * values[-1]:
        return None
    direction, now = np.linalg.solve(H, g), np.asarray(model.gravity, float) / size
    left, kept = total - g @ direction, total - np.maximum(g @ now, 0.0) ** 2 / (now @ H @ now)
    angle = float(np.arccos(np.clip(direction @ now / np.linalg.norm(direction), -1, 1)))
    if angle < TURNED or not 0.3 < np.linalg.norm(direction) < 3 or left > EXPLAINED * kept:
        return None
    return size * direction / np.linalg.norm(direction)


def _zeros(
    few: JointSamples, model: Model, active: np.ndarray, joints: Sequence[int], names: Sequence[str]
) -> tuple[float, Finding] | None:
    """Residual and finding of the encoder zero that explains the torques much better than the file's."""
    plain = _residual(few, rigid_torques(model, few.q, few.v, few.a), active, joints)
    best: tuple[float, int, float] | None = None
    for j in range(model.nv):
        q = np.repeat(few.q[None], len(SHIFTS), axis=0)
        q[:, :, j] += np.array(SHIFTS)[:, None]
        v, a = (np.tile(x, (len(SHIFTS), 1)) for x in (few.v, few.a))
        loads = rigid_torques(model, q.reshape(-1, model.nv), v, a).reshape(q.shape)
        for shift, load in zip(SHIFTS, loads, strict=True):
            left = _residual(few, load, active, joints)
            if best is None or left < best[0]:
                best = left, j, float(shift)
    if best is None or best[0] > EXPLAINED**2 * plain or plain < 0.02 * len(joints):
        return None
    text = f"its position fits the torques much better if {np.degrees(best[2]):.0f} degrees are added: check its zero."
    return best[0], Finding(names[best[1]], text, "warning")
