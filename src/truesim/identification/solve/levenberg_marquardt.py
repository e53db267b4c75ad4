"""Levenberg-Marquardt with bounds for parameters and initial states."""

import dataclasses
import enum
from collections.abc import Callable

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes, Windows
from truesim.identification.solve.normal_equations import (
    NormalEquations,
    Point,
    ResidualWeights,
    cost,
    normal_equations,
    point,
)
from truesim.optimize.bordered import Chains, Eliminated, eliminate
from truesim.optimize.box import minimize_in_box
from truesim.optimize.damping import HIGHEST_DAMPING, update_damping

RELATIVE_DECREASE = 1e-5
"""Converged when the cost falls by less than this fraction per iteration. Larger ends earlier."""
STALL_ITERATIONS = 6
"""Iterations over which the decrease is averaged: dry friction makes the cost rough on a small scale. Larger ends
later."""
SMALL_DECREASE, SMALL_MOVE = 0.05, 0.03
"""Converged also when over these iterations the cost, half a chi-square, falls by less than the first value, and the
parameters move by less than the second in standard deviations: directions that are not identifiable may still drift.
Larger ends earlier."""


class Ending(enum.StrEnum):
    """Reason for which a solve ended."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    STALLED = "stalled"
    """No step decreases the cost, although one is predicted to."""
    INTERRUPTED = "interrupted"
    """Stopped by the user; the solution is the best so far."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of one iteration."""

    iteration: int
    cost: float
    damping: float
    step: float
    """Largest step of a coordinate."""
    theta: Float[np.ndarray, " size"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Point at which a solve ended, and the reason."""

    at: Point
    cost: float
    ending: Ending
    iterations: int

    @property
    def converged(self) -> bool:
        """True if the solve ended at a minimum."""
        return self.ending is Ending.CONVERGED


IterationCallback = Callable[[Progress, Point], None]
"""Called after every iteration with the best point so far."""


@dataclasses.dataclass(frozen=True)
class StageOptions:
    """Options of one solve."""

    iterations: int = 60
    """Maximum number of iterations."""
    gain: float = 1e-5
    """Converged when the cost, half a chi-square, is predicted to fall by less than this."""
    damping: float = 1e-3
    """Initial damping."""
    held: Bool[np.ndarray, " size"] | None = None
    """Coordinates that stay fixed; none unless given."""
    decrease: float = RELATIVE_DECREASE
    """Converged also when the cost falls by less than this fraction per iteration."""
    seed: int = 0
    """Seed of the order of batches (Adam)."""


def solve(
    problem: Problem,
    start: Point,
    weights: ResidualWeights,
    windows: Windows,
    options: StageOptions,
    keep: IterationCallback | None = None,
) -> Outcome:
    """Minimize the cost from a starting point.

    Args:
        problem: The problem.
        start: The starting point.
        weights: Standard deviations of residuals and defects.
        windows: Which segments are joined.
        options: Initial damping and stopping rules.
        keep: Called after every iteration.
    """
    here, damping, growth = start, options.damping, 2.0
    trail: list[tuple[float, np.ndarray]] = []
    equations = normal_equations(problem, here, weights, windows)
    for iteration in range(1, options.iterations + 1):
        theta_step, node_steps, predicted = _step(problem, here, equations, windows, damping, options.held)
        if predicted < options.gain:
            return Outcome(here, equations.cost, Ending.CONVERGED, iteration)
        size = float(np.abs(theta_step).max(initial=0.0))
        trial = point(problem, here.theta + theta_step, move_nodes(problem, here.nodes, node_steps))
        decrease = equations.cost - cost(problem, trial, weights, windows)
        accepted = decrease > 0
        ratio = decrease / max(predicted, 1e-300)
        damping, growth = map(float, update_damping(damping, growth, ratio, accepted))
        if accepted:
            here = trial
            equations = normal_equations(problem, here, weights, windows)
        if keep is not None:
            keep(Progress(iteration, equations.cost, damping, size, here.theta), here)
        trail.append((equations.cost, here.theta))
        if len(trail) > STALL_ITERATIONS and _has_converged(
            equations, *trail[-STALL_ITERATIONS], here.theta, options.decrease
        ):
            return Outcome(here, equations.cost, Ending.CONVERGED, iteration)
        if damping > HIGHEST_DAMPING:
            return Outcome(here, equations.cost, Ending.STALLED, iteration)
    return Outcome(here, equations.cost, Ending.ITERATION_LIMIT, options.iterations)


def _has_converged(
    equations: NormalEquations, cost: float, before: np.ndarray, theta: np.ndarray, threshold: float
) -> bool:
    """True if cost and coordinates have hardly changed since the cost was `cost` at the coordinates `before`."""
    decrease = cost - equations.cost
    if decrease < threshold * STALL_ITERATIONS * equations.cost:
        return True
    system = eliminate_states(equations)
    move = (theta - before)[: len(system.gradient)]
    return decrease < SMALL_DECREASE and float(move @ system.corner @ move) < SMALL_MOVE**2


def eliminate_states(equations: NormalEquations, damping: float = 0.0) -> Eliminated:
    """Eliminate the initial states from the normal equations, with Marquardt damping."""
    D = equations.chains.diagonal.copy()
    k = np.arange(D.shape[-1])
    D[..., k, k] *= 1 + damping
    D[..., k, k] += 1e-12
    corner = equations.corner.copy()
    corner[np.diag_indices_from(corner)] *= 1 + damping
    chains = equations.chains
    return eliminate(Chains(D, chains.coupling, chains.border, chains.gradient), corner, equations.gradient)


def _step(
    problem: Problem, here: Point, equations: NormalEquations, windows: Windows, damping: float, held: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Damped step of parameters and initial states, and the predicted decrease of the cost."""
    system, size = eliminate_states(equations, damping), problem.solved.size
    low, high = problem.solved.bounds
    theta = here.theta[:size]
    if held is not None:
        low, high = np.where(held[:size], theta, low), np.where(held[:size], theta, high)
    H = system.corner + 1e-14 * np.trace(system.corner) * np.eye(size)
    step = minimize_in_box(H, system.gradient, low - theta, high - theta)
    moves = system.chains(step)
    whole = np.concatenate([step, np.zeros(len(here.theta) - size)])
    return whole, moves[windows.window, windows.place], _predicted_decrease(equations, step, moves)


def _predicted_decrease(equations: NormalEquations, step: np.ndarray, moves: np.ndarray) -> float:
    """Decrease of the quadratic model of the cost."""
    D, E, F, g = equations.chains
    along = np.einsum("wma,wmab,wmb->", moves, D, moves)
    along += 2 * np.einsum("wma,wmab,wmb->", moves[:, :-1], E[:, :-1], moves[:, 1:])
    along += 2 * np.einsum("wma,wmap,p->", moves, F, step) + step @ equations.corner @ step
    return float(-(equations.gradient @ step + np.sum(g * moves) + along / 2))


def move_nodes(problem: Problem, nodes: Nodes, moves: Float[np.ndarray, "segments nx"]) -> Nodes:
    """Initial states moved by tangent vectors."""
    nv = nodes.v.shape[1]
    return Nodes(problem.tangent_space.integrate(nodes.q, moves[:, :nv]), nodes.v + moves[:, nv:], nodes.memory)
