"""The simulator: a model with the choices that make it move."""

import dataclasses
import math
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.contact import AbstractContact
from truesim.contact.base import Motion, Response
from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.dynamics import integrate
from truesim.model.model import Model
from truesim.simulate.augment.learned import Learned
from truesim.simulate.augment.memory import Memory
from truesim.simulate.equation import Constants, EquationOfMotion
from truesim.simulate.history import History
from truesim.simulate.integrators import INTEGRATORS, AbstractIntegrator, Increment, SemiImplicitEuler
from truesim.simulate.joint_laws import AbstractJointLaw, MujocoJointLaw
from truesim.simulate.state import State, StepInfo
from truesim.simulate.step_info import step_info

ROUNDING = 1e-9
"""A delay that is this part of a step longer than a whole number of steps is that number of steps."""

INERTIA_SCALE = Port(
    "body.inertia_scale",
    "bodies",
    "1",
    "Factor on mass and inertia of each body, and so on its part of the mass matrix; held over a step. One.",
)
VELOCITY_CHANGE = Port(
    "step.velocity_change",
    "dofs",
    "rad/s|m/s",
    "What the integrator adds to the velocity over a step, before rigid contact; the configuration moves along.",
)
LIGHTEST = 0.01
"""A learned factor on inertia is not smaller than this."""


class Plan(Protocol):
    """What networks there shall be: a blueprint."""

    def build(self, simulator: "Simulator") -> Learned:
        """The networks for this simulator."""


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
    learned: Learned | None = None
    """Networks within the physics."""

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
        blueprint: Plan | None = None,
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
            blueprint: Which networks take part, and where.
        """
        options = model.options
        timestep = options.timestep if timestep is None else timestep
        if integrator is None and options.integrator == "Euler":
            integrator = SemiImplicitEuler(implicit_damping=options.implicit_damping)
        if joint_law is None:
            elsewhere = contact is not None and contact.treats_joints
            joint_law = MujocoJointLaw(friction=(), limits=()) if elsewhere else MujocoJointLaw.of(model)
        simulator = cls(
            model=model,
            joint_law=joint_law,
            contact=contact,
            integrator=INTEGRATORS[options.integrator] if integrator is None else integrator,
            timestep=jnp.asarray(timestep),
            history=_history_length(model, timestep, max_delay),
        )
        return simulator if blueprint is None else simulator.augmented(blueprint)

    def augmented(self, blueprint: Plan) -> "Simulator":
        """The same with the networks of a blueprint in place of its own."""
        return dataclasses.replace(self, learned=blueprint.build(self))

    def with_parts(self, model: Model, learned: Learned | None) -> "Simulator":
        """The same with another model and other networks of the same structure."""
        return dataclasses.replace(self, model=model, learned=learned)

    def constants(self) -> Constants:
        """What follows from the parameters alone; give it to `step` to compute it once for many steps."""
        weights = None if self.contact is None else self.contact.weights(self.model)
        return Constants(self.joint_law.constants(self.model), weights)

    def equation(
        self, command: Float[Array, "nu"], constants: Constants | None = None, state: State | None = None
    ) -> EquationOfMotion:
        """The equation of motion while `command` is held; with networks, as they are at a state."""
        constants = self.constants() if constants is None else constants
        memory = None if state is None else state.memory
        equation = EquationOfMotion(
            self.model, self.joint_law, self.contact, constants, command, self.timestep, self.learned, memory
        )
        if self.learned is None or state is None or not self.learned.touches(INERTIA_SCALE.name):
            return equation
        tap = equation.tap(state.q, state.v)
        return dataclasses.replace(equation, model=_scaled(self.model, tap))

    def started(self, state: State, command: Float[Array, "nu"]) -> State:
        """The state with room for what steps remember; if it has none, `command` has always been held."""
        if self.history and state.history is None:
            state = dataclasses.replace(state, history=History.constant(command, state.time, self.history))
        if self.contact is not None and state.impulses is None:
            state = dataclasses.replace(state, impulses=self.contact.no_impulses(self.model))
        if self.learned is not None and self.learned.remembers and state.memory is None:
            state = dataclasses.replace(state, memory=self._first_memory(self.learned, state, command))
        return state

    def _first_memory(self, learned: Learned, state: State, command: Float[Array, "nu"]) -> Memory:
        """Before the first step all values were as they are at its start; recurrent networks have seen nothing."""
        first = learned.first_memory()
        if not first.previous:
            return first
        arrived, _ = self.delayed(state, command)
        seen = self.equation(arrived, None, state).forces(state.q, state.v).seen
        assert seen is not None, "networks see what they read"
        return first._replace(previous={name: seen.values.get(name, old) for name, old in first.previous.items()})

    def delayed(self, state: State, command: Float[Array, "nu"]) -> tuple[Float[Array, "nu"], History | None]:
        """What arrives at the actuators over the next step if `command` is given now, and the commands so far."""
        if not self.history:
            return command, state.history
        past = state.history
        if past is None:
            past = History.constant(command, state.time, self.history)
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
        equation = self.equation(arrived, constants, state)
        increment, tap = self._increment(equation, state)
        response = self._contact_response(equation, state, increment, tap)
        if response is None:
            q, v = integrate(self.model, state.q, self.timestep * increment.rate), increment.v
        else:
            q, v = response.q, response.v
        info = step_info(state, increment, response, q, v, self.timestep)
        impulses = None if response is None else jax.lax.stop_gradient(response.impulses)
        memory = None if self.learned is None else self.learned.remembered(tap.seen, state.memory)
        return State(q, v, state.time + self.timestep, history, impulses, memory), info

    def tap(self, state: State, command: Float[Array, "nu"], constants: Constants | None = None) -> Tap:
        """Who listens at a state."""
        if self.learned is None:
            return NO_TAP
        arrived, _ = self.delayed(state, command)
        return self.equation(arrived, constants, state).tap(state.q, state.v)

    def _increment(self, equation: EquationOfMotion, state: State) -> tuple[Increment, Tap]:
        """The integrator's step, and who listens after it."""
        increment = self.integrator.step(equation, state.q, state.v, self.timestep)
        if self.learned is None:
            return increment, NO_TAP
        tap = self.learned.listen(equation.model, state.q, state.memory, increment.forces.seen)
        if not tap.wants(VELOCITY_CHANGE):
            return increment, tap
        change = increment.v - state.v
        more = tap(VELOCITY_CHANGE, change) - change
        return increment._replace(rate=increment.rate + more, v=increment.v + more), tap

    def acceleration(
        self, state: State, command: Float[Array, "nu"], constants: Constants | None = None
    ) -> Float[Array, "nv"]:
        """Acceleration at a state [rad/s^2 or m/s^2]; where impulses act, the mean of the step that follows."""
        if self.contact is None or self.contact.is_smooth:
            arrived, _ = self.delayed(state, command)
            return self.equation(arrived, constants, state).acceleration(state.q, state.v)
        return self.step(state, command, constants)[1].acceleration

    def _contact_response(
        self, equation: EquationOfMotion, state: State, increment: Increment, tap: Tap
    ) -> Response | None:
        """What becomes of the step where bodies meet."""
        if self.contact is None:
            return None
        before = None if state.impulses is None else (state.v, state.impulses)
        motion = Motion(state.q, increment.v, increment.rate, increment.added_inertia, self.timestep, before)
        return self.contact.respond(equation.model, equation.constants.contact, motion, tap)


def _scaled(model: Model, tap: Tap) -> Model:
    """The model with learned factors on its inertias."""
    scale = jnp.maximum(tap(INERTIA_SCALE, jnp.ones(len(model.bodies.names))), LIGHTEST)
    mass, inertia = scale * model.bodies.mass, scale[:, None] * model.bodies.inertia
    return eqx.tree_at(lambda m: (m.bodies.mass, m.bodies.inertia), model, (mass, inertia))


def _history_length(model: Model, timestep: float, max_delay: float | None) -> int:
    """Number of commands that act within the longest delay and a step."""
    own = model.actuators.delay
    if max_delay is None and isinstance(own, jax.core.Tracer):
        raise TruesimError("Delays that are traced need room that is known beforehand: give max_delay in seconds.")
    longest = max_delay if max_delay is not None else float(np.max(own, initial=0.0))
    return math.ceil(longest / timestep - ROUNDING) + 1 if longest > 0 else 0
