"""Levenberg-Marquardt within bounds for a batch of starts: each solve is one batch element of the native kernel.

A solve that has converged, stalled or reached its limit frees its place for the next start, so that no solve waits for
another. The result of a solve does not depend on the other elements of the batch.
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
from truesim.math.dense import solve
from truesim.optimize.basins import SolveRecord, SolveStatus
from truesim.optimize.damping import FIRST_DAMPING, HIGHEST_DAMPING, update_damping
from truesim.optimize.objective import AbstractLeastSquares, Equations, SearchSpace

STATUS_CODES = (None, SolveStatus.CONVERGED, SolveStatus.STALLED, SolveStatus.LIMIT, SolveStatus.NOT_FINITE)
"""Status of a solve by the integer that the kernel returns; 0 while it runs."""
STEPS_PER_ITERATION = 2**22
"""Simulated steps of one iteration of a full batch, about: a larger number makes larger batches."""
LARGEST_BATCH = 512
"""Largest number of solves in a batch, unless a capacity is given."""
DIAGONAL_REGULARIZATION = 1e-14
"""Fraction of the mean curvature that is added to the curvature of every coordinate."""


@dataclasses.dataclass(frozen=True)
class LevenbergMarquardtOptions:
    """Termination of a local solve."""

    ftol: float = 1e-8
    """Converged when the predicted decrease of the cost is below this fraction of the cost."""
    xtol: float = 1e-8
    """Converged when the step is shorter than this fraction of the coordinates."""
    iterations: int = 100
    """Maximum number of evaluations."""


@dataclasses.dataclass(frozen=True)
class SolveTask:
    """A local solve to run."""

    chain: int
    hop: int
    start: Float[np.ndarray, " size"]


class LevenbergMarquardtState(NamedTuple):
    """State of one solve, or of a batch."""

    theta: Float[Array, "*batch size"]
    """Best coordinates so far."""
    equations: Equations
    """Normal equations there; of infinite cost before the first evaluation."""
    trial: Float[Array, "*batch size"]
    """Coordinates to evaluate next."""
    predicted: Float[Array, "*batch"]
    """Predicted decrease of the cost at the trial."""
    damping: Float[Array, "*batch"]
    growth: Float[Array, "*batch"]
    """Factor by which a rejected step increases the damping."""
    iterations: Int[Array, "*batch"]
    status: Int[Array, "*batch"]
    """Index into `STATUS_CODES`."""


class BatchedLevenbergMarquardt:
    """Local solves that run side by side."""

    def __init__(
        self, objective: AbstractLeastSquares, options: LevenbergMarquardtOptions | None = None, capacity: int = 0
    ):
        """Compile the update; no solve runs yet.

        Args:
            objective: The objective to minimize.
            options: Termination of each solve.
            capacity: Largest number of solves in the batch; chosen from the length of a simulation by default.
        """
        usual = int(np.clip(STEPS_PER_ITERATION // objective.steps, 8 * objective.threads, LARGEST_BATCH))
        self.objective, self.capacity = objective, capacity or usual
        self._states = _initial_states(np.zeros((0, len(objective.space.start))))
        self._tasks: list[SolveTask] = []
        self._update = _compile_update(options or LevenbergMarquardtOptions(), objective)

    @property
    def room(self) -> int:
        """Number of solves that can be added."""
        return self.capacity - len(self._tasks)

    def add(self, tasks: Sequence[SolveTask]) -> None:
        """Add solves to the batch."""
        if tasks:
            begun = _initial_states(np.stack([task.start for task in tasks]))
            self._states = jax.tree.map(lambda a, b: np.concatenate([a, b]), self._states, begun)
            self._tasks += tasks

    def advance(self) -> list[SolveRecord]:
        """Iterate until at least one solve has ended, and return those that have."""
        while self._tasks:
            states = self._update(self._states, self.objective.equations(np.asarray(self._states.trial)))
            ended = np.asarray(states.status > 0)
            if ended.any():
                return self._remove(states, ended)
            self._states = states
        return []

    def close(self) -> None:
        """Drop all running solves."""
        self._tasks = []

    def _remove(self, states: LevenbergMarquardtState, ended: Bool[np.ndarray, " batch"]) -> list[SolveRecord]:
        done = []
        for k in np.flatnonzero(ended):
            status = STATUS_CODES[states.status[k]]
            assert status is not None, "the solve has ended"
            done.append(
                SolveRecord(
                    chain=self._tasks[k].chain,
                    hop=self._tasks[k].hop,
                    start=self._tasks[k].start,
                    theta=np.array(states.theta[k]),
                    cost=float(states.equations.cost[k]),
                    iterations=int(states.iterations[k]),
                    status=status,
                )
            )
        self._states = jax.tree.map(lambda x: x[~ended], states)
        self._tasks = [task for task, over in zip(self._tasks, ended, strict=True) if not over]
        return done


def update(
    state: LevenbergMarquardtState, new: Equations, space: SearchSpace, options: LevenbergMarquardtOptions
) -> LevenbergMarquardtState:
    """One iteration: accept or reject the trial, adapt the damping, and compute the next step.

    Args:
        state: State of the solve.
        new: Normal equations at its trial.
        space: Bounds.
        options: Termination.
    """
    old = state.equations
    better = new.cost < old.cost
    ratio = jnp.where(state.iterations == 0, 0.5, (old.cost - new.cost) / state.predicted)
    damping, growth = update_damping(state.damping, state.growth, ratio, better, xp=jnp)
    theta = jnp.where(better, state.trial, state.theta)
    equations = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
    step, predicted = damped_step(theta, equations, damping, space)
    iterations = state.iterations + 1
    still = jnp.sqrt(jnp.sum(step**2)) < options.xtol * (options.xtol + jnp.sqrt(jnp.sum(theta**2)))
    small = still | (predicted <= options.ftol * equations.cost)
    status = jnp.where(iterations >= options.iterations, 3, 0)
    status = jnp.where(damping > HIGHEST_DAMPING, 2, status)
    status = jnp.where(small, jnp.where(damping > 1, 2, 1), status)
    status = jnp.where(jnp.isfinite(equations.cost), status, 4)
    return LevenbergMarquardtState(theta, equations, theta + step, predicted, damping, growth, iterations, status)


def damped_step(
    theta: Float[Array, " size"], equations: Equations, damping: Float[Array, ""], space: SearchSpace
) -> tuple[Float[Array, " size"], Float[Array, ""]]:
    """Marquardt's step within bounds, and the predicted decrease of the cost.

    Coordinates at a bound stay there if the gradient points outwards. Coordinates that the step would move beyond a
    bound stop at it, and the step of the others is computed again. Two such rounds replace the active-set method of
    `minimize_in_box`, whose number of rounds depends on the data and would differ between elements of a batch.
    """
    g, H = equations.gradient, equations.matrix
    room = (space.low - theta, space.high - theta)
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
    added = damping * curvature + DIAGONAL_REGULARIZATION * jnp.mean(curvature)
    kept = jnp.where(fixed[:, None] | fixed[None, :], 0.0, H)
    own = jnp.where(fixed, 1.0, added)
    own = jnp.where(curvature + own > 0, own, 1.0)
    return jnp.where(fixed, 0.0, solve(kept + jnp.diag(own), jnp.where(fixed, 0.0, -g)))


def _initial_states(starts: Float[np.ndarray, "batch size"]) -> LevenbergMarquardtState:
    count, size = starts.shape
    unknown = Equations(np.full(count, np.inf), np.zeros((count, size)), np.zeros((count, size, size)))
    one = np.ones(count)
    none = np.zeros(count, np.int64)
    return LevenbergMarquardtState(starts, unknown, starts, one, FIRST_DAMPING * one, 2 * one, none, none)


def _compile_update(options: LevenbergMarquardtOptions, objective: AbstractLeastSquares) -> native.Kernel:
    space = objective.space
    state = jax.tree.map(lambda x: x[0], _initial_states(space.start[None]))
    f = functools.partial(update, space=space, options=options)
    with jax.enable_x64(True):
        return native.compile(f, state, state.equations, threads=objective.threads)
