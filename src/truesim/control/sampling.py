"""Planning by sampling: predictive sampling, MPPI and the cross-entropy method on batches of simulations.

Commands are splines through a few nodes. A round draws nodes around a mean, simulates all of them in one batch, and
moves the mean: to the best sample (predictive sampling), to the average weighted by `exp(-cost / temperature)` (MPPI,
Williams 2017), or to the average of the best samples, whose standard deviation is kept (cross-entropy, Kobilarov 2012).
No derivatives are needed, so that contacts may be as hard as they are.
"""

import dataclasses
import time
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.control.compiled import TaskKernels
from truesim.control.task import Task
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.precision import float64
from truesim.core.typing import Float

SamplingMethod = Literal["predictive", "mppi", "cross_entropy"]
SAMPLING_METHODS = ("predictive", "mppi", "cross_entropy")
"""Names of the methods."""


@dataclasses.dataclass(frozen=True)
class SamplingOptions:
    """Method, number of samples and noise of planning by sampling."""

    method: SamplingMethod = "cross_entropy"
    """`predictive`, `mppi` or `cross_entropy`."""
    samples: int = 256
    """Simulations of a round."""
    rounds: int = 10
    """Rounds of a plan."""
    nodes: int = 10
    """Nodes of the spline of each command; fewer give smoother commands."""
    noise: float = 0.3
    """First standard deviation of the nodes, relative to half the range of each command (to 1 where it has none)."""
    elites: float = 0.1
    """Part of the samples that the cross-entropy method averages."""
    smallest_noise: float = 0.02
    """Standard deviation below which the cross-entropy method does not shrink, relative as `noise`."""
    temperature: float = 0.1
    """Temperature of MPPI, relative to the standard deviation of the costs of a round; larger averages more samples."""
    seed: int = 0
    """Seed of the samples."""
    threads: int = 1

    def __post_init__(self) -> None:
        if self.method not in SAMPLING_METHODS:
            raise unknown_name("sampling method", self.method, SAMPLING_METHODS)
        for name in ("samples", "rounds", "nodes", "noise", "elites", "temperature", "threads"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")


@dataclasses.dataclass(frozen=True)
class SampledPlan:
    """Best commands of planning by sampling."""

    commands: Float[np.ndarray, "steps nu"]
    cost: float
    """Cost of the commands; violated limits add their penalty."""
    history: Float[np.ndarray, " rounds"]
    """Best cost after each round."""
    samples: int
    """Number of simulations."""
    seconds: float


class SamplingPlanner:
    """Planner by sampling for one task; also a controller, as `PredictiveController`."""

    def __init__(self, task: Task, options: SamplingOptions | None = None, kernels: TaskKernels | None = None):
        """Prepare the simulations.

        Args:
            task: The task, without designed numbers.
            options: Options.
            kernels: Compiled functions of a task of the same structure.
        """
        if task.design:
            raise TruesimError("Sampling plans commands only; designed numbers need plan.")
        self.task, self.options = task, SamplingOptions() if options is None else options
        self.kernels = TaskKernels(task, threads=self.options.threads) if kernels is None else kernels
        with float64():
            theta, rows = self.kernels.functions.pack(task)
        extra = np.zeros((len(rows), self.kernels.multipliers + 1))
        extra[:, -1] = self.options.samples
        self._numbers = theta, np.concatenate([rows, extra], axis=1) if self.kernels.multipliers else rows
        self._low, self._high = task.command_bounds()
        bounded = np.isfinite(self._high - self._low)
        self._scale = np.where(bounded, (self._high - self._low) / 2, 1.0)
        self._basis = _hat_functions(task.steps, self.options.nodes)
        self._rng = np.random.default_rng(self.options.seed)
        self._mean: np.ndarray | None = None
        self._time: float | None = None

    def plan(self, state: Any = None, mean: Float[np.ndarray, "nodes nu"] | None = None) -> SampledPlan:
        """Best commands from a state.

        Args:
            state: Initial state; the task's by default.
            mean: First nodes; zero, or the middle of the ranges, by default.
        """
        begun, options = time.perf_counter(), self.options
        z = self._flat(self.task.initial_state() if state is None else state)
        mean, deviation = self._start() if mean is None else mean, options.noise * self._scale
        best, lowest, history = mean, np.inf, []
        for _ in range(options.rounds):
            nodes, costs = self._round(z, np.stack([mean, best]), deviation)
            k = int(np.argmin(costs))
            if costs[k] < lowest:
                best, lowest = nodes[k], float(costs[k])
            history.append(lowest)
            mean, deviation = self._move(nodes, costs, deviation)
        self._mean = best
        commands = np.clip(self._basis @ best, self._low, self._high)
        count = options.rounds * options.samples
        return SampledPlan(commands, lowest, np.array(history), count, time.perf_counter() - begun)

    def __call__(
        self, q: Float[np.ndarray, " nq"], v: Float[np.ndarray, " nv"], now: float
    ) -> Float[np.ndarray, " nu"]:
        """Command to send now: `options.rounds` rounds around the earlier plan, shifted in time."""
        mean = self._mean
        if mean is not None and self._time is not None:
            span = self.task.steps * float(self.task.simulator.timestep) / max(self.options.nodes - 1, 1)
            at = np.arange(len(mean)) + (now - self._time) / span
            mean = np.stack([np.interp(at, np.arange(len(mean)), column) for column in mean.T], axis=1)
        self._time = now
        with float64():
            state = self.task.simulator.initial_state(q=q, v=v, time=now)
        return self.plan(state, mean).commands[0]

    def _start(self) -> np.ndarray:
        middle = np.where(np.isfinite(self._high - self._low), (self._low + self._high) / 2, 0.0)
        return np.tile(middle, (self.options.nodes, 1))

    def _flat(self, state: Any) -> np.ndarray:
        with float64():
            command = jnp.zeros(self.kernels.functions.nu)
            return np.asarray(ravel_pytree(self.kernels.functions.simulator.started(state, command))[0])

    def _round(self, z: np.ndarray, kept: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and costs of a round; the kept nodes are among them."""
        draws = self.options.samples - len(kept)
        noise = self._rng.normal(size=(max(draws, 1), *kept.shape[1:]))
        nodes = np.concatenate([kept, np.clip(kept[0] + deviation * noise, self._low, self._high)])
        commands = np.clip(np.einsum("tk,bku->btu", self._basis, nodes), self._low, self._high)
        costs = self.kernels.cost(z, commands, self._numbers)
        return nodes, np.where(np.isfinite(costs), costs, np.inf)

    def _move(self, nodes: np.ndarray, costs: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the next round."""
        options = self.options
        if options.method == "predictive" or not np.isfinite(costs).any():
            return nodes[np.argmin(costs)], deviation
        if options.method == "mppi":
            finite = costs[np.isfinite(costs)]
            weights = np.exp(-(costs - finite.min()) / (options.temperature * (finite.std() + 1e-300)))
            return np.einsum("b,bku->ku", weights / weights.sum(), nodes), deviation
        elite = nodes[np.argsort(costs)[: max(2, round(options.elites * len(nodes)))]]
        return elite.mean(0), np.maximum(elite.std(0), options.smallest_noise * self._scale)


def _hat_functions(steps: int, nodes: int) -> Float[np.ndarray, "steps nodes"]:
    """Matrix that interpolates linearly from nodes to the commands of all steps."""
    at = np.linspace(0, nodes - 1, steps) if nodes > 1 else np.zeros(steps)
    return np.maximum(1 - np.abs(at[:, None] - np.arange(nodes)), 0.0)
