"""Levenberg-Marquardt for many starts side by side: each solve is a lane of the objective's native kernel.

A lane that has converged, stalled or reached its limit hands its place to the next start, so that the others need not
wait for it. What a lane finds does not depend on which others run beside it.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Bool, Float, Int
from truesim.identify.search.basins import Solve
from truesim.identify.search.objective import AbstractLeastSquares, Box, Equations
from truesim.numerics.dense import solve

ENDINGS = ("", "converged", "stalled", "limit", "not finite")
"""How a solve ended, by its number; the first is of one that still runs."""
LEAST, MOST = 1e-12, 1e8
"""Range of the damping."""
STEPS, MOST_LANES = 2**22, 512
"""Simulated steps of one iteration of all lanes, about, and the most lanes that there are unless more are asked for."""
FAINT = 1e-14
"""Part of the mean curvature that is added to every coordinate's."""


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """When a solve ends."""

    fall: float = 1e-8
    """When the cost would fall by less than this part of itself."""
    step: float = 1e-8
    """Or when the coordinates would move by less than this part of themselves."""
    iterations: int = 100
    """Or after so many evaluations."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A solve that is to be done."""

    chain: int
    hop: int
    start: Float[np.ndarray, "size"]


class Lane(NamedTuple):
    """Where one solve has come to, or many, stacked."""

    theta: Float[Array, "*batch size"]
    """The best so far."""
    equations: Equations
    """There; of infinite cost before the first evaluation."""
    trial: Float[Array, "*batch size"]
    """What to evaluate next."""
    predicted: Float[Array, "*batch"]
    """By how much the cost should fall there."""
    damping: Float[Array, "*batch"]
    factor: Float[Array, "*batch"]
    """By which the damping grows if the cost does not fall."""
    iterations: Int[Array, "*batch"]
    ending: Int[Array, "*batch"]
    """Place in `ENDINGS`."""


class Lanes:
    """Solves that run side by side."""

    def __init__(self, objective: AbstractLeastSquares, tolerance: Tolerance | None = None, capacity: int = 0):
        """Begins without any.

        Args:
            objective: What is made small.
            tolerance: When a solve ends.
            capacity: How many run at once, at most; as many as make an iteration last a moment by default.
        """
        usual = int(np.clip(STEPS // objective.steps, 8 * objective.threads, MOST_LANES))
        self.objective, self.capacity = objective, capacity or usual
        self._lanes = _fresh(np.zeros((0, len(objective.box.start))))
        self._tasks: list[Task] = []
        self._update = _compiled_update(tolerance or Tolerance(), objective)

    @property
    def room(self) -> int:
        """How many more solves can run."""
        return self.capacity - len(self._tasks)

    def add(self, tasks: Sequence[Task]) -> None:
        """Begins solves."""
        if tasks:
            begun = _fresh(np.stack([task.start for task in tasks]))
            self._lanes = jax.tree.map(lambda a, b: np.concatenate([a, b]), self._lanes, begun)
            self._tasks += tasks

    def advance(self) -> list[Solve]:
        """Iterates until at least one solve has ended; those that have."""
        while self._tasks:
            lanes = self._update(self._lanes, self.objective.equations(self._lanes.trial))
            ended = np.asarray(lanes.ending > 0)
            if ended.any():
                return self._taken(lanes, ended)
            self._lanes = lanes
        return []

    def close(self) -> None:
        """Drops what still runs."""
        self._tasks = []

    def _taken(self, lanes: Lane, ended: Bool[np.ndarray, "batch"]) -> list[Solve]:
        done = [
            Solve(
                chain=self._tasks[k].chain,
                hop=self._tasks[k].hop,
                start=self._tasks[k].start,
                theta=lanes.theta[k].copy(),
                cost=float(lanes.equations.cost[k]),
                iterations=int(lanes.iterations[k]),
                ending=ENDINGS[lanes.ending[k]],
            )
            for k in np.flatnonzero(ended)
        ]
        self._lanes = jax.tree.map(lambda x: x[~ended], lanes)
        self._tasks = [task for task, over in zip(self._tasks, ended, strict=True) if not over]
        return done


def update(lane: Lane, new: Equations, box: Box, tolerance: Tolerance) -> Lane:
    """One iteration: keeps the trial if it is better, adapts the damping (Nielsen), and takes the next step.

    Args:
        lane: The solve.
        new: The equations at its trial.
        box: The bounds.
        tolerance: When it ends.
    """
    first, old = lane.iterations == 0, lane.equations
    better = new.cost < old.cost
    ratio = jnp.where(first, 0.5, (old.cost - new.cost) / lane.predicted)
    eased = lane.damping * jnp.where(first, 1.0, jnp.maximum(1 / 10, 1 - (2 * ratio - 1) ** 3))
    damping = jnp.where(better, jnp.maximum(eased, LEAST), lane.damping * lane.factor)
    factor = jnp.where(better, 2.0, 2 * lane.factor)
    theta = jnp.where(better, lane.trial, lane.theta)
    equations = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
    step, predicted = damped_step(theta, equations, damping, box)
    iterations = lane.iterations + 1
    still = jnp.sqrt(jnp.sum(step**2)) < tolerance.step * (tolerance.step + jnp.sqrt(jnp.sum(theta**2)))
    small = still | (predicted <= tolerance.fall * equations.cost)
    ending = jnp.where(iterations >= tolerance.iterations, 3, 0)
    ending = jnp.where(damping > MOST, 2, ending)
    ending = jnp.where(small, jnp.where(damping > 1, 2, 1), ending)
    ending = jnp.where(jnp.isfinite(equations.cost), ending, 4)
    return Lane(theta, equations, theta + step, predicted, damping, factor, iterations, ending)


def damped_step(
    theta: Float[Array, "size"], equations: Equations, damping: Float[Array, ""], box: Box
) -> tuple[Float[Array, "size"], Float[Array, ""]]:
    """Marquardt's step within bounds, and by how much the cost should fall.

    Coordinates at a bound that the cost pushes outwards stay. Those that the step would carry beyond one stop there,
    and the step of the others is found anew.
    """
    g, H = equations.gradient, equations.matrix
    room = (box.low - theta, box.high - theta)
    fixed = ((room[0] >= 0) & (g > 0)) | ((room[1] <= 0) & (g < 0))
    step = jnp.zeros_like(theta)
    for _ in range(2):
        wanted = _free_step(g + H @ step, H, damping, fixed)
        beyond = ~fixed & ((wanted < room[0]) | (wanted > room[1]))
        step = jnp.where(beyond, jnp.clip(wanted, *room), step)
        fixed = fixed | beyond
    step = jnp.where(fixed, step, jnp.clip(_free_step(g + H @ step, H, damping, fixed), *room))
    return step, -(g @ step + step @ H @ step / 2)


def _free_step(g: Array, H: Array, damping: Array, fixed: Array) -> Array:
    """Damped Newton step of the coordinates that are not fixed; zero for the others."""
    curvature = jnp.diagonal(H)
    added = damping * curvature + FAINT * jnp.mean(curvature)
    kept = jnp.where(fixed[:, None] | fixed[None, :], 0.0, H)
    own = jnp.where(fixed, 1.0, added)
    own = jnp.where(curvature + own > 0, own, 1.0)
    return jnp.where(fixed, 0.0, solve(kept + jnp.diag(own), jnp.where(fixed, 0.0, -g)))


def _fresh(starts: Float[np.ndarray, "batch size"]) -> Lane:
    count, size = starts.shape
    unknown = Equations(np.full(count, np.inf), np.zeros((count, size)), np.zeros((count, size, size)))
    one = np.ones(count)
    none = np.zeros(count, np.int64)
    return Lane(starts, unknown, starts, one, 1e-3 * one, 2 * one, none, none)


def _compiled_update(tolerance: Tolerance, objective: AbstractLeastSquares) -> native.Kernel:
    box = objective.box
    lane = jax.tree.map(lambda x: x[0], _fresh(box.start[None]))
    f = functools.partial(update, box=box, tolerance=tolerance)
    with jax.enable_x64(True):
        return native.compile(f, lane, lane.equations, threads=objective.threads)
