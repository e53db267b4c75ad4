"""Recorded orientations: unit length, no jumps of sign. NumPy, over all samples at once."""

import numpy as np

from truesim.core.typing import Float


def continuous(q: Float[np.ndarray, "samples 4"]) -> Float[np.ndarray, "samples 4"]:
    """Unit quaternions of which each is the nearer of q and -q to the one before.

    A sample with a missing component, or without length, is missing as a whole (NaN).
    """
    length = np.linalg.norm(q, axis=1)
    known = np.isfinite(length) & (length > 0)
    result = np.full_like(q, np.nan)
    unit = q[known] / length[known, None]
    turns = np.sign(np.sum(unit[1:] * unit[:-1], axis=1))
    turns[turns == 0] = 1.0
    result[known] = unit * np.concatenate([[1.0], np.cumprod(turns)])[: len(unit), None]
    return result


def product(p: Float[np.ndarray, "*n 4"], q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 4"]:
    """The quaternions `p q`."""
    pw, px, py, pz = np.moveaxis(p, -1, 0)
    qw, qx, qy, qz = np.moveaxis(q, -1, 0)
    return np.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )


def relative_rotations(start: Float[np.ndarray, "*n 4"], end: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3"]:
    """Rotation vectors that lead from `start` to `end` the shorter way, in the axes of `start` [rad]."""
    turn = product(start * np.array([1.0, -1.0, -1.0, -1.0]), end)
    turn = np.where(turn[..., :1] < 0, -turn, turn)
    sine = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
    small = sine < 1e-12
    scale = np.where(small, 2.0, 2 * np.arctan2(sine, turn[..., :1]) / np.where(small, 1.0, sine))
    return scale * turn[..., 1:]
