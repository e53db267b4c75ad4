"""What readings tell of parameters along a motion, and how that changes with the commands.

Readings y(theta, c) follow from parameters and commands through the simulator. Fisher's information of the parameters
is F = sum over samples J^T R^-1 J, with J = dy/dtheta and noise R. Both J and, for any weights W, the gradient of
sum(W * J) by the commands are native kernels, in which each lane is one parameter: forward mode along the parameter,
and reverse mode through that.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.actuators.forces import actuator_forces
from truesim.core.typing import Array, Float
from truesim.identify.channels import Channel, residual
from truesim.model.model import Model
from truesim.parameters import ParameterSet
from truesim.simulate import Simulator, SmoothJointLaw, State
from truesim.simulate.joint_laws.smooth import SmoothFriction

CREEP = 0.04
"""Speed at which smoothed friction is nearly full [rad/s or m/s]. With a sharper one a search finds motions at the edge
of sticking, which tell less when they are played than was expected."""


class Sensed(NamedTuple):
    """A simulated motion with the derivatives of its readings."""

    motion: Float[np.ndarray, "samples quantities"]
    """Positions, velocities, actuator forces and controls, as limits name them."""
    J: Float[np.ndarray, "samples rows size"]
    """Derivatives of readings by the coordinates of the parameters."""


class Sensitivities:
    """Kernels for one robot, one set of parameters and one number of samples."""

    def __init__(
        self,
        simulator: Simulator,
        parameters: ParameterSet,
        channels: Sequence[Channel],
        state: State,
        substeps: int = 1,
        threads: int = 1,
    ):
        """Compiles nothing yet.

        Args:
            simulator: Whose friction, stops and bounds of forces are replaced by smooth ones.
            parameters: What is unknown.
            channels: What is read.
            state: Where the motion starts.
            substeps: Steps of the simulator for each sample.
            threads: Over which lanes are split.
        """
        self._simulator, self._parameters = _smooth(simulator), parameters
        self._channels, self._state, self._substeps = tuple(channels), state, substeps
        self._threads = threads
        self._kernels: dict[int, tuple[native.Kernel, native.Kernel]] = {}

    def sensed(self, commands: Float[np.ndarray, "samples nu"]) -> Sensed:
        """The motion under these commands, with derivatives."""
        forward, _ = self._kernel(commands)
        motion, J = forward(np.eye(self._parameters.size), commands)
        return Sensed(np.concatenate([motion[0], commands], axis=1), np.moveaxis(J, 0, -1))

    def motions(self, commands: Float[np.ndarray, "lanes samples nu"]) -> Float[np.ndarray, "lanes samples quantities"]:
        """Several motions side by side, without derivatives."""
        forward, _ = self._kernel(commands[0])
        motion, _ = forward(np.zeros((len(commands), self._parameters.size)), commands)
        return np.concatenate([motion, commands], axis=2)

    def gradient(
        self,
        commands: Float[np.ndarray, "samples nu"],
        weights: Float[np.ndarray, "samples rows size"],
        pull: Float[np.ndarray, "samples quantities"],
    ) -> Float[np.ndarray, "samples nu"]:
        """Derivative of `sum(weights * J) + sum(pull * motion)` by the commands, both factors held."""
        _, reverse = self._kernel(commands)
        size, nu = self._parameters.size, commands.shape[1]
        own = pull[:, : pull.shape[1] - nu]
        once = np.zeros((size, *own.shape))
        once[0] = own
        parts = reverse(np.eye(size), commands, np.moveaxis(weights, -1, 0), once)
        return parts.sum(axis=0) + pull[:, pull.shape[1] - nu :]

    def _kernel(self, commands: np.ndarray) -> tuple[native.Kernel, native.Kernel]:
        if len(commands) not in self._kernels:
            self._kernels[len(commands)] = self._compiled(commands)
        return self._kernels[len(commands)]

    def _compiled(self, commands: np.ndarray) -> tuple[native.Kernel, native.Kernel]:
        start = self._parameters.start

        def along(direction: Array, commands: Array) -> tuple[Array, Array]:
            """The motion, and the derivative of the readings along a direction of the parameters."""
            (motion, _), (_, tangent) = jax.jvp(lambda t: self._run(t, commands), (jnp.asarray(start),), (direction,))
            return motion, tangent

        def reverse(direction: Array, commands: Array, weights: Array, pull: Array) -> Array:
            def total(commands: Array) -> Array:
                motion, tangent = along(direction, commands)
                return jnp.sum(weights * tangent) + jnp.sum(pull * motion)

            return jax.grad(total)(commands)

        e = np.eye(len(start))[0]
        with jax.enable_x64(True):
            forward = native.compile(along, e, commands, threads=self._threads)
            motion, tangent = forward(e, commands)
            return forward, native.compile(reverse, e, commands, tangent, motion, threads=self._threads)

    def _run(self, theta: Array, commands: Array) -> tuple[Array, Array]:
        """Positions, velocities and actuator forces, and readings, at the start of every step."""
        model = self._parameters.write(self._simulator.model, theta)
        simulator = eqx.tree_at(lambda s: s.model, self._simulator, model)
        constants = simulator.constants()
        nothing = jnp.zeros(sum(len(channel.columns) for channel in self._channels))

        def advance(state: State, command: Array) -> tuple[State, tuple[Array, Array]]:
            force = actuator_forces(model, state.q, state.v, command).force
            readings = residual(self._channels, simulator, constants, state, command, nothing)
            after = state
            for _ in range(self._substeps):
                after, _ = simulator.step(after, command, constants)
            return after, (jnp.concatenate([state.q, state.v, force]), readings)

        state = simulator.started(self._state, commands[0])
        return jax.lax.scan(jax.checkpoint(advance), state, commands)[1]


def unbounded(model: Model) -> Model:
    """The robot with actuators whose forces have no bound."""
    return dataclasses.replace(model, actuators=dataclasses.replace(model.actuators, force_limited=(False,) * model.nu))


def _smooth(simulator: Simulator) -> Simulator:
    """The simulator with smooth friction, without stops or bounds of forces, which limits stand for."""
    model = unbounded(simulator.model)
    law = SmoothJointLaw(SmoothFriction.of(model, CREEP), None)
    return eqx.tree_at(lambda s: (s.model, s.joint_law), simulator, (model, law))
