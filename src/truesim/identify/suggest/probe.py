"""Probes: what passes the ports of a robot along its track, and how much torque a change of each would make."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.tap import Port, Tap
from truesim.core.typing import Array, Float
from truesim.dynamics import joint_coordinates, own_velocities
from truesim.identify.problem import Problem
from truesim.identify.suggest.track import Track
from truesim.simulate import Simulator, State
from truesim.simulate.augment import ports
from truesim.simulate.equation import BODY_VELOCITY, POSITION, VELOCITY
from truesim.simulate.history import History

THROUGH = ("actuator.command", "actuator.force", "body.wrench", "contact.normal_force", "contact.friction_force")
"""Ports that are not torques of the joints themselves: what torque they make depends on where the robot is."""


class Probe(Tap):
    """Notes what passes, and adds to it."""

    def __init__(self, changes: Mapping[str, Array]):
        self._changes, self.values = changes, dict[str, Array]()

    def wants(self, port: Port) -> bool:
        """Everything."""
        return True

    def __call__(self, port: Port, value: Array) -> Array:
        """The value with its change."""
        self.values[port.name] = value
        return value + self._changes[port.name] if port.name in self._changes else value


class Passage(NamedTuple):
    """What passed the ports at one instant."""

    values: dict[str, Array]
    """Value of every port that acts through forces of the state."""
    torque: dict[str, Array]
    """Derivative of the torques by the ports of `THROUGH`: torques, then the port's own axes."""


@dataclasses.dataclass(frozen=True)
class Prober:
    """Reads the ports along tracks of a problem."""

    problem: Problem
    theta: Float[np.ndarray, "size"]

    def passages(self, track: Track) -> Passage:
        """What passed the ports at the start of every interval of a track; two leading axes."""
        layout = self.problem.layout
        stretches, intervals = layout.intervals.duration.shape
        lanes = np.repeat(np.arange(stretches), intervals)
        states = (track.linear.q, track.linear.v, self._arrived, layout.intervals.inputs)
        arguments = (*(x[lanes] for x in self._numbers), *(x.reshape(len(lanes), -1) for x in states))
        if "passage" not in self._kernels:
            with jax.enable_x64(True):
                self._kernels["passage"] = native.compile(self._passage, *(x[0] for x in arguments))
        found = self._kernels["passage"](*arguments)
        return jax.tree.map(lambda x: np.asarray(x).reshape(stretches, intervals, *x.shape[1:]), found)

    @functools.cached_property
    def _kernels(self) -> dict[str, native.Kernel]:
        return {}

    @functools.cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of every stretch, and what is known of its log."""
        problem, log = self.problem, self.problem.layout.log
        known = np.zeros((len(log), 0)) if problem.known_values is None else problem.known_values[log]
        return self.theta[problem.columns[log]], known

    def _passage(self, theta: Array, known: Array, q: Array, v: Array, command: Array, inputs: Array) -> Passage:
        shooting = self.problem.shooting
        through = [p for p in ports.available(self.problem.simulator) if p.name in THROUGH]
        return _passage(shooting.with_inputs(shooting.simulator_of(theta, known), inputs), through, q, v, command)

    @functools.cached_property
    def _arrived(self) -> Float[np.ndarray, "stretches intervals nu"]:
        """What arrives at the actuators in every interval, after their delay."""
        problem, layout = self.problem, self.problem.layout
        intervals = layout.intervals
        if not problem.simulator.history:
            return intervals.command

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


def _passage(simulator: Simulator, through: Sequence[Port], q: Array, v: Array, command: Array) -> Passage:
    equation = simulator.equation(command)

    def torque(changes: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        tap = Probe(changes)
        tap(POSITION, joint_coordinates(simulator.model, q))
        tap(VELOCITY, v)
        tap(BODY_VELOCITY, own_velocities(simulator.model, q, v))
        total = equation.applied(q, v, tap)
        touching = None if simulator.contact is None else simulator.contact.force(simulator.model, q, v, tap)
        return (total if touching is None else total + touching[0]), tap.values

    zero = {p.name: jnp.zeros(ports.shape(simulator, p)) for p in through}
    derivative, values = jax.jacrev(torque, has_aux=True)(zero)
    return Passage(values, derivative)
