"""Measurements of truesim; inertial parameters are inputs of every kernel, not constants."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.robots import humanoid_xml, quadruped_xml, serial_arm_xml
from benchmarks.timing import Measured, best_seconds, elapsed
from truesim import native
from truesim.files.robots.load import loads
from truesim.physics.dynamics import forward_dynamics
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, rollout

STEPS = 1000
GRADIENT_BATCH = 64
"""Batch size of gradients."""


class Case:
    """A robot with random states, and functions of its inertial parameters, in JAX's current precision."""

    def __init__(self, xml: str, batch: int):
        self.simulator = as_numpy(Simulator.of(loads(xml)))
        model = self.simulator.model
        rng = np.random.default_rng(0)
        self.theta = _inertial(model)
        self.state = as_numpy(self.simulator.initial_state())
        self.command = as_numpy(np.zeros(model.nu))
        velocities = 0.1 * rng.normal(size=(batch, model.nv))
        self.states = as_numpy(State(np.tile(self.state.q, (batch, 1)), velocities, np.zeros(batch)))
        self.commands = as_numpy(rng.normal(size=(batch, model.nu)))

    def step(self, theta: Any, state: State, command: Any) -> State:
        """One time step."""
        return self._changed(theta).step(state, command)[0]

    def final(self, theta: Any, state: State, commands: Any) -> State:
        """The state after a rollout."""
        return rollout(self._changed(theta), state, commands)[0]

    def positions(self, theta: Any, state: State, commands: Any) -> Any:
        """Configurations along a rollout."""
        return rollout(self._changed(theta), state, commands, keep=lambda s, _: s.q)[1]

    def loss(self, theta: Any, state: State, commands: Any) -> Any:
        """A loss over a rollout."""
        return jnp.sum((self.positions(theta, state, commands) - 0.1) ** 2)

    def gradient(self, theta: Any, state: State, commands: Any) -> Any:
        """The loss and its gradient with respect to inertial parameters, initial state and controls."""
        return jax.value_and_grad(self.loss, argnums=(0, 1, 2))(theta, state, commands)

    def derivatives(self, theta: Any, q: Any, v: Any, tau: Any) -> Any:
        """The acceleration and its derivatives with respect to q, v and tau."""
        acceleration = partial(forward_dynamics, self._changed(theta).model)
        return acceleration(q, v, tau), jax.jacfwd(acceleration, argnums=(0, 1, 2))(q, v, tau)

    def _changed(self, theta: Any) -> Simulator:
        return eqx.tree_at(lambda s: _inertial(s.model), self.simulator, theta)


def _inertial(model: Model) -> tuple[Any, Any, Any]:
    return model.bodies.mass, model.bodies.com, model.bodies.inertia


def as_numpy(tree: Any) -> Any:
    """The tree with NumPy arrays as leaves, in JAX's current precision."""
    real = jnp.zeros(()).dtype

    def converted(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return array.astype(real) if np.issubdtype(array.dtype, np.floating) else array

    return jax.tree.map(lambda leaf: converted(leaf) if eqx.is_array(leaf) else leaf, tree)


def _timed(f: Callable, example: tuple, args: tuple, patience: float, threads: int = 1) -> Measured:
    """Compile f for one example, then time it on a batch [s per call]."""
    compiled: list[Callable] = []
    compilation = elapsed(lambda: compiled.append(native.compile(f, *example, threads=threads)))
    return Measured(best_seconds(lambda: compiled[0](*args), patience), compilation)


def share(measured: Measured, units: int) -> Measured:
    """Time per unit of work."""
    return Measured(measured.seconds / units, measured.compilation)


def step(xml: Callable[[], str], batch: int, patience: float) -> Measured:
    """Time per step and batch element."""
    case = Case(xml(), batch)
    example, args = (case.theta, case.state, case.command), (case.theta, case.states, case.commands)
    return share(_timed(case.step, example, args, patience), batch)


def single_rollout(patience: float) -> Measured:
    """Time per step of one rollout of a thousand steps."""
    case = Case(serial_arm_xml(), 1)
    args = case.theta, case.state, np.zeros((STEPS, 7))
    return share(_timed(case.positions, args, args, patience), STEPS)


@dataclass(frozen=True)
class Rollouts:
    """Time of a function of rollouts, per step and batch element."""

    function: str
    """Name of a method of `Case`."""
    batch: int
    steps: int
    xml: Callable[[], str] = serial_arm_xml
    threads: int = 1

    def __call__(self, patience: float) -> Measured:
        """Measure the time per step and batch element."""
        case = Case(self.xml(), self.batch)
        commands = np.zeros((self.batch, self.steps, case.command.size), case.command.dtype)
        example, args = (case.theta, case.state, commands[0]), (case.theta, case.states, commands)
        measured = _timed(getattr(case, self.function), example, args, patience, self.threads)
        return share(measured, self.batch * self.steps)


def derivatives(patience: float, batch: int = 1024) -> Measured:
    """Time of the acceleration and its derivatives, per batch element."""
    case = Case(serial_arm_xml(), batch)
    example, args = (case.theta, *(np.zeros(7),) * 3), (case.theta, case.states.q, case.states.v, case.commands)
    return share(_timed(case.derivatives, example, args, patience), batch)


def compilation(function: str, patience: float) -> Measured:
    """Compile time from function to kernel; `patience` is ignored, because it is measured once."""
    del patience
    case = Case(serial_arm_xml(), 1)
    commands = case.command if function == "step" else np.zeros((STEPS, 7))
    return Measured(elapsed(lambda: native.compile(getattr(case, function), case.theta, case.state, commands)))


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "arm": partial(step, serial_arm_xml, 1024),
    "arm 256": partial(step, serial_arm_xml, 256),
    "quadruped": partial(step, quadruped_xml, 1024),
    "quadruped 256": partial(step, quadruped_xml, 256),
    "humanoid": partial(step, humanoid_xml, 1024),
    "rollout": single_rollout,
    "loss": Rollouts("loss", GRADIENT_BATCH, STEPS),
    "gradient": Rollouts("gradient", GRADIENT_BATCH, STEPS),
    "derivatives": derivatives,
    "1 thread": Rollouts("positions", 4096, 100),
    "2 threads": Rollouts("positions", 4096, 100, threads=2),
    "quadruped rollout": Rollouts("final", 256, 100, quadruped_xml),
    "compile step": partial(compilation, "step"),
    "compile gradient": partial(compilation, "gradient"),
}
