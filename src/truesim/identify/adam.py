"""Adam on the same problem: for networks with many weights, or to compare.

The parameters descend; first states follow them by Gauss-Newton, so that the descent sees the cost at the best first
states alone, which is far better scaled. Windows take turns in batches, the same ones in a new order every time.
"""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np
import optax

from truesim.core.typing import Float
from truesim.identify.beliefs import penalty
from truesim.identify.kernels import LANES
from truesim.identify.layout import Windows
from truesim.identify.levenberg_marquardt import STALL, Keep, Outcome, Progress, Search, moved, solve
from truesim.identify.normal import Point, Weights, point
from truesim.identify.problem import Problem
from truesim.identify.slope import slope

RATE, GENTLE = 0.02, 0.1
"""Learning rate, in units of the coordinates; it falls to a hundredth by the end. That of n weights, where there are
many, is the second over the fourth root of n: as weights themselves, which are the smaller the wider a layer is."""
STEPS, MANY_STEPS = 10, 50
"""Steps of Adam for each iteration that Levenberg-Marquardt may take, without and with many weights."""
DAMPING = 1e-3
"""Marquardt's damping of the first states."""
SETTLING = 5
"""Iterations after which first states suit the parameters, at most."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """Some windows of a problem."""

    problem: Problem
    """With the stretches of these windows alone."""
    windows: Windows
    stretches: np.ndarray
    """Which stretches of the whole problem."""
    share: float
    """What part of all stretches they are."""


def minimise(
    problem: Problem,
    start: Point,
    weights: Weights,
    windows: Windows,
    search: Search,
    keep: Keep | None = None,
) -> Outcome:
    """The best point that Adam finds in a number of iterations, once first states suit where it begins.

    Args:
        problem: The problem.
        start: Where to begin.
        weights: Noise and allowances.
        windows: Which stretches are joined.
        search: How many iterations, and when the cost falls too little to go on.
        keep: Called after every iteration.
    """

    def settled(at: Point) -> Outcome:
        """The best first states for the same parameters."""
        return solve(problem, at, weights, windows, Search(SETTLING, gain=1.0, held=np.ones(len(at.theta), bool)))

    best = settled(start)
    descent = _Descent(problem, search, best.at)
    turns, trail = _turns(batches(problem, windows)), [best.cost]
    for iteration in range(1, search.iterations + 1):
        before = descent.theta
        for _ in range(descent.steps):
            descent.step(next(turns), weights)
        here = settled(point(problem, descent.theta, descent.nodes))
        descent.nodes = here.at.nodes
        best = here if here.cost < best.cost else best
        if keep is not None:
            step = float(np.abs(here.at.theta - before).max(initial=0.0))
            keep(Progress(iteration, here.cost, 0.0, step, here.at.theta), best.at)
        trail.append(best.cost)
        if len(trail) > STALL and trail[-1 - STALL] - best.cost < search.flat * STALL * best.cost:
            return Outcome(best.at, best.cost, bool(np.isfinite(best.cost)), iteration)
    return Outcome(best.at, best.cost, False, search.iterations)


def batches(problem: Problem, windows: Windows) -> list[Batch]:
    """All windows, in as many parts as there are steps in an iteration, unless that would make them small."""
    count = int(np.clip(problem.layout.size // LANES, 1, min(STEPS, windows.shape[0])))
    found = []
    for k in range(count):
        own = np.flatnonzero(windows.window % count == k)
        part = Windows(windows.window[own] // count, windows.place[own])
        found.append(Batch(problem.part(own), part, own, len(own) / problem.layout.size))
    return found


def _turns(parts: list[Batch]) -> Iterator[Batch]:
    """The batches for ever, each once before any comes again."""
    rng = np.random.default_rng(0)
    while True:
        yield from (parts[k] for k in rng.permutation(len(parts)))


class _Descent:
    """Where Adam has come to."""

    def __init__(self, problem: Problem, search: Search, start: Point):
        many = problem.trained.size
        rate, self.steps = (GENTLE * many**-0.25, MANY_STEPS) if many else (RATE, STEPS)
        self._method = optax.adam(optax.cosine_decay_schedule(rate, self.steps * search.iterations, alpha=0.01))
        with jax.enable_x64(True):
            self._memory = self._method.init(start.theta)
        self._bounds = problem.parameters.bounds
        self.theta: Float[np.ndarray, size] = start.theta
        self.nodes = start.nodes

    def step(self, batch: Batch, weights: Weights) -> None:
        """Moves all parameters, and the first states of a batch."""
        nodes = self.nodes.taken(batch.stretches)
        found = slope(batch.problem, point(batch.problem, self.theta, nodes), weights, batch.windows, DAMPING)
        believed = penalty(batch.problem, self.theta)[1]
        gradient = (found.gradient - believed) / batch.share + believed
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # the schedule mixes integers and floats
            update, self._memory = jax.tree.map(np.asarray, self._method.update(gradient, self._memory))
        step = np.clip(self.theta + update, *self._bounds) - self.theta
        self.theta = self.theta + step
        self.nodes = self.nodes.replaced(batch.stretches, moved(batch.problem, nodes, found.moves(step)))
