"""Levenberg-Marquardt within bounds, for parameters and first states together."""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identify.layout import Nodes, Windows
from truesim.identify.normal import Normal, Point, Weights, cost, normal, point
from truesim.identify.problem import Problem
from truesim.numerics.bordered import Chains, Eliminated, eliminate
from truesim.numerics.box import minimise_in_box

FLAT = 1e-5
"""By default converged also when the cost falls by less than this fraction an iteration."""
STALL = 6
"""Over so many iterations, since dry friction makes the cost rough on a small scale."""
QUIET, SETTLED = 0.05, 0.03
"""Or when over so many iterations the cost, half a chi-square, falls by less than the first, and no combination of
parameters moves by more than the second in units of its standard deviation: what the logs do not show may wander on."""
LEAST, MOST = 1e-12, 1e8
"""Range of the damping."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """One iteration."""

    iteration: int
    cost: float
    damping: float
    step: float
    """Largest move of a coordinate."""
    theta: Float[np.ndarray, "size"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Where a solve ended."""

    at: Point
    cost: float
    converged: bool
    iterations: int


Watch = Callable[[Progress], None]
Keep = Callable[[Progress, Point], None]
"""Called after every iteration with the best point so far."""


@dataclasses.dataclass(frozen=True)
class Search:
    """How a solve begins, and when it ends."""

    iterations: int = 60
    """At most so many."""
    gain: float = 1e-5
    """Converged when the cost, half a chi-square, would fall by less than this."""
    damping: float = 1e-3
    """Damping to begin with."""
    held: Bool[np.ndarray, "size"] | None = None
    """Which coordinates stay as they are; none unless given."""
    flat: float = FLAT
    """Converged also when the cost falls by less than this fraction an iteration."""


def solve(
    problem: Problem,
    start: Point,
    weights: Weights,
    windows: Windows,
    search: Search,
    keep: Keep | None = None,
) -> Outcome:
    """The nearest minimum of the cost.

    Args:
        problem: The problem.
        start: Where to begin.
        weights: Noise and allowances.
        windows: Which stretches are joined.
        search: How to begin, and when to end.
        keep: Called after every iteration.
    """
    here, damping, factor = start, search.damping, 2.0
    trail: list[tuple[float, np.ndarray]] = []
    equations = normal(problem, here, weights, windows)
    for iteration in range(1, search.iterations + 1):
        theta_step, node_steps, predicted = _step(problem, here, equations, windows, damping, search.held)
        if predicted < search.gain:
            return Outcome(here, equations.cost, True, iteration)
        size = float(np.abs(theta_step).max(initial=0.0))
        trial = point(problem, here.theta + theta_step, moved(problem, here.nodes, node_steps))
        fall = equations.cost - cost(problem, trial, weights, windows)
        accepted = fall > 0
        if accepted:
            ratio = fall / max(predicted, 1e-300)
            damping, factor = max(damping * max(1 / 10, 1 - (2 * ratio - 1) ** 3), LEAST), 2.0
            here = trial
            equations = normal(problem, here, weights, windows)
        else:
            damping, factor = damping * factor, 2 * factor
        if keep is not None:
            keep(Progress(iteration, equations.cost, damping, size, here.theta), here)
        trail.append((equations.cost, here.theta))
        if len(trail) > STALL and _at_rest(equations, *trail[-STALL], here.theta, search.flat):
            return Outcome(here, equations.cost, True, iteration)
        if damping > MOST:
            break
    return Outcome(here, equations.cost, False, iteration)


def _at_rest(equations: Normal, cost: float, before: np.ndarray, theta: np.ndarray, flat: float) -> bool:
    """Whether nothing of note has happened since the cost was `cost` at the coordinates `before`."""
    fall = cost - equations.cost
    if fall < flat * STALL * equations.cost:
        return True
    system = reduced(equations)
    move = (theta - before)[: len(system.gradient)]
    return fall < QUIET and float(move @ system.corner @ move) < SETTLED**2


def reduced(equations: Normal, damping: float = 0.0) -> Eliminated:
    """The normal equations of the parameters alone, first states eliminated, with Marquardt's damping."""
    D = equations.chains.diagonal.copy()
    k = np.arange(D.shape[-1])
    D[..., k, k] *= 1 + damping
    D[..., k, k] += 1e-12
    corner = equations.corner.copy()
    corner[np.diag_indices_from(corner)] *= 1 + damping
    chains = equations.chains
    return eliminate(Chains(D, chains.coupling, chains.border, chains.gradient), corner, equations.gradient)


def _step(
    problem: Problem, here: Point, equations: Normal, windows: Windows, damping: float, held: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """The damped step of parameters and first states, and by how much the cost should fall."""
    system, size = reduced(equations, damping), problem.solved.size
    low, high = problem.solved.bounds
    theta = here.theta[:size]
    if held is not None:
        low, high = np.where(held[:size], theta, low), np.where(held[:size], theta, high)
    H = system.corner + 1e-14 * np.trace(system.corner) * np.eye(size)
    step = minimise_in_box(H, system.gradient, low - theta, high - theta)
    moves = system.chains(step)
    whole = np.concatenate([step, np.zeros(len(here.theta) - size)])
    return whole, moves[windows.window, windows.place], _predicted(equations, step, moves)


def _predicted(equations: Normal, step: np.ndarray, moves: np.ndarray) -> float:
    """Fall of the quadratic model of the cost."""
    D, E, F, g = equations.chains
    along = np.einsum("wma,wmab,wmb->", moves, D, moves)
    along += 2 * np.einsum("wma,wmab,wmb->", moves[:, :-1], E[:, :-1], moves[:, 1:])
    along += 2 * np.einsum("wma,wmap,p->", moves, F, step) + step @ equations.corner @ step
    return float(-(equations.gradient @ step + np.sum(g * moves) + along / 2))


def moved(problem: Problem, nodes: Nodes, moves: Float[np.ndarray, "stretches nx"]) -> Nodes:
    """First states after small moves."""
    nv = nodes.v.shape[1]
    return Nodes(problem.moved(nodes.q, moves[:, :nv]), nodes.v + moves[:, nv:], nodes.memory)
