"""Adam on the same problem: for many unknowns, or to compare.

The parameters descend; first states follow them by Gauss-Newton, so that the descent sees the cost at the best first
states alone, which is far better scaled.
"""

import dataclasses

import jax
import numpy as np
import optax

from truesim.identify.layout import Windows
from truesim.identify.levenberg_marquardt import Keep, Outcome, Progress, Search, moved, reduced
from truesim.identify.normal import Point, Weights, normal, point
from truesim.identify.problem import Problem

RATE = 0.02
"""Learning rate, in units of the coordinates; it falls to a hundredth of this by the end."""
STEPS = 10
"""Steps of Adam for each iteration that Levenberg-Marquardt may take."""


DAMPING = 1e-3
"""Marquardt's damping of the first states."""


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
    with jax.enable_x64(True):
        memory = method.init(start.theta)
    low, high = problem.parameters.bounds
    here, best = start, _Best(start, np.inf)
    for iteration in range(1, STEPS * search.iterations + 1):
        equations = normal(problem, here, weights, windows)
        if equations.cost < best.cost:
            best = _Best(here, equations.cost)
        system = reduced(equations, DAMPING)
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # the schedule mixes integers and floats
            update, memory = jax.tree.map(np.asarray, method.update(system.gradient, memory))
        step = np.clip(here.theta + update, low, high) - here.theta
        moves = system.chains(step)[windows.window, windows.place]
        here = point(problem, here.theta + step, moved(problem, here.nodes, moves))
        if keep is not None:
            keep(Progress(iteration, equations.cost, 0.0, float(np.abs(step).max(initial=0.0)), here.theta), best.at)
    return Outcome(best.at, best.cost, np.isfinite(best.cost), iteration)
