"""Adam for estimation problems: for networks with many weights, or for comparison.

Adam updates the parameters, Gauss-Newton the initial states: Adam minimizes the cost with initial states eliminated,
which is far better scaled. Each epoch visits batches of windows in a new random order.
"""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from truesim.core import libraries
from truesim.core.typing import Float
from truesim.identification.problem.kernels import XLA_BATCH_SIZE
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.gradient import cost_gradient
from truesim.identification.solve.levenberg_marquardt import (
    STALL_ITERATIONS,
    Ending,
    IterationCallback,
    Outcome,
    Progress,
    StageOptions,
    move_nodes,
    solve,
)
from truesim.identification.solve.normal_equations import Point, ResidualWeights, point
from truesim.identification.solve.prior import penalty

LEARNING_RATE, WEIGHT_LEARNING_RATE = 0.02, 0.1
"""Initial learning rate in units of the coordinates, decaying to a hundredth. For networks with many weights (n) it is
the second value divided by n^(1/4), since weights of wider layers are smaller. Larger is faster and less stable."""
ADAM_STEPS, WEIGHT_ADAM_STEPS = 10, 50
"""Adam steps per iteration, without and with many weights. Larger solves for the initial states less often."""
STATE_DAMPING = 1e-3
"""Marquardt damping of the initial states. Larger makes their steps shorter."""
STATE_ITERATIONS = 5
"""Maximum number of iterations for the initial states at fixed parameters. Larger is more accurate and slower."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """A subset of the windows of a problem."""

    problem: Problem
    """The problem restricted to the segments of these windows."""
    windows: Windows
    segments: np.ndarray
    """Indices of these segments in the whole problem."""
    share: float
    """Fraction of all segments."""


def minimize(
    problem: Problem,
    start: Point,
    weights: ResidualWeights,
    windows: Windows,
    options: StageOptions,
    keep: IterationCallback | None = None,
) -> Outcome:
    """Minimize the cost with Adam; returns the best point of all iterations.

    Args:
        problem: The problem.
        start: The starting point.
        weights: Standard deviations of residuals and defects.
        windows: Which segments are joined.
        options: Number of iterations and stopping rule.
        keep: Called after every iteration.
    """

    def solve_states(at: Point) -> Outcome:
        """Solve for the initial states at fixed parameters."""
        return solve(
            problem, at, weights, windows, StageOptions(STATE_ITERATIONS, gain=1.0, held=np.ones(len(at.theta), bool))
        )

    best = solve_states(start)
    descent = _Descent(problem, options, best.at)
    order, trail = _epochs(batches(problem, windows), options.seed), [best.cost]
    for iteration in range(1, options.iterations + 1):
        before = descent.theta
        for _ in range(descent.steps):
            descent.step(next(order), weights)
        here = solve_states(point(problem, descent.theta, descent.nodes))
        descent.nodes = here.at.nodes
        best = here if here.cost < best.cost else best
        if keep is not None:
            step = float(np.abs(here.at.theta - before).max(initial=0.0))
            keep(Progress(iteration, here.cost, 0.0, step, here.at.theta), best.at)
        trail.append(best.cost)
        if (
            len(trail) > STALL_ITERATIONS
            and trail[-1 - STALL_ITERATIONS] - best.cost < options.decrease * STALL_ITERATIONS * best.cost
        ):
            ending = Ending.CONVERGED if np.isfinite(best.cost) else Ending.STALLED
            return Outcome(best.at, best.cost, ending, iteration)
    return Outcome(best.at, best.cost, Ending.ITERATION_LIMIT, options.iterations)


def batches(problem: Problem, windows: Windows) -> list[Batch]:
    """Split windows into batches: one for each Adam step of an iteration, or fewer if batches would become small."""
    count = int(np.clip(problem.layout.size // XLA_BATCH_SIZE, 1, min(ADAM_STEPS, windows.shape[0])))
    found = []
    for k in range(count):
        own = np.flatnonzero(windows.window % count == k)
        part = Windows(windows.window[own] // count, windows.place[own])
        found.append(Batch(problem.select(own), part, own, len(own) / problem.layout.size))
    return found


def _epochs(parts: list[Batch], seed: int) -> Iterator[Batch]:
    """Endless sequence of batches, each once per epoch in random order."""
    rng = np.random.default_rng(seed)
    while True:
        yield from (parts[k] for k in rng.permutation(len(parts)))


class _Descent:
    """State of an Adam run: parameters, initial states and moments."""

    def __init__(self, problem: Problem, options: StageOptions, start: Point):
        many = problem.trained.size
        rate, self.steps = (
            (WEIGHT_LEARNING_RATE * many**-0.25, WEIGHT_ADAM_STEPS) if many else (LEARNING_RATE, ADAM_STEPS)
        )
        optax = libraries.optax
        self._method = optax.adam(optax.cosine_decay_schedule(rate, self.steps * options.iterations, alpha=0.01))
        with jax.enable_x64(True):
            self._moments = self._method.init(start.theta)
        self._bounds = problem.parameters.bounds
        self.theta: Float[np.ndarray, " size"] = start.theta
        self.nodes = start.nodes

    def step(self, batch: Batch, weights: ResidualWeights) -> None:
        """Update all parameters, and the initial states of a batch."""
        nodes = self.nodes.select(batch.segments)
        found = cost_gradient(
            batch.problem, point(batch.problem, self.theta, nodes), weights, batch.windows, STATE_DAMPING
        )
        prior = penalty(batch.problem, self.theta)[1]
        gradient = (found.gradient - prior) / batch.share + prior
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # the schedule mixes integers and floats
            update, self._moments = jax.tree.map(np.asarray, self._method.update(gradient, self._moments))
        step = np.clip(self.theta + update, *self._bounds) - self.theta
        self.theta = self.theta + step
        self.nodes = self.nodes.replace(batch.segments, move_nodes(batch.problem, nodes, found.state_steps(step)))
