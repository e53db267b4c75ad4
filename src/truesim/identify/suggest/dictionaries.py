"""Dictionaries: functions that friction, springs, drag, motors and contact may be made of, one column each."""

import numpy as np

from truesim.core.typing import Float

SPEEDS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Speeds at which friction may change, in parts of the fastest."""
FASTEST = 95
"""Percentile of speeds that counts as the fastest."""


def friction(v: Float[np.ndarray, "stretches intervals"]) -> Float[np.ndarray, "stretches intervals own"]:
    """Odd functions of a speed: straight, saturating, and highest at the onset of motion."""
    fast = np.percentile(np.abs(v), FASTEST) + 1e-12
    x = [v / (part * fast) for part in SPEEDS]
    return np.stack([v, *(np.tanh(s) for s in x), *(s * np.exp(-0.5 * s**2) for s in x)], axis=-1)


def loaded(motor: np.ndarray, load: np.ndarray, v: np.ndarray) -> Float[np.ndarray, "stretches intervals own"]:
    """Bounds of friction: by speed as `friction` has them, by both torques, by which of them drives the other."""
    fast = np.percentile(np.abs(v), FASTEST) + 1e-12
    slow = [np.exp(-((v / (part * fast)) ** 2)) for part in SPEEDS]
    turning = np.tanh(v / (SPEEDS[1] * fast))
    torques = [np.abs(motor), np.abs(load), np.abs(motor - load), turning * motor, turning * load]
    return np.stack([np.ones_like(v), np.abs(v), *slow, *torques], axis=-1)


def powers(q: Float[np.ndarray, "stretches intervals"], degree: int) -> Float[np.ndarray, "stretches intervals own"]:
    """Chebyshev polynomials over the range of motion, the constant included."""
    low, high = q.min(), q.max()
    return np.polynomial.chebyshev.chebvander((2 * q - low - high) / (high - low + 1e-12), degree)


def drag(
    velocity: Float[np.ndarray, "stretches intervals 6"], com: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "stretches intervals 6 own"]:
    """Wrenches at the body's origin: linear and quadratic in the velocity of the centre of mass and in the turning."""
    turn, u = velocity[..., :3], velocity[..., 3:] + np.cross(velocity[..., :3], com)
    columns = []
    for axis in np.eye(3):
        for size in (1.0, np.linalg.norm(u, axis=-1), np.abs(u @ axis)):
            force = (size * (u @ axis))[..., None] * axis
            columns.append(np.concatenate([np.cross(com, force), force], axis=-1))
        for size in (1.0, np.abs(turn @ axis)):
            torque = (size * (turn @ axis))[..., None] * axis
            columns.append(np.concatenate([torque, np.zeros_like(torque)], axis=-1))
    return np.stack(columns, axis=-1)


def curved(force: np.ndarray, speed: np.ndarray) -> Float[np.ndarray, "stretches intervals own"]:
    """A force that saturates, and falls with speed."""
    strong = np.percentile(np.abs(force), FASTEST) + 1e-12
    bent = [np.tanh(force / (part * strong)) for part in (0.1, 0.3, 1.0)]
    return np.stack([force, *bent, force * np.abs(speed), speed * np.abs(force)], axis=-1)


def rubbing(slip: Float[np.ndarray, "stretches intervals points 2"], normal: np.ndarray) -> np.ndarray:
    """Forces against the slip, in parts of the normal force, for several speeds at which they are developed."""
    speed = np.linalg.norm(slip, axis=-1)
    sliding = speed[normal > 0]
    fast = (np.percentile(sliding, FASTEST) if sliding.size else 1.0) + 1e-12
    level = np.stack([np.tanh(speed / (part * fast)) for part in SPEEDS], axis=-1)
    along = (normal / np.maximum(speed, 1e-12))[..., None] * slip
    return -along[..., None] * level[..., None, :]
