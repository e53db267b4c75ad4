"""Dictionaries of basis functions for friction, springs, drag, motors and contact."""

import numpy as np

from truesim.core.typing import Float

TRANSITION_SPEEDS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Speeds at which friction changes, as fractions of the highest speed."""
HIGHEST_PERCENTILE = 95
"""Percentile that counts as the highest speed or force."""


def friction_functions(v: Float[np.ndarray, "segments intervals"]) -> Float[np.ndarray, "segments intervals own"]:
    """Odd functions of a velocity: linear, saturating, and Stribeck-like."""
    fast = np.percentile(np.abs(v), HIGHEST_PERCENTILE) + 1e-12
    x = [v / (part * fast) for part in TRANSITION_SPEEDS]
    return np.stack([v, *(np.tanh(s) for s in x), *(s * np.exp(-0.5 * s**2) for s in x)], axis=-1)


def load_functions(motor: np.ndarray, load: np.ndarray, v: np.ndarray) -> Float[np.ndarray, "segments intervals own"]:
    """Functions of speed, motor torque and load for friction bounds."""
    fast = np.percentile(np.abs(v), HIGHEST_PERCENTILE) + 1e-12
    slow = [np.exp(-((v / (part * fast)) ** 2)) for part in TRANSITION_SPEEDS]
    turning = np.tanh(v / (TRANSITION_SPEEDS[1] * fast))
    torques = [np.abs(motor), np.abs(load), np.abs(motor - load), turning * motor, turning * load]
    return np.stack([np.ones_like(v), np.abs(v), *slow, *torques], axis=-1)


def polynomials(q: Float[np.ndarray, "segments intervals"], degree: int) -> Float[np.ndarray, "segments intervals own"]:
    """Chebyshev polynomials over the range of motion, including the constant."""
    low, high = q.min(), q.max()
    return np.polynomial.chebyshev.chebvander((2 * q - low - high) / (high - low + 1e-12), degree)


def drag_wrenches(
    velocity: Float[np.ndarray, "segments intervals 6"], com: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "segments intervals 6 own"]:
    """Wrenches at the body's origin, linear and quadratic in the linear and angular velocity of its center of mass."""
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


def motor_functions(force: np.ndarray, speed: np.ndarray) -> Float[np.ndarray, "segments intervals own"]:
    """Functions of a force that saturate or fall with speed."""
    strong = np.percentile(np.abs(force), HIGHEST_PERCENTILE) + 1e-12
    bent = [np.tanh(force / (part * strong)) for part in (0.1, 0.3, 1.0)]
    return np.stack([force, *bent, force * np.abs(speed), speed * np.abs(force)], axis=-1)


def contact_friction_forces(slip: Float[np.ndarray, "segments intervals points 2"], normal: np.ndarray) -> np.ndarray:
    """Friction forces against the slip, as fractions of the normal force, for several transition speeds."""
    speed = np.linalg.norm(slip, axis=-1)
    sliding = speed[normal > 0]
    fast = (np.percentile(sliding, HIGHEST_PERCENTILE) if sliding.size else 1.0) + 1e-12
    level = np.stack([np.tanh(speed / (part * fast)) for part in TRANSITION_SPEEDS], axis=-1)
    along = (normal / np.maximum(speed, 1e-12))[..., None] * slip
    return -along[..., None] * level[..., None, :]
