"""Simulator: a model, its joint and contact models, and an integrator."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Float
from truesim.physics.augmentation.learned import LearnedPhysics
from truesim.physics.augmentation.memory import NetworkMemory
from truesim.physics.contact import (
    AbstractConstraintContact,
    AbstractContact,
    AbstractForceContact,
    AbstractImpulseContact,
)
from truesim.physics.contact.base import Response, UnconstrainedStep
from truesim.physics.dynamics import integrate, reference_configuration
from truesim.physics.model import targets
from truesim.physics.model.model import Model
from truesim.physics.model.structure import longest_delay
from truesim.physics.simulation import named_values
from truesim.physics.simulation.equation_of_motion import Constants, EquationOfMotion
from truesim.physics.simulation.findings import UNSAID, warn_left_out
from truesim.physics.simulation.history import History
from truesim.physics.simulation.integrators import INTEGRATORS, AbstractIntegrator, Increment, SemiImplicitEuler
from truesim.physics.simulation.joint_models import AbstractJointModel, MujocoJointModel
from truesim.physics.simulation.state import State, StepInfo
from truesim.physics.simulation.step_info import step_info

DELAY_ROUNDING = 1e-9
"""Excess over a whole number of time steps below which a delay is rounded down to it [time steps]."""

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
    "Change of velocity over a step by the integrator, before rigid contact; the configuration changes accordingly.",
)
MIN_INERTIA_SCALE = 0.01
"""Lower bound of a learned factor on inertia; larger keeps learned inertias further from zero."""


@runtime_checkable
class NetworkPlan(Protocol):
    """Description of the networks within the physics, such as a `Blueprint`."""

    def build(self, simulator: "Simulator") -> LearnedPhysics:
        """Networks for this simulator."""


class Simulator(eqx.Module):
    """A model, its joint and contact models, and an integrator. Every number in it is a leaf of the tree."""

    model: Model
    joint_model: AbstractJointModel
    contact: AbstractContact | None
    integrator: AbstractIntegrator
    timestep: Float[Array, ""]
    """[s]"""
    history: int = eqx.field(static=True, default=0)
    """Number of commands, the present one included, that delays can look back into; 0 where nothing is delayed."""
    learned: LearnedPhysics | None = None
    """Networks within the physics."""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        timestep: float | Float[Array, ""] | None = None,
        integrator: AbstractIntegrator | None = None,
        joint_model: AbstractJointModel | None = None,
        contact: AbstractContact | None = UNSAID,
        max_delay: float | None = None,
        blueprint: NetworkPlan | None = None,
    ) -> "Simulator":
        """Simulator as the model's file describes it, except where an argument says otherwise.

        Values of the model may be traced: it can be called inside `jit`, `grad` and `vmap`. Structure (joints with dry
        friction or limits, length of the command history) then follows from the file and from what was written since.

        Args:
            model: The robot.
            timestep: [s]; the file's by default.
            integrator: The file's by default: for MJCF, MuJoCo's Euler with implicit joint damping unless it names
                another.
            joint_model: Joint friction and limits; MuJoCo's by default, none with impulse-level contact, which solves
                the joints itself.
            contact: Contact model; without one, bodies pass through each other and chains are open. If the file has
                constraints and nothing is given here, a warning says so once; None says that it is meant.
            max_delay: Longest actuator delay to make room for [s], at this time step (at the file's, if that is
                traced); the model's own by default. A longer delay acts as the longest.
            blueprint: Networks within the physics.
        """
        if not model.bodies.names:
            raise TruesimError("The model has no bodies: there is nothing to simulate.")
        if contact is UNSAID:
            contact = None
            warn_left_out(model)
        defaults = model.defaults
        timestep = defaults.timestep if timestep is None else timestep
        if integrator is None and defaults.integrator == "Euler":
            integrator = SemiImplicitEuler(implicit_damping=defaults.implicit_damping)
        if joint_model is None:
            elsewhere = isinstance(contact, AbstractImpulseContact)
            joint_model = MujocoJointModel(friction=(), limits=()) if elsewhere else MujocoJointModel.of(model)
        simulator = cls(
            model=model,
            joint_model=joint_model,
            contact=contact,
            integrator=INTEGRATORS[defaults.integrator] if integrator is None else integrator,
            timestep=timestep if isinstance(timestep, jax.Array) else np.asarray(timestep, float),
            history=_history_length(model, timestep, max_delay),
        )
        return simulator if blueprint is None else simulator.augmented(blueprint)

    def augmented(self, blueprint: NetworkPlan) -> "Simulator":
        """The same simulator with the networks of a blueprint in place of its own."""
        return dataclasses.replace(self, learned=blueprint.build(self))

    def with_parts(self, model: Model, learned: LearnedPhysics | None) -> "Simulator":
        """The same simulator with another model and other networks of the same structure."""
        return dataclasses.replace(self, model=model, learned=learned)

    @property
    def force_contact(self) -> AbstractForceContact | None:
        """Contact model if it is force-level: part of the equation of motion."""
        return self.contact if isinstance(self.contact, AbstractForceContact) else None

    @property
    def impulse_contact(self) -> AbstractImpulseContact | None:
        """Contact model if it is impulse-level: solved after the integrator's step."""
        return self.contact if isinstance(self.contact, AbstractImpulseContact) else None

    @property
    def constraint_contact(self) -> AbstractConstraintContact | None:
        """Contact model if it is constraint-level: solved together with the acceleration."""
        return self.contact if isinstance(self.contact, AbstractConstraintContact) else None

    def replace(self, values: Mapping[str, Any]) -> "Simulator":
        """The same simulator with other values by name; works inside `jit`, `grad` and `vmap`.

            simulator.replace({"joints/elbow.damping": 0.2, "bodies/*.mass": mass, "gravity[2]": -9.8})

        A value has the shape of the old one. Structure stays: dry friction in a joint that has none, or a delay beyond
        the history, is refused.

        Args:
            values: New values by path, in SI units. `*` in a path stands for any text and gives one value to all
                matches, `[k]` selects an element. `timestep`, `networks/<rule>` (all weights of a network) and
                `contact.<number>` are paths too.
        """
        return named_values.replace(self, values)

    def read(self, path: str) -> Array:
        """Value at a path, in SI units; paths are those of `replace`, without wildcards."""
        if targets.is_pattern(path):
            raise TruesimError(f"{path} stands for several values; name one to read.")
        return named_values.read(self, named_values.expand(self, path)[0])

    def initial_state(
        self,
        q: Float[Array, " nq"] | None = None,
        v: Float[Array, " nv"] | None = None,
        command: Float[Array, " nu"] | None = None,
        time: float | Float[Array, ""] | None = None,
        keyframe: str | None = None,
    ) -> State:
        """State to start a simulation from, with every part that this simulator's states have.

        Args:
            q: Configuration [rad, m, unit quaternions]; the file's by default.
            v: Velocity [rad/s, m/s]; at rest by default.
            command: Command held before `time`, which delayed actuators still receive; zero by default.
            time: [s]; zero by default.
            keyframe: Name of a keyframe of the file, which gives whatever is not given.
        """
        model = self.model
        if keyframe is not None:
            key = model.keyframe(keyframe)
            q, v = key.q if q is None else q, key.v if v is None else v
            command, time = key.command if command is None else command, key.time if time is None else time
        q = _floating(reference_configuration(model) if q is None else q)
        v = jnp.zeros(model.nv) if v is None else _floating(v)
        command = jnp.zeros(model.nu) if command is None else _floating(command)
        for name, value, size in (("q", q, model.nq), ("v", v, model.nv), ("command", command, model.nu)):
            if value.shape != (size,):
                raise TruesimError(f"{name} has shape {value.shape}; this robot's has shape ({size},).")
        return self.started(State(q, v, _floating(0.0 if time is None else time)), command)

    def constants(self) -> Constants:
        """Quantities that depend on the parameters only; pass them to `step` to compute them once for many steps."""
        contact = self.impulse_contact
        masses = None if contact is None else contact.effective_mass(self.model)
        constrained = self.constraint_contact
        if constrained is not None:
            return Constants(None, None, constrained.weights(self.model))
        return Constants(self.joint_model.constants(self.model), masses)

    def equation(
        self, command: Float[Array, " nu"], constants: Constants | None = None, state: State | None = None
    ) -> EquationOfMotion:
        """Equation of motion while `command` is held; with networks, at a state."""
        constants = self.constants() if constants is None else constants
        memory = None if state is None else state.memory
        contact = self.force_contact if self.constraint_contact is None else self.constraint_contact
        start = None if state is None else state.acceleration
        equation = EquationOfMotion(
            self.model, self.joint_model, contact, constants, command, self.timestep, self.learned, memory, start
        )
        if self.learned is None or state is None or not self.learned.touches(INERTIA_SCALE.name):
            return equation
        tap = equation.tap(state.q, state.v)
        return dataclasses.replace(equation, model=_scaled(self.model, tap))

    def started(self, state: State, command: Float[Array, " nu"]) -> State:
        """The state with the optional parts that are missing; `command` is taken as held before it."""
        if self.history and state.history is None:
            state = dataclasses.replace(state, history=History.constant(command, state.time, self.history))
        contact = self.impulse_contact
        if contact is not None and state.impulses is None:
            state = dataclasses.replace(state, impulses=contact.initial_impulses(self.model))
        if self.constraint_contact is not None and state.acceleration is None:
            state = dataclasses.replace(state, acceleration=jnp.zeros(self.model.nv))
        if self.learned is not None and self.learned.remembers and state.memory is None:
            state = dataclasses.replace(state, memory=self._first_memory(self.learned, state, command))
        return state

    def _first_memory(self, learned: LearnedPhysics, state: State, command: Float[Array, " nu"]) -> NetworkMemory:
        """Memory before the first step: earlier values equal those at its start, recurrent states are zero."""
        first = learned.initial_memory()
        if not first.previous:
            return first
        arrived, _ = self.delayed(state, command)
        seen = self.equation(arrived, None, state).forces(state.q, state.v).seen
        assert seen is not None, "networks see what they read"
        return first._replace(previous={name: seen.values.get(name, old) for name, old in first.previous.items()})

    def delayed(self, state: State, command: Float[Array, " nu"]) -> tuple[Float[Array, " nu"], History | None]:
        """Mean command that reaches the actuators over the next step if `command` is sent now, and the new history."""
        if not self.history:
            return command, state.history
        past = state.history
        if past is None:
            past = History.constant(command, state.time, self.history)
        commands = past.then(command, state.time)
        return commands.mean(state.time, self.timestep, self.model.actuators.delay), commands

    def step(
        self, state: State, command: Float[Array, " nu"], constants: Constants | None = None
    ) -> tuple[State, StepInfo]:
        """State one time step later, and diagnostics of the step.

        Args:
            state: Current state.
            command: Control of each actuator, held over the step.
            constants: From `constants()`, to share them between steps.
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
        acceleration = jax.lax.stop_gradient(increment.forces.constraint.acceleration)
        return State(q, v, state.time + self.timestep, history, impulses, memory, acceleration), info

    def tap(self, state: State, command: Float[Array, " nu"], constants: Constants | None = None) -> Tap:
        """Tap with this simulator's networks at a state."""
        if self.learned is None:
            return NO_TAP
        arrived, _ = self.delayed(state, command)
        return self.equation(arrived, constants, state).tap(state.q, state.v)

    def _increment(self, equation: EquationOfMotion, state: State) -> tuple[Increment, Tap]:
        """Step of the integrator, and the tap after it."""
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
        self, state: State, command: Float[Array, " nu"], constants: Constants | None = None
    ) -> Float[Array, " nv"]:
        """Acceleration at a state [rad/s^2 or m/s^2]; where impulses act, the mean of the step that follows."""
        if self.impulse_contact is None:
            arrived, _ = self.delayed(state, command)
            return self.equation(arrived, constants, state).acceleration(state.q, state.v)
        return self.step(state, command, constants)[1].acceleration

    def _contact_response(
        self, equation: EquationOfMotion, state: State, increment: Increment, tap: Tap
    ) -> Response | None:
        """Contact's correction of the step; None without impulses."""
        contact, masses = self.impulse_contact, equation.constants.contact
        if contact is None:
            return None
        assert masses is not None, "constants() computes the effective mass of impulse-level contact"
        warm_start = None if state.impulses is None else (state.v, state.impulses)
        step = UnconstrainedStep(
            state.q, increment.v, increment.rate, increment.added_inertia, self.timestep, state.v, warm_start
        )
        return contact.respond(equation.model, masses, step, tap)


def _scaled(model: Model, tap: Tap) -> Model:
    """Model with learned factors on its inertias."""
    scale = jnp.maximum(tap(INERTIA_SCALE, jnp.ones(len(model.bodies.names))), MIN_INERTIA_SCALE)
    mass, inertia = scale * model.bodies.mass, scale[:, None] * model.bodies.inertia
    return eqx.tree_at(lambda m: (m.bodies.mass, m.bodies.inertia), model, (mass, inertia))


def _floating(x: Any) -> Float[Array, "*shape"]:
    """A floating-point array in JAX's precision."""
    kept = isinstance(x, np.ndarray | jax.Array) and jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.asarray(x, dtype=jnp.result_type(x) if kept else jnp.result_type(float))


def _history_length(model: Model, timestep: Any, max_delay: float | None) -> int:
    """Number of commands that act within the longest delay and one step."""
    step = model.defaults.timestep if is_traced(timestep) else float(timestep)
    longest = longest_delay(model) if max_delay is None else float(max_delay)
    return math.ceil(longest / step - DELAY_ROUNDING) + 1 if longest > 0 else 0
