"""Recorded orientations: normalization, consistent signs and relative rotations, over all samples at once."""

import numpy as np

from truesim.core.typing import Float


def make_continuous(q: Float[np.ndarray, "samples 4"]) -> Float[np.ndarray, "samples 4"]:
    """Unit quaternions with consistent signs: of q and -q, the one nearer to the previous sample.

    A sample with a missing component, or of zero length, becomes NaN.
    """
    length = np.linalg.norm(q, axis=1)
    known = np.isfinite(length) & (length > 0)
    result = np.full_like(q, np.nan)
    unit = q[known] / length[known, None]
    turns = np.sign(np.sum(unit[1:] * unit[:-1], axis=1))
    turns[turns == 0] = 1.0
    result[known] = unit * np.concatenate([[1.0], np.cumprod(turns)])[: len(unit), None]
    return result


def product(p: Float[np.ndarray, "*#n 4"], q: Float[np.ndarray, "*#n 4"]) -> Float[np.ndarray, "... 4"]:
    """Products `p q` of quaternions."""
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


def relative_rotations(
    start: Float[np.ndarray, "*#n 4"], end: Float[np.ndarray, "*#n 4"]
) -> Float[np.ndarray, "... 3"]:
    """Shortest rotation vectors from `start` to `end`, in the axes of `start` [rad]."""
    turn = product(start * np.array([1.0, -1.0, -1.0, -1.0]), end)
    turn = np.where(turn[..., :1] < 0, -turn, turn)
    sine = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
    small = sine < 1e-12
    scale = np.where(small, 2.0, 2 * np.arctan2(sine, turn[..., :1]) / np.where(small, 1.0, sine))
    return scale * turn[..., 1:]
