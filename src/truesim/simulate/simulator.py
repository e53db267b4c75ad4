"""The simulator: a model with the choices that make it move."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.results import RESULTS
from truesim.core.typing import Array, Float
from truesim.model.model import Model
from truesim.simulate.equation import EquationOfMotion
from truesim.simulate.history import History
from truesim.simulate.integrators import INTEGRATORS, AbstractIntegrator, SemiImplicitEuler
from truesim.simulate.joint_laws import AbstractJointLaw, Constants, MujocoJointLaw
from truesim.simulate.state import State, StepInfo

ROUNDING = 1e-9
"""A delay that is this part of a step longer than a whole number of steps is that number of steps."""


class Simulator(eqx.Module):
    """A model, a law for its joints and an integrator. Every number in it is a leaf."""

    model: Model
    joint_law: AbstractJointLaw
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
        max_delay: float | None = None,
    ) -> "Simulator":
        """The simulator that the model's file asks for, except where an argument says otherwise.

        Args:
            model: The robot.
            timestep: [s]
            integrator: For an MJCF file MuJoCo's own: Euler with implicit joint damping unless the file names another.
            joint_law: For an MJCF file MuJoCo's own.
            max_delay: The longest delay of an actuator that there shall be room for [s], at this time step; without
                it the model's own. A longer delay acts as the longest.
        """
        options = model.options
        timestep = options.timestep if timestep is None else timestep
        if integrator is None and options.integrator == "Euler":
            integrator = SemiImplicitEuler(implicit_damping=options.implicit_damping)
        return cls(
            model=model,
            joint_law=MujocoJointLaw.of(model) if joint_law is None else joint_law,
            integrator=INTEGRATORS[options.integrator] if integrator is None else integrator,
            timestep=jnp.asarray(timestep),
            history=_history_length(model, timestep, max_delay),
        )

    def constants(self) -> Constants | None:
        """What follows from the parameters alone; give it to `step` to compute it once for many steps."""
        return self.joint_law.constants(self.model)

    def equation(self, command: Float[Array, "nu"], constants: Constants | None = None) -> EquationOfMotion:
        """The equation of motion while `command` is held."""
        constants = self.constants() if constants is None else constants
        return EquationOfMotion(self.model, self.joint_law, constants, command, self.timestep)

    def started(self, state: State, command: Float[Array, "nu"]) -> State:
        """The state with room for past commands; if it has none, `command` has always been held."""
        if not self.history or state.history is not None:
            return state
        return dataclasses.replace(state, history=History.constant(command, state.time, self.history))

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
        info = StepInfo(
            acceleration=increment.acceleration,
            applied_force=increment.forces.applied,
            constraint_force=increment.forces.constraint.force,
            iterations=increment.forces.constraint.iterations,
            result=_result(increment.q, increment.v, increment.forces.constraint.converged),
        )
        return State(increment.q, increment.v, state.time + self.timestep, history), info


def _history_length(model: Model, timestep: float, max_delay: float | None) -> int:
    """Number of commands that act within the longest delay and a step."""
    own = model.actuators.delay
    if max_delay is None and isinstance(own, jax.core.Tracer):
        raise TruesimError("Delays that are traced need room that is known beforehand: give max_delay in seconds.")
    longest = max_delay if max_delay is not None else float(np.max(own, initial=0.0))
    return math.ceil(longest / timestep - ROUNDING) + 1 if longest > 0 else 0


def _result(q: Array, v: Array, converged: Array) -> RESULTS:
    finite = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
    result = RESULTS.where(converged, RESULTS.ok, RESULTS.constraints_not_converged)
    return RESULTS.where(finite, result, RESULTS.not_finite)
