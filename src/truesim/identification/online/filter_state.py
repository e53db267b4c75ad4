"""Iterated extended Kalman filter for parameters and state, chunk by chunk.

The unknowns are the coordinates of the parameters and a small move of the state, z = (theta, x). One chunk of samples
is one segment of multiple shooting: simulated from the estimated state, it gives residuals r, their derivatives J by
z, and the state at its end with its derivatives X. With the prior covariance P and the sensor noise R the update is

    A = P^-1 + J^T R^-1 J,    z <- z - A^-1 (J^T R^-1 r + P^-1 (z - z0)),

and the prediction to the end of the chunk is P <- F A^-1 F^T + Q with F = [[1, 0], [X]]. The filters of all change
hypotheses are one batch. These are undamped Gauss-Newton steps with a fixed number of iterations: the prior keeps them
short, and the cost of a chunk has to be bounded.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.shooting import Segment
from truesim.identification.solve.normal_equations import DIVERGED_RESIDUAL, huber_weights

LINEARIZATIONS = 2
"""Maximum number of linearizations of each chunk."""
RELINEARIZATION_STEP = 0.1
"""A step in which some coordinate of a parameter moves further needs another linearization."""
FILTER_HUBER = 4.0
"""Residuals beyond this many standard deviations count linearly."""
LARGEST_DERIVATIVE = 1e100
"""Derivatives of diverged simulations are clipped here, so that all numbers stay finite."""
CORRELATION_REGULARIZATION = 1e-10
"""Number added to the diagonal of a correlation matrix, so that rounding cannot make it indefinite."""


class FilterState(NamedTuple):
    """Gaussian filter states, one for each change hypothesis."""

    theta: Float[np.ndarray, "batch size"]
    """Coordinates of the parameters."""
    q: Float[np.ndarray, "batch nq"]
    """Current configuration."""
    v: Float[np.ndarray, "batch nv"]
    """Current velocity."""
    covariance: Float[np.ndarray, "batch unknowns unknowns"]
    """Covariance of the coordinates, then of the state in its tangent space."""

    def element(self, k: int) -> "FilterState":
        """One element as a batch of one."""
        return FilterState(*(x[k : k + 1] for x in self))

    @property
    def finite(self) -> Bool[np.ndarray, " batch"]:
        """Mask of the finite elements."""
        return np.logical_and.reduce([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in self])


def concatenate_states(states: list[FilterState]) -> FilterState:
    """Concatenate batches of filter states."""
    return FilterState(*(np.concatenate(parts) for parts in zip(*states, strict=True)))


class SampleChunk(NamedTuple):
    """Consecutive samples; all chunks have the same number of intervals."""

    time: float
    """Time stamp at the end of the chunk [s]."""
    segment: Segment
    """Segment for the simulator; its initial state is not used."""
    valid: Bool[np.ndarray, "intervals rows"]
    """Which rows of the residual were measured."""

    @property
    def seconds(self) -> float:
        """Duration [s]."""
        return float(self.segment.intervals.duration.sum())


class ChunkUpdate(NamedTuple):
    """Filter update of one chunk."""

    states: FilterState
    """Filter states at the end of the chunk."""
    evidence: Float[np.ndarray, " batch"]
    """Log likelihood of the chunk under each hypothesis, up to a common constant."""
    innovation: float
    """Root mean square of the prediction error of the first element, in units of the noise."""
    squares: Float[np.ndarray, "intervals rows"]
    """Expected squared noise of the first element; NaN where nothing was measured."""
    correction: Float[np.ndarray, " nx"]
    """Correction of the initial state of the first element."""
    expected: Float[np.ndarray, " nx"]
    """Expected standard deviation of the correction."""
    gain: Float[np.ndarray, " nx"]
    """Fraction of a deviation of the state that the chunk corrects."""


def filter_chunk(
    problem: Problem, before: FilterState, chunk: SampleChunk, noise: Float[np.ndarray, " rows"]
) -> ChunkUpdate:
    """Update the filter states with one chunk.

    Args:
        problem: The problem; it gives the kernel and the bounds.
        before: Filter states before the chunk.
        chunk: The samples.
        noise: Standard deviation of each row of the residual.
    """
    size, nv = before.theta.shape[1], before.v.shape[1]
    scale, information, log_det = _inverse(before.covariance)
    move = np.zeros((len(before.theta), size + 2 * nv))
    innovation = np.nan
    for _ in range(LINEARIZATIONS):
        theta, q, v = _apply_move(problem, before, move)
        simulated, sensitivity = problem.kernel(theta, np.zeros((len(q), 0)), _broadcast_segment(chunk.segment, q, v))
        r, J, weighted = _huber_residuals(chunk, noise, simulated.residual, sensitivity.residual * scale[:, None, None])
        innovation = _rms(chunk, noise, simulated.residual[0]) if np.isnan(innovation) else innovation
        A = information + J.transpose(0, 2, 1) @ J
        pull = (information @ (move / scale)[..., None])[..., 0]
        gradient = (J.transpose(0, 2, 1) @ weighted[..., None])[..., 0] + pull
        cost = (r**2).sum(axis=1) + ((move / scale) * pull).sum(axis=1)
        posterior = np.linalg.inv(A)
        step = -(posterior @ gradient[..., None])[..., 0]
        reached, move = move, move + step * scale
        if not np.abs((step * scale)[:, :size]).max(initial=0.0) > RELINEARIZATION_STEP:
            break
    after = posterior * scale[:, :, None] * scale[:, None]
    move = _clip_to_bounds(problem, before.theta, move, after)
    evidence = -0.5 * (cost + (gradient * step).sum(axis=1) + np.linalg.slogdet(A)[1] + log_det)
    stay = np.broadcast_to(np.eye(size, size + 2 * nv), (len(move), size, size + 2 * nv))
    F = np.concatenate([stay, sensitivity.state], axis=1)
    onward = (sensitivity.state @ (move - reached)[..., None])[..., 0]
    end = FilterState(
        before.theta + move[:, :size],
        problem.tangent_space.integrate(simulated.q, onward[:, :nv]),
        simulated.v + onward[:, nv:],
        F @ after @ F.transpose(0, 2, 1),
    )
    squares = _expected_squares(chunk, noise, r[0] + J[0] @ step[0], J[0], posterior[0])
    correction = move[0, size:]
    variance = before.covariance[0].diagonal()[size:]
    expected = np.maximum(variance - after[0].diagonal()[size:], 0.0)
    return ChunkUpdate(end, evidence, innovation, squares, correction, np.sqrt(expected), expected / variance)


def forget(
    states: FilterState, share: float, prior: Float[np.ndarray, "size size"], drift: Float[np.ndarray, " nx"]
) -> FilterState:
    """Filter states after some time: a fraction of the information on parameters is replaced by the prior.

    Args:
        states: Filter states.
        share: Forgotten fraction, from 0 to 1.
        prior: Information of the prior, the limit without new measurements.
        drift: Standard deviation of the process noise of each number of the state.
    """
    size = states.theta.shape[1]
    P = states.covariance.copy()
    if share > 0:
        own = P[:, :size, :size]
        follows = P[:, size:, :size] @ np.linalg.inv(own)
        wider = np.linalg.inv((1 - share) * np.linalg.inv(own) + share * prior)
        wider = (wider + wider.transpose(0, 2, 1)) / 2
        more = wider - own
        P[:, :size, :size] = wider
        P[:, size:, :size] = follows @ wider
        P[:, :size, size:] = P[:, size:, :size].transpose(0, 2, 1)
        P[:, size:, size:] += follows @ more @ follows.transpose(0, 2, 1)
    at = np.arange(size, P.shape[1])
    P[:, at, at] += drift**2
    return states._replace(covariance=P)


def _apply_move(problem: Problem, before: FilterState, move: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size, nv = before.theta.shape[1], before.v.shape[1]
    low, high = problem.parameters.bounds
    theta = np.clip(before.theta + move[:, :size], low, high)
    return theta, problem.tangent_space.integrate(before.q, move[:, size : size + nv]), before.v + move[:, size + nv :]


def _broadcast_segment(segment: Segment, q: np.ndarray, v: np.ndarray) -> Segment:
    """Broadcast a segment to several initial states."""
    intervals = type(segment.intervals)(*(np.broadcast_to(x, (len(q), *x.shape)) for x in segment.intervals))
    commands, stamps = (np.broadcast_to(x, (len(q), *x.shape)) for x in (segment.commands, segment.stamps))
    return Segment(q, v, commands, stamps, intervals)


def _inverse(P: Float[np.ndarray, "batch n n"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviations, and the inverse and log determinant of the correlation matrix."""
    scale = np.sqrt(np.einsum("kii->ki", P))
    correlation = P / (scale[:, :, None] * scale[:, None]) + CORRELATION_REGULARIZATION * np.eye(P.shape[-1])
    return scale, np.linalg.inv(correlation), np.linalg.slogdet(correlation)[1]


def _huber_residuals(chunk: SampleChunk, noise: np.ndarray, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, ...]:
    """Signed square roots of the Huber costs, weighted derivatives and weighted residuals."""
    batch, columns = len(r), J.shape[-1]
    factor = np.where(chunk.valid, 1 / noise, 0.0)
    r = np.clip((r * factor).reshape(batch, -1), -DIVERGED_RESIDUAL, DIVERGED_RESIDUAL)
    w = huber_weights(r, FILTER_HUBER)
    costs = np.where(np.abs(r) <= FILTER_HUBER, r**2, 2 * FILTER_HUBER * np.abs(r) - FILTER_HUBER**2)
    J = (
        np.clip(J * factor[..., None], -LARGEST_DERIVATIVE, LARGEST_DERIVATIVE).reshape(batch, -1, columns)
        * w[..., None]
    )
    return np.sign(r) * np.sqrt(costs), J, r * w


def _clip_to_bounds(problem: Problem, theta: np.ndarray, move: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Moves within the bounds: clipped parameters move the others by their conditional mean."""
    size, (low, high) = theta.shape[1], problem.parameters.bounds
    for k in np.flatnonzero(((theta + move[:, :size] < low) | (theta + move[:, :size] > high)).any(axis=0)):
        reached = theta[:, k] + move[:, k]
        excess = np.clip(reached, low[k], high[k]) - reached
        move = move + covariance[:, :, k] * (excess / covariance[:, k, k])[:, None]
    move[:, :size] = np.clip(theta + move[:, :size], low, high) - theta
    return move


def _expected_squares(
    chunk: SampleChunk, noise: np.ndarray, r: np.ndarray, J: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """Expected squared noise: squared residuals after the update plus the variance of the prediction."""
    unsure = ((J @ covariance) * J).sum(axis=1)
    squares = (np.minimum(np.abs(r), FILTER_HUBER) ** 2 + unsure).reshape(chunk.valid.shape) * noise**2
    return np.where(chunk.valid, squares, np.nan)


def _rms(chunk: SampleChunk, noise: np.ndarray, r: np.ndarray) -> float:
    """Root mean square of residuals in units of the noise."""
    return float(np.sqrt(np.mean((r / noise)[chunk.valid] ** 2))) if chunk.valid.any() else 0.0
