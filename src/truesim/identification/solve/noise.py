"""Noise: from the roughness of a channel before the fit, and from residuals after it."""

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.normal_equations import Point, ResidualWeights

STD_PER_MAD = 1.4826
"""Standard deviation of a Gaussian divided by its median absolute deviation."""
NOISE_CLIP = 4.0
"""Residuals are clipped at this many standard deviations before noise is estimated. Larger admits more outliers."""
CLIP_ITERATIONS = 100
"""Maximum number of iterations of the clip. Larger converges more closely with many outliers."""
MIN_NOISE_SAMPLES = 8
"""Minimum number of samples for an estimate of noise. Larger gives up on more channels."""
MIN_COMPLETE_DIFFERENCES = 0.1
"""Fraction of complete third differences below which they are taken across gaps. Larger does so more often."""
MIN_RELATIVE_NOISE = 1e-6
"""Lower bound of noise relative to the range of a channel. Larger assumes more noise in exact logs."""


def sensor_noise(values: Float[np.ndarray, " samples"]) -> float:
    """Standard deviation of the noise of a smooth signal, from third differences; at least that of quantization.

    The third difference of white noise with variance s^2 has the variance 20 s^2; a smooth motion adds little. It is
    taken over four consecutive samples, or across missing samples where consecutive ones are rare.
    """
    known = values[np.isfinite(values)]
    if len(known) < MIN_NOISE_SAMPLES:
        return 0.0
    thirds = np.abs(np.diff(values, 3))
    if np.mean(np.isfinite(thirds)) < MIN_COMPLETE_DIFFERENCES:
        thirds = np.abs(np.diff(known, 3))
    values, roughness = known, float(np.nanmedian(thirds)) * STD_PER_MAD / np.sqrt(20)
    steps = np.abs(np.diff(values))
    quantum = float(steps[steps > 0].min(initial=np.inf))
    quantized = np.mean(steps == 0) > 0.02  # repeated values indicate quantization
    quantization = quantum / np.sqrt(12) if quantized and np.isfinite(quantum) else 0.0
    return max(roughness, quantization, MIN_RELATIVE_NOISE * float(np.ptp(values)))


def initial_noise(problem: Problem) -> Float[np.ndarray, " rows"]:
    """Noise of each row of the residual before the fit."""
    rows: list[float] = []
    logs, at = problem.recordings, 0
    for channel in problem.channels:
        for own in channel.sources():
            row = len(rows)
            known = [np.where(r.valid[:, [row]], r.measured[:, at : at + len(channel.columns)], np.nan) for r in logs]
            rows.append(max(_median_noise([columns[:, k] for columns in known]) for k in own))
        at += len(channel.columns)
    return np.maximum(np.array(rows), 1e-9)


def initial_defect_std(problem: Problem) -> Float[np.ndarray, " nx"]:
    """Scale of the defect of each coordinate and velocity: the roughness of the initial guess of the states."""
    model = problem.simulator.model
    q = [
        _median_noise([problem.tangent_space.difference(r.q[1:], r.q[:-1])[:, k] for r in problem.recordings])
        for k in range(model.nv)
    ]
    v = [_median_noise([r.v[:, k] for r in problem.recordings]) for k in range(model.nv)]
    return np.maximum(np.array([*q, *v]), 1e-7)


def residual_noise(
    problem: Problem, at: Point, weights: ResidualWeights, windows: Windows
) -> tuple[Float[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
    """Standard deviation of the residuals of each row, with outliers clipped, and the number of measurements.

    Each unknown uses one degree of freedom; these are distributed over the rows by their number of measurements.
    """
    valid = problem.layout.valid & np.isfinite(at.simulated.residual)
    r = np.where(valid, at.simulated.residual, 0.0)
    count = valid.sum(axis=(0, 1))
    unknowns = problem.parameters.size + windows.shape[0] * 2 * at.nodes.v.shape[1]
    share = max(1 - unknowns / max(count.sum(), 1), 0.1)
    variance = _clipped_mean((r**2).reshape(-1, r.shape[-1]), count, weights.threshold)
    return np.sqrt(variance / share), count


def _clipped_mean(
    squares: Float[np.ndarray, "samples rows"], count: Int[np.ndarray, " rows"], threshold: float
) -> Float[np.ndarray, " rows"]:
    """Mean squares, clipped at a multiple of the mean itself.

    Gaussian noise is hardly clipped. Outliers, up to one in sixteen, lose their influence: each iteration lowers the
    clip, until it is that of the other residuals.
    """
    mean = squares.sum(axis=0) / np.maximum(count, 1)
    clip = min(NOISE_CLIP, threshold) ** 2
    for _ in range(CLIP_ITERATIONS if np.isfinite(threshold) else 0):
        before, mean = mean, np.minimum(squares, clip * mean).sum(axis=0) / np.maximum(count, 1)
        if np.all(before - mean <= 1e-3 * before):
            break
    return mean


def _median_noise(columns: list[Float[np.ndarray, " samples"]]) -> float:
    each = [sensor_noise(column) for column in columns]
    return float(np.median([s for s in each if s > 0] or [0.0]))
