"""Normal equations of a multiple-shooting problem at a point (Gauss-Newton).

Unknowns are the coordinates of the parameters and a tangent vector of each segment's initial state. The cost is half
the sum of squares of residuals, of defects between joined segments and of priors, each in standard deviations.

Memory is bounded: derivatives of the residuals are held for one tile of segments at a time. A problem that fits in one
tile keeps those of its points. In a larger one, points are simulated without derivatives, and these are computed when
the equations need them, tile by tile.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes, Windows
from truesim.identification.problem.shooting import Sensitivity, SimulatedSegment
from truesim.identification.solve.prior import penalty, prior_residuals
from truesim.optimize.bordered import Chains

ANCHOR_STD = 1e-7
"""Standard deviation of anchored components of the initial state of a window [m, rad, m/s or rad/s]. Larger lets
unmeasured bodies move away from their initial guess."""
TILE_BYTES = 1 << 24
"""Size of the derivatives that are held at a time. Larger needs more memory and simulates fewer segments twice."""
DIVERGED_RESIDUAL = 1e4
"""Residual of a simulation that did not stay finite, and maximum of all others, in units of the noise. Larger penalizes
divergence more."""


@dataclasses.dataclass(frozen=True)
class ResidualWeights:
    """Standard deviations of residuals and defects, and the threshold of the robust loss."""

    noise: Float[np.ndarray, " rows"]
    """Standard deviation of each row of the residual."""
    defect_std: Float[np.ndarray, " nx"]
    """Standard deviation of a defect between joined segments."""
    threshold: float = np.inf
    """Residuals beyond this many standard deviations count linearly (Huber)."""


@dataclasses.dataclass(frozen=True)
class Point:
    """Values of the unknowns, with the simulated segments."""

    theta: Float[np.ndarray, " size"]
    nodes: Nodes
    simulated: SimulatedSegment
    sensitivity: Sensitivity | None = None
    """Derivatives of all segments, if they fit in few tiles; `linearize` computes all others."""


@dataclasses.dataclass(frozen=True)
class NormalEquations:
    """Normal equations at a point: chains of initial states, bordered by the parameters."""

    cost: float
    chains: Chains
    corner: Float[np.ndarray, "size size"]
    gradient: Float[np.ndarray, " size"]


class Tile(NamedTuple):
    """Derivatives of consecutive segments: columns by the log's parameters, then by the initial state."""

    segments: slice
    residual: Float[np.ndarray, "some residuals columns"]
    """Of the scaled residuals; zero where a simulation did not stay finite."""
    state: Float[np.ndarray, "some nx columns"]
    """Of the end states; zero where not finite."""
    finite: Bool[np.ndarray, " some"]
    """True if the simulation stayed finite, with its derivatives by the state."""


def point(problem: Problem, theta: Float[np.ndarray, " size"], nodes: Nodes, tiles: int = 1) -> Point:
    """Simulate all segments, with their derivatives if these fit in a few tiles."""
    if len(_tiles(problem)) <= tiles:
        return Point(theta, nodes, *problem.differentiate(theta, nodes))
    return Point(theta, nodes, problem.simulate(theta, nodes))


def propagate_memory(problem: Problem, at: Point) -> Point:
    """The point with network memory at the start of each segment taken from the end of the one before it."""
    memory = np.roll(at.simulated.memory, 1, axis=0)
    memory[~problem.layout.follows] = np.nan
    return point(problem, at.theta, dataclasses.replace(at.nodes, memory=memory))


def scaled_residual(
    problem: Problem, at: Point, weights: ResidualWeights
) -> Float[np.ndarray, "segments intervals rows"]:
    """Residuals in units of their noise; zero where not measured."""
    r = np.where(problem.layout.valid, at.simulated.residual / weights.noise, 0.0)
    return np.where(np.isfinite(r), np.clip(r, -DIVERGED_RESIDUAL, DIVERGED_RESIDUAL), DIVERGED_RESIDUAL)


def huber_weights(r: Float[np.ndarray, "..."], threshold: float) -> Float[np.ndarray, "..."]:
    """Square roots of the weights of Huber's loss, whose cost grows linearly for large residuals."""
    return np.sqrt(threshold / np.maximum(np.abs(r), threshold)) if np.isfinite(threshold) else np.ones_like(r)


def defects(problem: Problem, at: Point) -> Float[np.ndarray, "segments nx"]:
    """Defects: tangent vectors from the initial state of the next segment to the end state of this one."""
    q_next, v_next = np.roll(at.nodes.q, -1, axis=0), np.roll(at.nodes.v, -1, axis=0)
    return np.concatenate(
        [problem.tangent_space.difference(np.asarray(at.simulated.q), q_next), at.simulated.v - v_next], axis=1
    )


def cost(problem: Problem, at: Point, weights: ResidualWeights, windows: Windows) -> float:
    """Cost: half the sum of squares of residuals, defects and priors."""
    r = scaled_residual(problem, at, weights)
    k = weights.threshold
    squares = np.where(np.abs(r) <= k, r**2, 2 * k * np.abs(r) - k**2) if np.isfinite(k) else r**2
    c = scaled_defects(problem, at, weights, windows)
    anchors = _anchor_residuals(problem, at, windows)
    return float(squares.sum() + (c**2).sum() + (anchors**2).sum()) / 2 + penalty(problem, at.theta)[0]


def normal_equations(problem: Problem, at: Point, weights: ResidualWeights, windows: Windows) -> NormalEquations:
    """Normal equations of initial states and solved parameters."""
    p, nx, count = problem.solved.size, 2 * at.nodes.v.shape[1], problem.layout.size
    r = scaled_residual(problem, at, weights)
    w = huber_weights(r, weights.threshold)
    c = scaled_defects(problem, at, weights, windows)
    inverse_std = np.where(windows.joined[:, None], 1 / weights.defect_std, 0.0)
    columns = problem.columns[problem.layout.log]
    own = columns.shape[1]
    b, B = prior_residuals(problem, at.theta)
    corner, gradient = B.T @ B, B.T @ b
    D, border, gx = np.empty((count, nx, nx)), np.empty((count, nx, own)), np.empty((count, nx))
    K = np.empty((count, nx, own + nx))
    for tile, J, X, _ in linearize(problem, at, weights, w):
        K[tile] = X * inverse_std[tile, :, None]
        flat = np.concatenate([J, K[tile]], axis=1)
        along = flat.transpose(0, 2, 1)
        residual = np.concatenate([(r[tile] * w[tile]).reshape(len(flat), -1), c[tile]], axis=1)
        g, H = (along @ residual[..., None])[..., 0], along @ flat
        D[tile], border[tile], gx[tile] = H[:, own:, own:], H[:, own:, :own], g[:, own:]
        for log in np.unique(problem.layout.log[tile]):
            mine, where = problem.layout.log[tile] == log, problem.columns[log]
            corner[np.ix_(where, where)] += H[mine, :own, :own].sum(axis=0)
            gradient[where] += g[mine, :own].sum(axis=0)
    arrival = np.roll(inverse_std, 1, axis=0)  # defects depend on the next segment's initial state too
    anchor = np.where(_is_anchored(problem, windows), 1 / ANCHOR_STD, 0.0)
    D[:, np.arange(nx), np.arange(nx)] += arrival**2 + anchor**2
    gx += anchor * _anchor_residuals(problem, at, windows) - arrival * np.roll(c, 1, axis=0)
    border = _scatter(border, columns, p)
    border -= arrival[..., None] * np.roll(_scatter(K[..., :own], columns, p), 1, axis=0)
    coupling = -K[..., own:].transpose(0, 2, 1) * inverse_std[:, None, :]
    chains = Chains(
        diagonal=_with_identity(windows, windows.pad(D)),
        coupling=windows.pad(coupling),
        border=windows.pad(border),
        gradient=windows.pad(gx),
    )
    return NormalEquations(cost(problem, at, weights, windows), chains, corner, gradient)


def linearize(
    problem: Problem, at: Point, weights: ResidualWeights, w: Float[np.ndarray, "segments intervals rows"]
) -> Iterator[Tile]:
    """Derivatives of the scaled residuals and of the end states, tile by tile.

    Args:
        problem: The problem.
        at: The point.
        weights: Standard deviations of residuals.
        w: Factors of the robust loss.
    """
    factor = np.where(problem.layout.valid, w / weights.noise, 0.0)
    for segments in _tiles(problem):
        kept = at.sensitivity
        found = _differentiate(problem, at, segments) if kept is None else kept.part(segments)
        J, X = np.asarray(found.residual), np.asarray(found.state)
        finite = np.isfinite(X).all(axis=(1, 2)) & np.isfinite(at.simulated.residual[segments]).all(axis=(1, 2))
        if not np.all(finite):
            J = np.where(np.reshape(finite, (-1, 1, 1, 1)) & np.isfinite(J), J, 0.0)
            X = np.where(np.isfinite(X), X, 0.0)
        scaled = J * factor[segments][..., None]
        yield Tile(segments, scaled.reshape(len(J), -1, J.shape[-1]), X, finite)


def _differentiate(problem: Problem, at: Point, segments: slice) -> Sensitivity:
    some = np.arange(segments.start, segments.stop)
    return problem.select(some).differentiate(at.theta, at.nodes.select(some))[1]


def _tiles(problem: Problem) -> list[slice]:
    """Consecutive segments whose derivatives fit in `TILE_BYTES`."""
    count, intervals, rows = problem.layout.valid.shape
    nx = 2 * problem.simulator.model.nv
    numbers = (intervals * rows + nx) * (problem.columns.shape[1] + nx)
    size = max(1, TILE_BYTES // (8 * numbers))
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def scaled_defects(
    problem: Problem, at: Point, weights: ResidualWeights, windows: Windows
) -> Float[np.ndarray, "segments nx"]:
    """Defects over their standard deviation; zero where segments are not joined."""
    c = np.where(windows.joined[:, None], defects(problem, at) / weights.defect_std, 0.0)
    return np.where(np.isfinite(c), np.clip(c, -DIVERGED_RESIDUAL, DIVERGED_RESIDUAL), DIVERGED_RESIDUAL)


def _is_anchored(problem: Problem, windows: Windows) -> Bool[np.ndarray, "segments nx"]:
    """Components of initial states that are held at the initial guess: those at the start of windows."""
    return problem.anchored & (windows.place == 0)[:, None]


def _anchor_residuals(problem: Problem, at: Point, windows: Windows) -> Float[np.ndarray, "segments nx"]:
    """Deviations of anchored components from the initial guess, in standard deviations."""
    if not problem.anchored.any():
        return np.zeros_like(problem.anchored, float)
    guess = problem.initial_nodes()
    moves = np.concatenate([problem.tangent_space.difference(at.nodes.q, guess.q), at.nodes.v - guess.v], axis=1)
    return np.where(_is_anchored(problem, windows), moves / ANCHOR_STD, 0.0)


def _scatter(blocks: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray:
    """Scatter the columns of each log's parameters to the columns of all parameters."""
    out = np.zeros((*blocks.shape[:-1], size))
    np.put_along_axis(out, np.broadcast_to(columns[:, None], blocks.shape), blocks, axis=-1)
    return out


def _with_identity(windows: Windows, diagonal: np.ndarray) -> np.ndarray:
    """Add ones to the diagonal beyond the end of a window."""
    used = windows.pad(np.ones(len(windows.window)))
    diagonal += (1 - used)[..., None, None] * np.eye(diagonal.shape[-1])
    return diagonal
