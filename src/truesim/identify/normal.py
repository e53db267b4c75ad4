"""Gauss-Newton: the normal equations of a multiple-shooting problem around one point.

Unknowns are the coordinates of the parameters and a small move of every stretch's first state. The cost is half the sum
of squares of residuals over their noise, of jumps between joined stretches over their allowance, and of priors.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identify.beliefs import beliefs, penalty
from truesim.identify.layout import Nodes, Windows
from truesim.identify.problem import Problem
from truesim.identify.shooting import Sensitivity, Shot
from truesim.numerics.bordered import Chains

STILL = 1e-7
"""Standard deviation of what is guessed to rest, at the start of a window [m, rad, m/s or rad/s]."""
ASTRAY = 1e4
"""Residual, in units of its noise, of a stretch whose simulation did not stay finite."""


@dataclasses.dataclass(frozen=True)
class Weights:
    """What counts how much."""

    noise: Float[np.ndarray, "rows"]
    """Standard deviation of each row of the residual."""
    allowance: Float[np.ndarray, "nx"]
    """Standard deviation of a jump between joined stretches."""
    threshold: float = np.inf
    """Residuals beyond this many standard deviations count linearly (Huber)."""


@dataclasses.dataclass(frozen=True)
class Point:
    """A choice of the unknowns, and everything that the normal equations need there."""

    theta: Float[np.ndarray, "size"]
    nodes: Nodes
    shot: Shot
    sensitivity: Sensitivity


@dataclasses.dataclass(frozen=True)
class Normal:
    """The normal equations at a point."""

    cost: float
    chains: Chains
    corner: Float[np.ndarray, "size size"]
    gradient: Float[np.ndarray, "size"]


def point(problem: Problem, theta: Float[np.ndarray, "size"], nodes: Nodes) -> Point:
    """Simulates and differentiates all stretches."""
    return Point(theta, nodes, *problem.differentiate(theta, nodes))


def remembering(problem: Problem, at: Point) -> Point:
    """The same point with networks that remember, at the start of each stretch, the one before it."""
    memory = np.roll(at.shot.memory, 1, axis=0)
    memory[~problem.layout.follows] = np.nan
    return point(problem, at.theta, dataclasses.replace(at.nodes, memory=memory))


def scaled_residual(problem: Problem, at: Point, weights: Weights) -> Float[np.ndarray, "stretches intervals rows"]:
    """Residuals in units of their noise, zero where nothing was measured."""
    r = np.where(problem.layout.valid, at.shot.residual / weights.noise, 0.0)
    return np.where(np.isfinite(r), np.clip(r, -ASTRAY, ASTRAY), ASTRAY)


def huber_weights(r: Float[np.ndarray, "..."], threshold: float) -> Float[np.ndarray, "..."]:
    """Factors that make squares of large residuals grow linearly only."""
    return np.sqrt(threshold / np.maximum(np.abs(r), threshold)) if np.isfinite(threshold) else np.ones_like(r)


def jumps(problem: Problem, at: Point) -> Float[np.ndarray, "stretches nx"]:
    """From the first state of the next stretch to the end of this one, in the tangent space."""
    q_next, v_next = np.roll(at.nodes.q, -1, axis=0), np.roll(at.nodes.v, -1, axis=0)
    return np.concatenate([problem.apart(at.shot.q, q_next), at.shot.v - v_next], axis=1)


def cost(problem: Problem, at: Point, weights: Weights, windows: Windows) -> float:
    """Half the sum of squares."""
    r = scaled_residual(problem, at, weights)
    k = weights.threshold
    squares = np.where(np.abs(r) <= k, r**2, 2 * k * np.abs(r) - k**2) if np.isfinite(k) else r**2
    c = scaled_jumps(problem, at, weights, windows)
    lifts = _lifts(problem, at, windows)
    return float(squares.sum() + (c**2).sum() + (lifts**2).sum()) / 2 + penalty(problem, at.theta)[0]


def normal(problem: Problem, at: Point, weights: Weights, windows: Windows) -> Normal:
    """The normal equations of first states and solved parameters."""
    p, nx = problem.solved.size, 2 * at.nodes.v.shape[1]
    r = scaled_residual(problem, at, weights)
    w = huber_weights(r, weights.threshold)
    c = scaled_jumps(problem, at, weights, windows)
    allowed = np.where(windows.joined[:, None], 1 / weights.allowance, 0.0)
    K = np.where(np.isfinite(at.sensitivity.state), at.sensitivity.state, 0.0) * allowed[..., None]
    flat = np.concatenate([weighted_jacobian(problem, at, weights, w), K], axis=1)
    along = flat.transpose(0, 2, 1)
    g = (along @ np.concatenate([(r * w).reshape(len(r), -1), c], axis=1)[..., None])[..., 0]
    H = along @ flat
    columns = problem.columns[problem.layout.log]
    own = columns.shape[1]
    D = H[:, own:, own:].copy()
    arrival = np.roll(allowed, 1, axis=0)  # jumps pull at the next stretch's first state too
    rest = np.where(_at_rest(problem, windows), 1 / STILL, 0.0)
    D[:, np.arange(nx), np.arange(nx)] += arrival**2 + rest**2
    gx = g[:, own:] - arrival * np.roll(c, 1, axis=0) + rest * _lifts(problem, at, windows)
    border = _spread(H[:, own:, :own], columns, p)
    border -= arrival[..., None] * np.roll(_spread(K[..., :own], columns, p), 1, axis=0)
    coupling = -K[..., own:].transpose(0, 2, 1) * allowed[:, None, :]
    b, B = beliefs(problem, at.theta)
    corner, gradient = B.T @ B, B.T @ b
    for log in range(len(problem.recordings)):
        mine, where = problem.layout.log == log, problem.columns[log]
        corner[np.ix_(where, where)] += H[mine, :own, :own].sum(axis=0)
        gradient[where] += g[mine, :own].sum(axis=0)
    chains = Chains(
        diagonal=_with_identity(windows, windows.padded(D)),
        coupling=windows.padded(coupling),
        border=windows.padded(border),
        gradient=windows.padded(gx),
    )
    return Normal(cost(problem, at, weights, windows), chains, corner, gradient)


def weighted_jacobian(
    problem: Problem, at: Point, weights: Weights, w: Float[np.ndarray, "stretches intervals rows"]
) -> Float[np.ndarray, "stretches residuals columns"]:
    """Derivatives of the scaled residuals; zero where a simulation did not stay finite."""
    J = at.sensitivity.residual
    factor = np.where(problem.layout.valid, w / weights.noise, 0.0)
    finite = np.isfinite(at.sensitivity.state).all(axis=(1, 2)) & np.isfinite(at.shot.residual).all(axis=(1, 2))
    if not finite.all():
        J = np.where((finite[:, None, None, None]) & np.isfinite(J), J, 0.0)
    return (J * factor[..., None]).reshape(len(J), -1, J.shape[-1])


def scaled_jumps(problem: Problem, at: Point, weights: Weights, windows: Windows) -> Float[np.ndarray, "stretches nx"]:
    """Jumps over their allowance; zero where stretches are not joined."""
    c = np.where(windows.joined[:, None], jumps(problem, at) / weights.allowance, 0.0)
    return np.where(np.isfinite(c), np.clip(c, -ASTRAY, ASTRAY), ASTRAY)


def _at_rest(problem: Problem, windows: Windows) -> Bool[np.ndarray, "stretches nx"]:
    """Which numbers of first states are held where they were guessed: where windows begin."""
    return problem.resting & (windows.place == 0)[:, None]


def _lifts(problem: Problem, at: Point, windows: Windows) -> Float[np.ndarray, "stretches nx"]:
    """Departures of first states from rest where that is guessed, over what is allowed."""
    if not problem.resting.any():
        return np.zeros_like(problem.resting, float)
    guess = problem.first_nodes()
    moves = np.concatenate([problem.apart(at.nodes.q, guess.q), at.nodes.v - guess.v], axis=1)
    return np.where(_at_rest(problem, windows), moves / STILL, 0.0)


def _spread(blocks: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray:
    """Columns of one log's parameters at their places among all."""
    out = np.zeros((*blocks.shape[:-1], size))
    np.put_along_axis(out, np.broadcast_to(columns[:, None], blocks.shape), blocks, axis=-1)
    return out


def _with_identity(windows: Windows, diagonal: np.ndarray) -> np.ndarray:
    """Ones on the diagonal beyond a window's end."""
    used = windows.padded(np.ones(len(windows.window)))
    diagonal += (1 - used)[..., None, None] * np.eye(diagonal.shape[-1])
    return diagonal
