"""Our side of every measurement.

Inertial parameters are arguments, except in `acceleration_derivatives`, where the whole model is constant.
"""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import best_seconds, main
from benchmarks.robots import humanoid_xml, quadruped_xml, serial_arm_xml
from truesim import native
from truesim.dynamics import forward_dynamics
from truesim.formats.load import loads
from truesim.simulate import Simulator, State, rollout

BATCH, STEPS = 1024, 1000


class Case:
    """A robot with random states, and functions of its inertial parameters."""

    def __init__(self, xml: str, batch: int = BATCH):
        self.simulator = jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, Simulator.of(loads(xml)))
        model = self.simulator.model
        rng = np.random.default_rng(0)
        at_rest = State.at_rest(model)
        self.state = State(np.asarray(at_rest.q), np.zeros(model.nv), np.zeros(()))
        self.command = np.zeros(model.actuators.gain.shape[0])
        self.states = State(
            np.tile(self.state.q, (batch, 1)), 0.1 * rng.normal(size=(batch, model.nv)), np.zeros(batch)
        )
        self.commands = rng.normal(size=(batch, self.command.size))
        bodies = model.bodies
        self.theta = bodies.mass, bodies.com, bodies.inertia

    def changed(self, theta: Any) -> Simulator:
        """The simulator with other inertial parameters."""
        where = lambda s: (s.model.bodies.mass, s.model.bodies.com, s.model.bodies.inertia)  # noqa: E731
        return eqx.tree_at(where, self.simulator, theta)

    def step(self, theta: Any, state: State, command: Any) -> State:
        """One time step."""
        return self.changed(theta).step(state, command)[0]

    def positions(self, theta: Any, state: State, commands: Any) -> Any:
        """Configurations along a rollout."""
        return rollout(self.changed(theta), state, commands, keep=lambda s, _: s.q)[1]

    def loss(self, theta: Any, state: State, commands: Any) -> Any:
        """A loss over a rollout."""
        return jnp.sum((self.positions(theta, state, commands) - 0.1) ** 2)


def step(xml: str) -> dict:
    """Microseconds of a step, an instance of a batch."""
    case = Case(xml)
    kernel = native.compile(case.step, case.theta, case.state, case.command)
    seconds = best_seconds(lambda: kernel(case.theta, case.states, case.commands), 200)
    return {"us": 1e6 * seconds / BATCH}


def single_rollout() -> dict:
    """Microseconds of a step, one instance, in a rollout of a thousand."""
    case = Case(serial_arm_xml(), 1)
    commands = np.zeros((STEPS, 7))
    kernel = native.compile(case.positions, case.theta, case.state, commands)
    return {"us": 1e6 * best_seconds(lambda: kernel(case.theta, case.state, commands)) / STEPS}


def gradient() -> dict:
    """Microseconds of a step forward, and forward and back, an instance in lanes."""
    case = Case(serial_arm_xml(), 64)
    commands = np.zeros((64, STEPS, 7))
    functions = {"forward": case.positions, "us": jax.value_and_grad(case.loss, argnums=(0, 1, 2))}
    result = {}
    for name, f in functions.items():
        kernel = native.compile(f, case.theta, case.state, commands[0])
        seconds = best_seconds(lambda kernel=kernel: kernel(case.theta, case.states, commands), 3)
        result[name] = 1e6 * seconds / 64 / STEPS
    return result


def acceleration_derivatives() -> dict:
    """Microseconds of the acceleration and its derivatives in q, v and tau, an instance of a batch."""
    case = Case(serial_arm_xml())

    def f(q: Any, v: Any, tau: Any) -> Any:
        acceleration = lambda *args: forward_dynamics(case.simulator.model, *args)  # noqa: E731
        return acceleration(q, v, tau), jax.jacfwd(acceleration, argnums=(0, 1, 2))(q, v, tau)

    zero = np.zeros(7)
    kernel = native.compile(f, zero, zero, zero)
    seconds = best_seconds(lambda: kernel(case.states.q, case.states.v, case.commands), 100)
    return {"us": 1e6 * seconds / BATCH}


def threads() -> dict:
    """Seconds of a rollout of 100 steps, batch 4,096, on one and on two threads."""
    case = Case(serial_arm_xml(), 4096)
    commands = np.zeros((4096, 100, 7))
    result = {}
    for count in (1, 2):
        kernel = native.compile(case.positions, case.theta, case.state, commands[0], threads=count)
        result[str(count)] = best_seconds(lambda kernel=kernel: kernel(case.theta, case.states, commands), 20)
    return result


def compile_step() -> dict:
    """Seconds from the function to a kernel that runs: the step."""
    return _compilation(lambda case: (case.step, case.command))


def compile_gradient() -> dict:
    """Seconds from the function to a kernel that runs: the gradient of a rollout."""
    return _compilation(lambda case: (jax.value_and_grad(case.loss, argnums=(0, 1, 2)), np.zeros((STEPS, 7))))


def _compilation(choose: Callable[[Case], tuple[Callable[..., Any], Any]]) -> dict:
    case = Case(serial_arm_xml(), 1)
    f, commands = choose(case)
    start = time.perf_counter()
    native.compile(f, case.theta, case.state, commands)
    return {"s": time.perf_counter() - start}


MEASUREMENTS: dict[str, Callable[[], dict]] = {
    "arm": lambda: step(serial_arm_xml()),
    "quadruped": lambda: step(quadruped_xml()),
    "humanoid": lambda: step(humanoid_xml()),
    "single_rollout": single_rollout,
    "gradient": gradient,
    "acceleration_derivatives": acceleration_derivatives,
    "threads": threads,
    "compile_step": compile_step,
    "compile_gradient": compile_gradient,
}

if __name__ == "__main__":
    with jax.enable_x64(True):
        main(MEASUREMENTS)
