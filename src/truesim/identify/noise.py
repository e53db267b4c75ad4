"""Noise: what a channel's own roughness says of its sensor, and what residuals say of the whole."""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.layout import Windows
from truesim.identify.normal import Point, Weights, huber_weights
from truesim.identify.problem import Problem

MAD = 1.4826
"""Standard deviation of a Gaussian over its median absolute deviation."""
LEAST = 1e-6
"""Noise of a channel over its range of motion is taken to be at least this."""


def sensor_noise(values: Float[np.ndarray, "samples"]) -> float:
    """Standard deviation of the noise on a smooth signal, from third differences; a quantum's share at least.

    The third difference of white noise of variance s^2 has variance 20 s^2, and a smooth motion adds little to it.
    """
    values = values[np.isfinite(values)]
    if len(values) < 8:
        return 0.0
    rough = float(np.median(np.abs(np.diff(values, 3)))) * MAD / np.sqrt(20)
    steps = np.abs(np.diff(values))
    quantum = float(steps[steps > 0].min(initial=np.inf))
    coarse = np.mean(steps == 0) > 0.02  # repeated readings betray a quantised sensor
    return max(rough, quantum / np.sqrt(12) if coarse and np.isfinite(quantum) else 0.0, LEAST * float(np.ptp(values)))


def first_noise(problem: Problem) -> Float[np.ndarray, "rows"]:
    """Noise of every row of the residual, before anything is fitted."""
    rows, at = [], 0
    for channel in problem.channels:
        each = [_over_logs([r.measured[:, at + k] for r in problem.recordings]) for k in range(len(channel.columns))]
        rows += [max(each[k] for k in own) for own in channel.sources()]
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
    """Standard deviation of the residuals of every row, large ones counted less, and how many were measured.

    Every unknown takes up one degree of freedom; they are shared among the rows by their number of measurements.
    """
    valid = problem.layout.valid & np.isfinite(at.shot.residual)
    r = np.where(valid, at.shot.residual, 0.0)
    w = huber_weights(r / weights.noise, weights.threshold)
    count = valid.sum(axis=(0, 1))
    unknowns = problem.parameters.size + windows.shape[0] * 2 * at.nodes.v.shape[1]
    share = max(1 - unknowns / max(count.sum(), 1), 0.1)
    variance = (w**2 * r**2).sum(axis=(0, 1)) / np.maximum(count * share, 1)
    return np.sqrt(variance), count


def _over_logs(columns: list[Float[np.ndarray, "samples"]]) -> float:
    each = [sensor_noise(column) for column in columns]
    return float(np.median([s for s in each if s > 0] or [0.0]))
