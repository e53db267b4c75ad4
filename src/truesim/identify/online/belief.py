"""What is believed of parameters and state while samples arrive: an iterated extended Kalman filter, chunk by chunk.

The unknowns are the coordinates of the parameters and a small move of the state, z = (theta, x). One chunk of samples
is one stretch of multiple shooting: simulated from the believed state, it gives residuals r, their derivatives J by z,
and the state at its end with its derivatives X. With the belief's covariance P and the sensors' noise R it leaves

    A = P^-1 + J^T R^-1 J,    z <- z - A^-1 (J^T R^-1 r + P^-1 (z - z0)),

and the state at the end of the chunk is the state of the next, so that P <- F A^-1 F^T + Q with F = [[1, 0], [X]].
Several beliefs, one for each hypothesis of what has changed, are lanes of the same kernel call.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identify.normal import ASTRAY, huber_weights
from truesim.identify.problem import Problem
from truesim.identify.shooting import Stretch

ITERATIONS = 2
"""Linearisations of each chunk at most: at the belief before it, and where the one before came to."""
NEAR = 0.1
"""A step in which no parameter's coordinate moves further than this needs no other linearisation."""
ROBUST = 4.0
"""Residuals beyond this many standard deviations count linearly."""
FAR = 1e100
"""Derivatives of simulations that went astray are cut here, so that what follows stays finite."""
FAINT = 1e-10
"""What is added to the diagonal of a correlation matrix, so that rounding cannot make it indefinite."""


class Beliefs(NamedTuple):
    """Gaussian beliefs side by side, one for each hypothesis."""

    theta: Float[np.ndarray, "lanes size"]
    """Coordinates of the parameters."""
    q: Float[np.ndarray, "lanes nq"]
    """Configuration now."""
    v: Float[np.ndarray, "lanes nv"]
    """Velocity now."""
    covariance: Float[np.ndarray, "lanes unknowns unknowns"]
    """Of the coordinates, then of the state in its tangent space."""

    def lane(self, k: int) -> "Beliefs":
        """One of them, as a row of one."""
        return Beliefs(*(x[k : k + 1] for x in self))

    @property
    def finite(self) -> Bool[np.ndarray, "lanes"]:
        """Which of them stayed finite."""
        return np.logical_and.reduce([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in self])


def joined(beliefs: list[Beliefs]) -> Beliefs:
    """Several as one."""
    return Beliefs(*(np.concatenate(parts) for parts in zip(*beliefs, strict=True)))


class Chunk(NamedTuple):
    """Consecutive samples, all of one length."""

    time: float
    """Stamp of the sample after its last [s]."""
    stretch: Stretch
    """For the simulator; its state is not used."""
    valid: Bool[np.ndarray, "intervals rows"]
    """Which rows of the residual were measured."""

    @property
    def seconds(self) -> float:
        """How long it lasts [s]."""
        return float(self.stretch.intervals.duration.sum())


class Learned(NamedTuple):
    """What a chunk taught."""

    beliefs: Beliefs
    """At its end."""
    evidence: Float[np.ndarray, "lanes"]
    """Logarithm of the chunk's probability under each hypothesis, up to what they share."""
    surprise: float
    """How far the first lane's prediction was off, root mean square in units of the noise."""
    squares: Float[np.ndarray, "intervals rows"]
    """Expected squares of the noise in the first lane; NaN where nothing was measured."""
    correction: Float[np.ndarray, "nx"]
    """How far the chunk moved the state of the first lane at its start."""
    expected: Float[np.ndarray, "nx"]
    """Standard deviation of that, as believed before the chunk."""
    gain: Float[np.ndarray, "nx"]
    """How much of a departure of the state the chunk corrects."""


def learn(problem: Problem, before: Beliefs, chunk: Chunk, noise: Float[np.ndarray, "rows"]) -> Learned:
    """The beliefs after one more chunk.

    Args:
        problem: Gives the kernel and the bounds.
        before: What was believed.
        chunk: The samples.
        noise: Standard deviation of each row of the residual.
    """
    size, nv = before.theta.shape[1], before.v.shape[1]
    scale, information, log_det = _inverse(before.covariance)
    move = np.zeros((len(before.theta), size + 2 * nv))
    surprise = np.nan
    for _ in range(ITERATIONS):
        theta, q, v = _moved(problem, before, move)
        shot, sensitivity = problem.kernel(theta, np.zeros((len(q), 0)), _side_by_side(chunk.stretch, q, v))
        r, J, weighted = _weighted(chunk, noise, shot.residual, sensitivity.residual * scale[:, None, None])
        surprise = _rms(chunk, noise, shot.residual[0]) if np.isnan(surprise) else surprise
        A = information + J.transpose(0, 2, 1) @ J
        pull = (information @ (move / scale)[..., None])[..., 0]
        gradient = (J.transpose(0, 2, 1) @ weighted[..., None])[..., 0] + pull
        cost = (r**2).sum(axis=1) + ((move / scale) * pull).sum(axis=1)
        spread = np.linalg.inv(A)
        step = -(spread @ gradient[..., None])[..., 0]
        reached, move = move, move + step * scale
        if not np.abs((step * scale)[:, :size]).max(initial=0.0) > NEAR:
            break
    after = spread * scale[:, :, None] * scale[:, None]
    move = _within(problem, before.theta, move, after)
    evidence = -0.5 * (cost + (gradient * step).sum(axis=1) + np.linalg.slogdet(A)[1] + log_det)
    stay = np.broadcast_to(np.eye(size, size + 2 * nv), (len(move), size, size + 2 * nv))
    F = np.concatenate([stay, sensitivity.state], axis=1)
    onward = (sensitivity.state @ (move - reached)[..., None])[..., 0]
    end = Beliefs(
        before.theta + move[:, :size],
        problem.moved(shot.q, onward[:, :nv]),
        shot.v + onward[:, nv:],
        F @ after @ F.transpose(0, 2, 1),
    )
    squares = _expected_squares(chunk, noise, r[0] + J[0] @ step[0], J[0], spread[0])
    correction = move[0, size:]
    variance = before.covariance[0].diagonal()[size:]
    expected = np.maximum(variance - after[0].diagonal()[size:], 0.0)
    return Learned(end, evidence, surprise, squares, correction, np.sqrt(expected), expected / variance)


def forgotten(
    beliefs: Beliefs, share: float, prior: Float[np.ndarray, "size size"], drift: Float[np.ndarray, "nx"]
) -> Beliefs:
    """The beliefs some time later: a share of what is known of the parameters gives way to the prior.

    Args:
        beliefs: The beliefs.
        share: What is forgotten, from 0 to 1.
        prior: Information of the prior, to which they tend if nothing new is seen.
        drift: Standard deviation of what the model leaves out, for each number of the state.
    """
    size = beliefs.theta.shape[1]
    P = beliefs.covariance.copy()
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
    return beliefs._replace(covariance=P)


def _moved(problem: Problem, before: Beliefs, move: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size, nv = before.theta.shape[1], before.v.shape[1]
    low, high = problem.parameters.bounds
    theta = np.clip(before.theta + move[:, :size], low, high)
    return theta, problem.moved(before.q, move[:, size : size + nv]), before.v + move[:, size + nv :]


def _side_by_side(stretch: Stretch, q: np.ndarray, v: np.ndarray) -> Stretch:
    """The same stretch from several states."""
    intervals = type(stretch.intervals)(*(np.broadcast_to(x, (len(q), *x.shape)) for x in stretch.intervals))
    commands, stamps = (np.broadcast_to(x, (len(q), *x.shape)) for x in (stretch.commands, stretch.stamps))
    return Stretch(q, v, commands, stamps, intervals)


def _inverse(P: Float[np.ndarray, "lanes n n"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviations, the inverse in units of them, and the logarithm of the determinant in units of them."""
    scale = np.sqrt(np.einsum("kii->ki", P))
    correlation = P / (scale[:, :, None] * scale[:, None]) + FAINT * np.eye(P.shape[-1])
    return scale, np.linalg.inv(correlation), np.linalg.slogdet(correlation)[1]


def _weighted(chunk: Chunk, noise: np.ndarray, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, ...]:
    """Square roots of the costs of residuals, weighted derivatives, and residuals that go with these."""
    lanes, columns = len(r), J.shape[-1]
    factor = np.where(chunk.valid, 1 / noise, 0.0)
    r = np.clip((r * factor).reshape(lanes, -1), -ASTRAY, ASTRAY)
    w = huber_weights(r, ROBUST)
    costs = np.where(np.abs(r) <= ROBUST, r**2, 2 * ROBUST * np.abs(r) - ROBUST**2)
    J = np.clip(J * factor[..., None], -FAR, FAR).reshape(lanes, -1, columns) * w[..., None]
    return np.sign(r) * np.sqrt(costs), J, r * w


def _within(problem: Problem, theta: np.ndarray, move: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Moves that respect bounds: what is held at its bound moves all that depends on it."""
    size, (low, high) = theta.shape[1], problem.parameters.bounds
    for k in np.flatnonzero(((theta + move[:, :size] < low) | (theta + move[:, :size] > high)).any(axis=0)):
        reached = theta[:, k] + move[:, k]
        excess = np.clip(reached, low[k], high[k]) - reached
        move = move + covariance[:, :, k] * (excess / covariance[:, k, k])[:, None]
    move[:, :size] = np.clip(theta + move[:, :size], low, high) - theta
    return move


def _expected_squares(chunk: Chunk, noise: np.ndarray, r: np.ndarray, J: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Squares of the noise, from what remains of the residuals and from how uncertain the prediction is."""
    unsure = ((J @ spread) * J).sum(axis=1)
    squares = (np.minimum(np.abs(r), ROBUST) ** 2 + unsure).reshape(chunk.valid.shape) * noise**2
    return np.where(chunk.valid, squares, np.nan)


def _rms(chunk: Chunk, noise: np.ndarray, r: np.ndarray) -> float:
    """Root mean square of residuals in units of the noise."""
    return float(np.sqrt(np.mean((r / noise)[chunk.valid] ** 2))) if chunk.valid.any() else 0.0
