"""Adam on the same problem: for many unknowns, or to compare."""

import dataclasses

import jax
import numpy as np
import optax

from truesim.identify.layout import Windows
from truesim.identify.levenberg_marquardt import Keep, Outcome, Progress, Search
from truesim.identify.normal import Point, Weights, normal, point
from truesim.identify.problem import Nodes, Problem

RATE = 0.02
"""Learning rate, in units of the coordinates; it falls to a hundredth of this by the end."""
STEPS = 10
"""Steps of Adam for each iteration that Levenberg-Marquardt may take."""


@dataclasses.dataclass
class _Best:
    """The lowest cost that was seen, and where."""

    at: Point
    cost: float


def minimise(
    problem: Problem,
    start: Point,
    weights: Weights,
    windows: Windows,
    search: Search,
    keep: Keep | None = None,
) -> Outcome:
    """The best point that Adam finds in a number of iterations.

    Args:
        problem: The problem.
        start: Where to begin.
        weights: Noise and allowances.
        windows: Which stretches are joined.
        search: How many iterations.
        keep: Called after every iteration.
    """
    method = optax.adam(optax.cosine_decay_schedule(RATE, STEPS * search.iterations, alpha=0.01))
    nv = start.nodes.v.shape[1]
    scale = np.tile(weights.allowance, (problem.layout.size, 1))
    memory = method.init((start.theta, scale))
    low, high = problem.parameters.bounds
    here, best = start, _Best(start, np.inf)
    for iteration in range(1, STEPS * search.iterations + 1):
        equations = normal(problem, here, weights, windows)
        if equations.cost < best.cost:
            best = _Best(here, equations.cost)
        slopes = (equations.gradient, equations.chains.gradient[windows.window, windows.place] * scale)
        (step, moves), memory = jax.tree.map(np.asarray, method.update(slopes, memory))
        theta, moves = np.clip(here.theta + step, low, high), scale * moves
        nodes = Nodes(problem.moved(here.nodes.q, moves[:, :nv]), here.nodes.v + moves[:, nv:])
        here = point(problem, theta, nodes)
        if keep is not None:
            keep(Progress(iteration, equations.cost, 0.0, float(np.abs(step).max(initial=0.0)), theta), best.at)
    return Outcome(best.at, best.cost, np.isfinite(best.cost), iteration)
