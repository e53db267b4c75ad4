"""Noise: what a channel's own roughness says of its sensor, and what residuals say of the whole."""

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identify.layout import Windows
from truesim.identify.normal import Point, Weights
from truesim.identify.problem import Problem

MAD = 1.4826
"""Standard deviation of a Gaussian over its median absolute deviation."""
CLIP = 4.0
"""Residuals beyond this many standard deviations say nothing of the noise."""
ROUNDS = 100
FEWEST, RARE = 8, 0.1
"""Samples that roughness needs, and the share of third differences below which they are too few."""
LEAST = 1e-6
"""Noise of a channel over its range of motion is taken to be at least this."""


def sensor_noise(values: Float[np.ndarray, "samples"]) -> float:
    """Standard deviation of the noise on a smooth signal, from third differences; a quantum's share at least.

    The third difference of white noise of variance s^2 has variance 20 s^2, and a smooth motion adds little to it. It
    is taken where four samples in a row are there, or across those that are missing if that is rare.
    """
    known = values[np.isfinite(values)]
    if len(known) < FEWEST:
        return 0.0
    thirds = np.abs(np.diff(values, 3))
    if np.mean(np.isfinite(thirds)) < RARE:
        thirds = np.abs(np.diff(known, 3))
    values, rough = known, float(np.nanmedian(thirds)) * MAD / np.sqrt(20)
    steps = np.abs(np.diff(values))
    quantum = float(steps[steps > 0].min(initial=np.inf))
    coarse = np.mean(steps == 0) > 0.02  # repeated readings betray a quantised sensor
    return max(rough, quantum / np.sqrt(12) if coarse and np.isfinite(quantum) else 0.0, LEAST * float(np.ptp(values)))


def first_noise(problem: Problem) -> Float[np.ndarray, "rows"]:
    """Noise of every row of the residual, before anything is fitted."""
    rows: list[float] = []
    logs, at = problem.recordings, 0
    for channel in problem.channels:
        for own in channel.sources():
            row = len(rows)
            known = [np.where(r.valid[:, [row]], r.measured[:, at : at + len(channel.columns)], np.nan) for r in logs]
            rows.append(max(_over_logs([columns[:, k] for columns in known]) for k in own))
        at += len(channel.columns)
    return np.maximum(np.array(rows), 1e-9)


def first_allowance(problem: Problem) -> Float[np.ndarray, "nx"]:
    """Scale of a jump of each coordinate and velocity: the roughness of the guessed states."""
    model = problem.simulator.model
    q = [_over_logs([problem.apart(r.q[1:], r.q[:-1])[:, k] for r in problem.recordings]) for k in range(model.nv)]
    v = [_over_logs([r.v[:, k] for r in problem.recordings]) for k in range(model.nv)]
    return np.maximum(np.array([*q, *v]), 1e-7)


def residual_noise(
    problem: Problem, at: Point, weights: Weights, windows: Windows
) -> tuple[Float[np.ndarray, "rows"], Float[np.ndarray, "rows"]]:
    """Standard deviation of the residuals of every row, outliers left aside, and how many were measured.

    Every unknown takes up one degree of freedom; they are shared among the rows by their number of measurements.
    """
    valid = problem.layout.valid & np.isfinite(at.shot.residual)
    r = np.where(valid, at.shot.residual, 0.0)
    count = valid.sum(axis=(0, 1))
    unknowns = problem.parameters.size + windows.shape[0] * 2 * at.nodes.v.shape[1]
    share = max(1 - unknowns / max(count.sum(), 1), 0.1)
    variance = _clipped_mean((r**2).reshape(-1, r.shape[-1]), count, weights.threshold)
    return np.sqrt(variance / share), count


def _clipped_mean(
    squares: Float[np.ndarray, "samples rows"], count: Int[np.ndarray, "rows"], threshold: float
) -> Float[np.ndarray, "rows"]:
    """Mean squares, of which those beyond the clip count as the clip, which itself belongs to the mean.

    Under Gaussian noise next to nothing is clipped. A few wild readings, up to one in sixteen, lose their weight: each
    round lowers the clip, until it is that of the others.
    """
    mean = squares.sum(axis=0) / np.maximum(count, 1)
    clip = min(CLIP, threshold) ** 2
    for _ in range(ROUNDS if np.isfinite(threshold) else 0):
        before, mean = mean, np.minimum(squares, clip * mean).sum(axis=0) / np.maximum(count, 1)
        if np.all(before - mean <= 1e-3 * before):
            break
    return mean


def _over_logs(columns: list[Float[np.ndarray, "samples"]]) -> float:
    each = [sensor_noise(column) for column in columns]
    return float(np.median([s for s in each if s > 0] or [0.0]))
