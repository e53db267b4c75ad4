"""Model predictive control: a plan that is improved at every tick from the estimated state, within a deadline."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.control.commands_in_transit import CommandsInTransit, common_delay, without_delay
from truesim.control.compiled import TaskKernels
from truesim.control.options import PlanOptions
from truesim.control.planning import plan, prepare
from truesim.control.task import Task
from truesim.core.errors import TruesimError
from truesim.core.precision import float64
from truesim.core.typing import Float
from truesim.physics.simulation import History

TIME_MARGIN = 1.5
"""Factor on the longest recent iteration, by which the next one must fit into the remaining time; larger is safer."""
FORGETTING = 0.95
"""Factor by which the longest iteration is forgotten at every tick."""


@dataclasses.dataclass(frozen=True)
class TickReport:
    """Diagnostics of one tick."""

    iterations: int
    """Iterations that fit into the deadline; 0 if only the feedback of the earlier plan was applied."""
    seconds: float
    """Duration of the tick [s]."""
    cost: float
    """Predicted cost over the horizon."""
    late: bool
    """True if the tick took longer than its deadline."""


class PredictiveController:
    """Receding-horizon controller: state estimate in, command out.

    Every tick shifts the plan by the elapsed time, replaces its initial state by the estimate, and improves it by as
    many iterations as fit into the deadline (real-time iterations: one is enough near a solution). If not even one
    fits, the feedback of the earlier plan gives the command.

    The controller keeps the commands that delayed actuators have yet to receive. With the same delay for all
    actuators, it plans from the state in which the next command will act; with different ones, past commands are part
    of the planned states.
    """

    def __init__(
        self,
        task: Task,
        *,
        iterations: int = 1,
        deadline: float | None = None,
        inputs: tuple[str, ...] = (),
        options: PlanOptions | None = None,
    ):
        """Compile, and plan from the task's initial state.

        Args:
            task: The task; its number of steps is the horizon.
            iterations: Maximum number of iterations of a tick.
            deadline: Time within which a tick returns [s]; none by default.
            inputs: Paths of numbers of the robot that `replace` may change.
            options: Options of the first plan, and its kernels' threads.
        """
        if task.design:
            raise TruesimError("A controller cannot design the robot; plan with the design first.")
        if iterations < 1:
            raise TruesimError(f"A controller makes {iterations} iterations a tick; it needs at least one.")
        self.task, self.iterations, self.deadline = task, iterations, deadline
        self._options = PlanOptions() if options is None else options
        self._delay = None if any(path.endswith(".delay") for path in inputs) else common_delay(task.simulator)
        self.kernels = TaskKernels(self._planned(task), inputs, self._options.threads)
        self._step = float(task.simulator.timestep)
        self._slowest = 0.0
        self.report = TickReport(0, 0.0, np.inf, False)
        self.reset(task.initial_state())
        self._linear(self._batch.z[0, 0])

    def reset(self, state: Any) -> None:
        """Plan anew from a state, and forget the commands sent so far."""
        with float64():
            given = self.task.simulator.started(state, jnp.zeros(self.kernels.functions.nu))
            task = self._planned(self.task.replace(start=given))
            first = plan(task, options=self._options, kernels=self.kernels)
            alone = dataclasses.replace(self._options, starts=1)
            self._batch, _ = prepare(self.kernels, [task], [first], alone, False)
            self._template = self.kernels.functions.state_of(jnp.asarray(self._batch.z[0, 0]))
        history = self._template.history
        zero = jax.tree.map(np.zeros_like, self._template)
        stamps = None if history is None else dataclasses.replace(zero.history, time=np.ones_like(history.time))
        self._is_time = np.asarray(ravel_pytree(dataclasses.replace(zero, time=np.ones(()), history=stamps))[0])
        self._feedback = self._batch.policy(np.array([0])).feedback[0]
        self._sent: History | None = self._template.history
        self._transit = (
            CommandsInTransit(self._delay, self._step, given, self.kernels.functions.nu) if self._delay else None
        )
        self._time: float | None = None

    @property
    def predicted(self) -> tuple[Float[np.ndarray, "knots nq"], Float[np.ndarray, "steps nu"]]:
        """Configurations and commands of the present plan, from the time on at which the next command acts."""
        return self._batch.z[0, :, : self.task.simulator.model.nq], self._batch.u[0]

    def replace(self, values: Mapping[str, Any] | None = None, costs: Mapping[str, Any] | None = None) -> None:
        """Use other numbers of the robot, by path, or other costs of the same structure, from the next tick on.

        Args:
            values: New numbers; only paths of `inputs` may change.
            costs: New costs by name, such as another target.
        """
        unknown = [path for path in values or {} if path not in self.kernels.functions.inputs]
        if unknown:
            raise TruesimError(f"{unknown[0]} is a constant of this controller; name it in inputs.")
        simulator = self.task.simulator.replace(values) if values else self.task.simulator
        with float64():
            self.task = self.task.replace(simulator=simulator, costs={**self.task.costs, **(costs or {})})
            theta, rows = self.kernels.functions.pack(self._planned(self.task))
        self._batch.theta[0] = theta
        self._batch.rows[0, :, : rows.shape[1]] = rows

    def __call__(
        self, q: Float[np.ndarray, " nq"], v: Float[np.ndarray, " nv"], now: float
    ) -> Float[np.ndarray, " nu"]:
        """Command to send now.

        Args:
            q: Estimated configuration.
            v: Estimated velocity.
            now: Time of the estimate [s]; it never decreases between resets.
        """
        begun = time.perf_counter()
        elapsed = 0.0 if self._time is None else now - self._time
        if elapsed < 0:
            raise TruesimError(f"The time went back from {self._time:g} to {now:g} s; call reset first.")
        self._time = now
        batch = self._batch
        if elapsed:
            self._shift(elapsed / self._step)
        before = batch.z[0, 0].copy()
        batch.z[0, 0] = self._estimate(q, v, now)
        done = 0
        while done < self.iterations and self._fits(begun):
            started = time.perf_counter()
            batch.alone.improve()
            self._feedback = batch.alone.policy.feedback
            self._slowest = max(self._slowest * FORGETTING, time.perf_counter() - started)
            done += 1
        command = batch.u[0, 0] if done else self._linear(before)
        self._remember(command, now)
        spent = time.perf_counter() - begun
        late = self.deadline is not None and spent > self.deadline
        self.report = TickReport(done, spent, float(batch.cost[0]), late)
        return command.copy()

    def _planned(self, task: Task) -> Task:
        """The task of the plans: without the delay that is the same for all actuators."""
        if self._delay is None or not task.simulator.history:
            return task
        start = dataclasses.replace(task.initial_state(), history=None)
        return task.replace(simulator=without_delay(task.simulator), start=start)

    def _fits(self, begun: float) -> bool:
        """True if another iteration ends before the deadline."""
        if self.deadline is None:
            return True
        return time.perf_counter() - begun + TIME_MARGIN * self._slowest < self.deadline

    def _linear(self, before: np.ndarray) -> np.ndarray:
        """Command of the earlier plan, with its feedback to the change of the initial state."""
        change = self.kernels.change(self._batch.z[0, 0], before)
        command = self._batch.u[0, 0] + self._feedback[0, :, 1 : len(change) + 1] @ change
        return np.clip(command, self._batch.low, self._batch.high)

    def _shift(self, steps: float) -> None:
        """Move the plan forward in time; what lies beyond its end repeats the last command."""
        batch, T = self._batch, self.kernels.functions.steps
        whole = int(min(np.floor(steps + 1e-9), T))
        part = max(steps - whole, 0.0) if whole < T else 0.0
        at = np.minimum(np.arange(T) + whole, T - 1)
        batch.u[0] = batch.u[0, at]
        batch.z[0] = batch.z[0, np.minimum(np.arange(T + 1) + whole, T)]
        self._feedback = self._feedback[at]
        if part > 1e-9:
            batch.u[:, :-1] += part * (batch.u[:, 1:] - batch.u[:, :-1])
            change = self.kernels.change(batch.z[0, 1:], batch.z[0, :-1])
            batch.z[0, :-1] = self.kernels.moved(batch.z[0, :-1], part * change) + part * self._step * self._is_time

    def _estimate(self, q: np.ndarray, v: np.ndarray, now: float) -> np.ndarray:
        """Flat state in which the next command acts, from an estimate and the commands sent so far."""
        model = self.task.simulator.model
        z = self._batch.z[0, 0].copy()
        z[: model.nq], z[model.nq : model.nq + model.nv] = q, v
        z[model.nq + model.nv] = now
        if self._sent is not None:
            values, stamps = np.asarray(self._sent.values), np.asarray(self._sent.time)
            start = model.nq + model.nv + 1
            z[start : start + values.size] = values.ravel()
            z[start + values.size : start + values.size + stamps.size] = stamps
        if self._transit is None:
            return z
        return self.kernels.advance(z, self._transit.acting(now), self._transit.timestep, self._batch.theta[0])

    def _remember(self, command: np.ndarray, now: float) -> None:
        """Keep a command that was sent."""
        if self._transit is not None:
            self._transit.send(command, now)
        if self._sent is not None:
            values = np.concatenate([np.asarray(self._sent.values)[1:], command[None]])
            self._sent = History(values, np.concatenate([np.asarray(self._sent.time)[1:], [now]]))
