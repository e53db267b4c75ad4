"""Sensitivities of measurements to parameters along a motion, and their gradients by the commands.

Measurements y(theta, c) are functions of parameters and commands. The Fisher information of the parameters is
F = sum over samples J^T R^-1 J, with J = dy/dtheta and noise covariance R. J and, for any weights W, the gradient of
sum(W * J) by the commands are native kernels whose batch elements are parameters: forward mode along the parameter, and
reverse mode through it.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.identification.problem.channels import Channel, residual
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.model.model import Model
from truesim.physics.parameters import ParameterSet
from truesim.physics.simulation import Simulator, SmoothJointModel, State
from truesim.physics.simulation.joint_models.smooth import SmoothFriction

FRICTION_SMOOTHING_SPEED = 0.04
"""Speed at which smoothed friction is nearly full [rad/s or m/s]. With a smaller one the optimization finds motions at
the edge of sticking, whose actual information is lower than expected."""


class SensedMotion(NamedTuple):
    """A simulated motion and the derivatives of its measurements."""

    motion: Float[np.ndarray, "samples quantities"]
    """Positions, velocities, actuator forces and controls, in the order of the limits."""
    J: Float[np.ndarray, "samples rows size"]
    """Derivatives of the measurements by the coordinates of the parameters."""


class MotionSensitivities:
    """Motions and sensitivities of one robot and one set of parameters."""

    def __init__(
        self,
        simulator: Simulator,
        parameters: ParameterSet,
        channels: Sequence[Channel],
        state: State,
        substeps: int = 1,
        threads: int = 1,
    ):
        """Prepare a smooth simulator; kernels are compiled on first use.

        Args:
            simulator: The simulator; friction is smoothed, joint limits and force limits are removed.
            parameters: The unknown parameters.
            channels: The measured channels.
            state: Initial state of the motion.
            substeps: Simulator steps in each sample.
            threads: Threads that share a batch.
        """
        self._simulator, self._parameters = _smooth(simulator), parameters
        self._channels, self._state, self._substeps = tuple(channels), state, substeps
        self._threads = threads
        self._kernels: dict[int, tuple[native.Kernel, native.Kernel]] = {}

    def sense(self, commands: Float[np.ndarray, "samples nu"]) -> SensedMotion:
        """Motion under these commands, with sensitivities."""
        forward, _ = self._kernel(commands)
        motion, J = forward(np.eye(self._parameters.size), commands)
        return SensedMotion(np.concatenate([motion[0], commands], axis=1), np.moveaxis(J, 0, -1))

    def motions(self, commands: Float[np.ndarray, "batch samples nu"]) -> Float[np.ndarray, "batch samples quantities"]:
        """Motions of a batch of commands, without sensitivities."""
        forward, _ = self._kernel(commands[0])
        motion, _ = forward(np.zeros((len(commands), self._parameters.size)), commands)
        return np.concatenate([motion, commands], axis=2)

    def gradient(
        self,
        commands: Float[np.ndarray, "samples nu"],
        weights: Float[np.ndarray, "samples rows size"],
        pull: Float[np.ndarray, "samples quantities"],
    ) -> Float[np.ndarray, "samples nu"]:
        """Derivative of `sum(weights * J) + sum(pull * motion)` by the commands, with constant factors."""
        _, reverse = self._kernel(commands)
        size, nu = self._parameters.size, commands.shape[1]
        own = pull[:, : pull.shape[1] - nu]
        once = np.zeros((size, *own.shape))
        once[0] = own
        parts = reverse(np.eye(size), commands, np.moveaxis(weights, -1, 0), once)
        return parts.sum(axis=0) + pull[:, pull.shape[1] - nu :]

    def _kernel(self, commands: np.ndarray) -> tuple[native.Kernel, native.Kernel]:
        if len(commands) not in self._kernels:
            self._kernels[len(commands)] = self._compile(commands)
        return self._kernels[len(commands)]

    def _compile(self, commands: np.ndarray) -> tuple[native.Kernel, native.Kernel]:
        start = self._parameters.start

        def along(direction: Array, commands: Array) -> tuple[Array, Array]:
            """Motion, and derivative of the measurements along a direction of the parameters."""
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
        """Positions, velocities and actuator forces, and measurements, at the start of every sample."""
        simulator = self._parameters.write(self._simulator, theta)
        model = simulator.model
        constants = simulator.constants()
        nothing = jnp.zeros(sum(len(channel.columns) for channel in self._channels))

        def advance(state: State, command: Array) -> tuple[State, tuple[Array, Array]]:
            force = actuator_forces(model, state.q, state.v, command).force
            measured = residual(self._channels, simulator, constants, state, command, nothing)
            after = state
            for _ in range(self._substeps):
                after, _ = simulator.step(after, command, constants)
            return after, (jnp.concatenate([state.q, state.v, force]), measured)

        state = simulator.started(self._state, commands[0])
        return jax.lax.scan(jax.checkpoint(advance), state, commands)[1]


def remove_force_limits(model: Model) -> Model:
    """Model without force limits of actuators."""
    return dataclasses.replace(model, actuators=dataclasses.replace(model.actuators, force_limited=(False,) * model.nu))


def _smooth(simulator: Simulator) -> Simulator:
    """Simulator with smooth friction and without joint limits and force limits, which the design itself respects."""
    model = remove_force_limits(simulator.model)
    joint_model = SmoothJointModel(SmoothFriction.of(model, FRICTION_SMOOTHING_SPEED), None)
    return eqx.tree_at(lambda s: (s.model, s.joint_model), simulator, (model, joint_model))
