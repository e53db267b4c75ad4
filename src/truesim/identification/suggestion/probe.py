"""Values of a robot's ports along its track, and the derivatives of torques by them."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.tap import Port, Tap
from truesim.core.typing import Array, Float
from truesim.identification.problem.problem import Problem
from truesim.identification.suggestion.track import Track
from truesim.physics.blueprint import ports
from truesim.physics.dynamics import joint_coordinates, own_velocities
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.equation_of_motion import BODY_VELOCITY, POSITION, VELOCITY
from truesim.physics.simulation.history import History

FORCE_PORTS = ("actuator.command", "actuator.force", "body.wrench", "contact.normal_force", "contact.friction_force")
"""Ports that are not joint torques; the torque of one unit depends on the configuration."""


class Probe(Tap):
    """Tap that records every value, and adds changes to some."""

    def __init__(self, changes: Mapping[str, Array]):
        self._changes, self.values = changes, dict[str, Array]()

    def wants(self, port: Port) -> bool:
        """Return True for every port."""
        return True

    def __call__(self, port: Port, value: Array) -> Array:
        """Record a value, and return it with its change."""
        self.values[port.name] = value
        return value + self._changes[port.name] if port.name in self._changes else value


class PortValues(NamedTuple):
    """Values of all ports at one instant, and derivatives of the torques."""

    values: dict[str, Any]
    """Value of every port that is a function of the state: traced in a kernel, NumPy in its results."""
    torque: dict[str, Any]
    """Derivative of the torques by each of `FORCE_PORTS`: torques, then the axes of the port."""


@dataclasses.dataclass(frozen=True)
class Prober:
    """Evaluates the ports along tracks of a problem."""

    problem: Problem
    theta: Float[np.ndarray, " size"]

    def port_values(self, track: Track) -> PortValues:
        """Port values at the start of every interval of a track; leading axes are segments and intervals."""
        layout = self.problem.layout
        segments, intervals = layout.intervals.duration.shape
        rows = np.repeat(np.arange(segments), intervals)
        states = (track.linear.q, track.linear.v, self._delayed_commands, layout.intervals.inputs)
        arguments = (*(x[rows] for x in self._numbers), *(x.reshape(len(rows), -1) for x in states))
        if "values" not in self._kernels:
            with jax.enable_x64(True):
                self._kernels["values"] = native.compile(self._port_values, *(x[0] for x in arguments))
        found = self._kernels["values"](*arguments)
        return jax.tree.map(lambda x: np.asarray(x).reshape(segments, intervals, *x.shape[1:]), found)

    @functools.cached_property
    def _kernels(self) -> dict[str, native.Kernel]:
        return {}

    @functools.cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters and known values of every segment."""
        problem, log = self.problem, self.problem.layout.log
        known = np.zeros((len(log), 0)) if problem.known_values is None else problem.known_values[log]
        return self.theta[problem.columns[log]], known

    def _port_values(self, theta: Array, known: Array, q: Array, v: Array, command: Array, inputs: Array) -> PortValues:
        shooting = self.problem.shooting
        through = [p for p in ports.available(self.problem.simulator) if p.name in FORCE_PORTS]
        return _port_values(shooting.with_inputs(shooting.simulator_of(theta, known), inputs), through, q, v, command)

    @functools.cached_property
    def _delayed_commands(self) -> Float[np.ndarray, "segments intervals nu"]:
        """Delayed commands of the actuators in every interval."""
        problem, layout = self.problem, self.problem.layout
        intervals = layout.intervals
        if not problem.simulator.history:
            return np.asarray(intervals.command)

        def arrive(theta: Array, known: Array, commands: Array, stamps: Array, sent: Array, duration: Array) -> Array:
            simulator = problem.shooting.simulator_of(theta, known)

            def later(state: State, interval: tuple[Array, Array]) -> tuple[State, Array]:
                at, held = simulator.delayed(state, interval[0])
                return State(state.q, state.v, state.time + interval[1], held), at

            start = State(jnp.zeros(0), jnp.zeros(0), jnp.zeros(()), History(commands, stamps))
            return jax.lax.scan(later, start, (sent, duration))[1]

        arguments = (*self._numbers, layout.commands, layout.stamps, intervals.command, intervals.duration)
        with jax.enable_x64(True):
            return native.compile(arrive, *(x[0] for x in arguments))(*arguments)


def _port_values(simulator: Simulator, through: Sequence[Port], q: Array, v: Array, command: Array) -> PortValues:
    equation = simulator.equation(command)

    def torque(changes: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        tap = Probe(changes)
        tap(POSITION, joint_coordinates(simulator.model, q))
        tap(VELOCITY, v)
        tap(BODY_VELOCITY, own_velocities(simulator.model, q, v))
        total = equation.applied(q, v, tap)
        contact = simulator.force_contact
        touching = None if contact is None else contact.force(simulator.model, q, v, tap)
        return (total if touching is None else total + touching[0]), tap.values

    zero = {p.name: jnp.zeros(ports.shape(simulator, p)) for p in through}
    derivative, values = jax.jacrev(torque, has_aux=True)(zero)
    return PortValues(values, derivative)
