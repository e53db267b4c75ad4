"""Velocities and accelerations from positions: a parabola is fitted around every sample.

This is the Savitzky-Golay differentiator for irregular stamps. Windows are centered, so it adds no delay; near the ends
and beside gaps the window keeps its length and shifts inwards.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs.orientation import relative_rotations
from truesim.files.logs.sampling import gap_length

SMOOTHING_HALF_WIDTH = 0.015
"""Default half width of the window [s]; larger values smooth more."""
MIN_HALF_WIDTH_SAMPLES = 2
"""Smallest half width of the window in samples."""
BLOCK_SIZE = 1_000_000
"""Size of the windows that are processed at once, which limits memory for long logs."""


class Derivatives(NamedTuple):
    """Smoothed signal with first and second derivative; NaN where the signal is missing or too short."""

    value: Float[np.ndarray, " samples *n"]
    first: Float[np.ndarray, " samples *n"]
    second: Float[np.ndarray, " samples *n"]


def derivatives(
    time: Float[np.ndarray, " samples"],
    values: Float[np.ndarray, " samples"],
    *,
    half_width: float = SMOOTHING_HALF_WIDTH,
    gap: float | None = None,
) -> Derivatives:
    """Smoothed value, first and second derivative at every sample.

    Args:
        time: Stamps, increasing [s].
        values: The signal; NaN where it is missing.
        half_width: Half width of the window [s]; at least two samples are used on each side.
        gap: Longest step within a window [s]; five sampling periods by default.
    """
    result = np.full((3, len(time)), np.nan)
    for rows in _runs(time, np.isfinite(values), gap):
        result[:, rows] = _differentiate(time[rows], half_width, partial(_numbers, values[rows]))[:, :, 0]
    return Derivatives(*result)


def orientation_derivatives(
    time: Float[np.ndarray, " samples"],
    quaternions: Float[np.ndarray, "samples 4"],
    *,
    half_width: float = SMOOTHING_HALF_WIDTH,
    gap: float | None = None,
) -> Derivatives:
    """Smoothing correction [rad], angular velocity [rad/s] and angular acceleration [rad/s^2] in body axes.

    The parabola is fitted to rotation vectors relative to the sample in the middle of the window. Their first and
    second derivatives there are the angular velocity and acceleration.

    Args:
        time: Stamps, increasing [s].
        quaternions: Unit quaternions, scalar first; NaN where they are missing.
        half_width: See `derivatives`.
        gap: See `derivatives`.
    """
    result = np.full((3, len(time), 3), np.nan)
    for rows in _runs(time, np.all(np.isfinite(quaternions), axis=1), gap):
        result[:, rows] = _differentiate(time[rows], half_width, partial(_rotations, quaternions[rows]))
    return Derivatives(*result)


def _runs(time: np.ndarray, present: np.ndarray, gap: float | None) -> list[np.ndarray]:
    """Present rows, split at gaps and at repeated stamps; runs of fewer than three rows are left out."""
    rows = np.flatnonzero(present)
    if not len(rows):
        return []
    steps = np.diff(time[rows])
    cuts = np.flatnonzero((steps > gap_length(time[rows], gap)) | (steps <= 0)) + 1
    return [run for run in np.split(rows, cuts) if len(run) >= 3]


def _windows(time: np.ndarray, half_width: float) -> np.ndarray:
    """Indices of the samples in the window of every sample; all windows have the same length."""
    count = len(time)
    reach = max(MIN_HALF_WIDTH_SAMPLES, round(half_width / float(np.median(np.diff(time)))))
    length = min(2 * reach + 1, count)
    starts = np.clip(np.arange(count) - reach, 0, count - length)
    return starts[:, None] + np.arange(length)


def _differentiate(
    time: np.ndarray, half_width: float, signal: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Value, first and second derivative at every sample, of shape (3, samples, n).

    Args:
        time: Stamps [s].
        half_width: Half width of the windows [s].
        signal: Values in windows, from the indices of their middles and of their samples.
    """
    windows = _windows(time, half_width)
    blocks = np.array_split(np.arange(len(time)), -(-windows.size // BLOCK_SIZE))
    parts = [_parabolas(time[windows[b]] - time[b, None], signal(b, windows[b])) for b in blocks]
    return np.concatenate(parts, axis=1)


def _numbers(values: np.ndarray, middles: np.ndarray, windows: np.ndarray) -> np.ndarray:
    return values[windows][:, :, None]


def _rotations(quaternions: np.ndarray, middles: np.ndarray, windows: np.ndarray) -> np.ndarray:
    return relative_rotations(quaternions[middles, None], quaternions[windows])


def _parabolas(offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Value, first and second derivative at offset zero of the parabola fitted to each window."""
    scale = np.max(np.abs(offsets), axis=1)
    u = offsets / scale[:, None]
    square = u * u
    products = (np.einsum("sw,sw->s", *pair) for pair in ((u, u), (u, square), (square, square)))
    sums = [np.full(len(u), float(u.shape[1])), u.sum(axis=1), *products]
    normal = np.stack([np.stack(sums[k : k + 3], axis=1) for k in range(3)], axis=1)
    middle = np.take_along_axis(values, np.argmin(np.abs(offsets), axis=1)[:, None, None], axis=1)
    away = values - middle
    moments = np.stack([away.sum(axis=1), *(np.einsum("sw,swn->sn", x, away) for x in (u, square))], axis=1)
    c = np.linalg.solve(normal, moments)
    return np.stack([middle[:, 0] + c[:, 0], c[:, 1] / scale[:, None], 2 * c[:, 2] / scale[:, None] ** 2])
