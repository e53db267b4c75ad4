"""The simulator: a model with the choices that make it move."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.contact import AbstractContact
from truesim.contact.base import Motion, Response
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.dynamics import integrate
from truesim.model.model import Model
from truesim.simulate.equation import Constants, EquationOfMotion
from truesim.simulate.history import History
from truesim.simulate.integrators import INTEGRATORS, AbstractIntegrator, Increment, SemiImplicitEuler
from truesim.simulate.joint_laws import AbstractJointLaw, MujocoJointLaw
from truesim.simulate.state import State, StepInfo
from truesim.simulate.step_info import step_info

ROUNDING = 1e-9
"""A delay that is this part of a step longer than a whole number of steps is that number of steps."""


class Simulator(eqx.Module):
    """A model, laws for its joints and its contacts, and an integrator. Every number in it is a leaf."""

    model: Model
    joint_law: AbstractJointLaw
    contact: AbstractContact | None
    integrator: AbstractIntegrator
    timestep: Float[Array, ""]
    """[s]"""
    history: int = eqx.field(static=True, default=0)
    """Number of commands, the present one included, that delays can look back into; 0 where nothing is delayed."""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        timestep: float | None = None,
        integrator: AbstractIntegrator | None = None,
        joint_law: AbstractJointLaw | None = None,
        contact: AbstractContact | None = None,
        max_delay: float | None = None,
    ) -> "Simulator":
        """The simulator that the model's file asks for, except where an argument says otherwise.

        Args:
            model: The robot.
            timestep: [s]
            integrator: For an MJCF file MuJoCo's own: Euler with implicit joint damping unless the file names another.
            joint_law: For an MJCF file MuJoCo's own, unless the contact law treats the joints as well.
            contact: Without one, bodies pass through each other and chains are open.
            max_delay: The longest delay of an actuator that there shall be room for [s], at this time step; without
                it the model's own. A longer delay acts as the longest.
        """
        options = model.options
        timestep = options.timestep if timestep is None else timestep
        if integrator is None and options.integrator == "Euler":
            integrator = SemiImplicitEuler(implicit_damping=options.implicit_damping)
        if joint_law is None:
            elsewhere = contact is not None and contact.treats_joints
            joint_law = MujocoJointLaw(friction=(), limits=()) if elsewhere else MujocoJointLaw.of(model)
        return cls(
            model=model,
            joint_law=joint_law,
            contact=contact,
            integrator=INTEGRATORS[options.integrator] if integrator is None else integrator,
            timestep=jnp.asarray(timestep),
            history=_history_length(model, timestep, max_delay),
        )

    def constants(self) -> Constants:
        """What follows from the parameters alone; give it to `step` to compute it once for many steps."""
        weights = None if self.contact is None else self.contact.weights(self.model)
        return Constants(self.joint_law.constants(self.model), weights)

    def equation(self, command: Float[Array, "nu"], constants: Constants | None = None) -> EquationOfMotion:
        """The equation of motion while `command` is held."""
        constants = self.constants() if constants is None else constants
        return EquationOfMotion(self.model, self.joint_law, self.contact, constants, command, self.timestep)

    def started(self, state: State, command: Float[Array, "nu"]) -> State:
        """The state with room for past commands and impulses; if it has none, `command` has always been held."""
        history, impulses = state.history, state.impulses
        if self.history and history is None:
            history = History.constant(command, state.time, self.history)
        if self.contact is not None and impulses is None:
            impulses = self.contact.no_impulses(self.model)
        return dataclasses.replace(state, history=history, impulses=impulses)

    def delayed(self, state: State, command: Float[Array, "nu"]) -> tuple[Float[Array, "nu"], History | None]:
        """What arrives at the actuators over the next step if `command` is given now, and the commands so far."""
        if not self.history:
            return command, state.history
        past = self.started(state, command).history
        assert past is not None, "a started state has a history"
        commands = past.then(command, state.time)
        return commands.mean(state.time, self.timestep, self.model.actuators.delay), commands

    def step(
        self, state: State, command: Float[Array, "nu"], constants: Constants | None = None
    ) -> tuple[State, StepInfo]:
        """The state one time step later, and what the step found out.

        Args:
            state: Where the robot is.
            command: Control of each actuator, held over the step.
            constants: From `constants()`, to share it between steps.
        """
        arrived, history = self.delayed(state, command)
        equation = self.equation(arrived, constants)
        increment = self.integrator.step(equation, state.q, state.v, self.timestep)
        response = self._contact_response(equation, state, increment)
        if response is None:
            q, v = integrate(self.model, state.q, self.timestep * increment.rate), increment.v
        else:
            q, v = response.q, response.v
        info = step_info(state, increment, response, q, v, self.timestep)
        impulses = None if response is None else jax.lax.stop_gradient(response.impulses)
        return State(q, v, state.time + self.timestep, history, impulses), info

    def acceleration(
        self, state: State, command: Float[Array, "nu"], constants: Constants | None = None
    ) -> Float[Array, "nv"]:
        """Acceleration at a state [rad/s^2 or m/s^2]; where impulses act, the mean of the step that follows."""
        if self.contact is None or self.contact.is_smooth:
            arrived, _ = self.delayed(state, command)
            return self.equation(arrived, constants).acceleration(state.q, state.v)
        return self.step(state, command, constants)[1].acceleration

    def _contact_response(self, equation: EquationOfMotion, state: State, increment: Increment) -> Response | None:
        """What becomes of the step where bodies meet."""
        if self.contact is None:
            return None
        before = None if state.impulses is None else (state.v, state.impulses)
        motion = Motion(state.q, increment.v, increment.rate, increment.added_inertia, self.timestep, before)
        return self.contact.respond(self.model, equation.constants.contact, motion)


def _history_length(model: Model, timestep: float, max_delay: float | None) -> int:
    """Number of commands that act within the longest delay and a step."""
    own = model.actuators.delay
    if max_delay is None and isinstance(own, jax.core.Tracer):
        raise TruesimError("Delays that are traced need room that is known beforehand: give max_delay in seconds.")
    longest = max_delay if max_delay is not None else float(np.max(own, initial=0.0))
    return math.ceil(longest / timestep - ROUNDING) + 1 if longest > 0 else 0
