"""The simulator: a model with the choices that make it move."""

import equinox as eqx
import jax.numpy as jnp

from truesim.core.results import RESULTS
from truesim.core.typing import Array, Float
from truesim.model.model import Model
from truesim.simulate.equation import EquationOfMotion
from truesim.simulate.integrators import INTEGRATORS, AbstractIntegrator, SemiImplicitEuler
from truesim.simulate.joint_laws import AbstractJointLaw, Constants, MujocoJointLaw
from truesim.simulate.state import State, StepInfo


class Simulator(eqx.Module):
    """A model, a law for its joints and an integrator. Every number in it is a leaf."""

    model: Model
    joint_law: AbstractJointLaw
    integrator: AbstractIntegrator
    timestep: Float[Array, ""]
    """[s]"""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        timestep: float | None = None,
        integrator: AbstractIntegrator | None = None,
        joint_law: AbstractJointLaw | None = None,
    ) -> "Simulator":
        """The simulator that the model's file asks for, except where an argument says otherwise.

        Args:
            model: The robot.
            timestep: [s]
            integrator: For an MJCF file MuJoCo's own: Euler with implicit joint damping unless the file names another.
            joint_law: For an MJCF file MuJoCo's own.
        """
        options = model.options
        if integrator is None and options.integrator == "Euler":
            integrator = SemiImplicitEuler(implicit_damping=options.implicit_damping)
        return cls(
            model=model,
            joint_law=MujocoJointLaw.of(model) if joint_law is None else joint_law,
            integrator=INTEGRATORS[options.integrator] if integrator is None else integrator,
            timestep=jnp.asarray(options.timestep if timestep is None else timestep),
        )

    def constants(self) -> Constants | None:
        """What follows from the parameters alone; give it to `step` to compute it once for many steps."""
        return self.joint_law.constants(self.model)

    def equation(self, command: Float[Array, "nu"], constants: Constants | None = None) -> EquationOfMotion:
        """The equation of motion while `command` is held."""
        constants = self.constants() if constants is None else constants
        return EquationOfMotion(self.model, self.joint_law, constants, command, self.timestep)

    def step(
        self, state: State, command: Float[Array, "nu"], constants: Constants | None = None
    ) -> tuple[State, StepInfo]:
        """The state one time step later, and what the step found out.

        Args:
            state: Where the robot is.
            command: Control of each actuator, held over the step.
            constants: From `constants()`, to share it between steps.
        """
        equation = self.equation(command, constants)
        increment = self.integrator.step(equation, state.q, state.v, self.timestep)
        info = StepInfo(
            acceleration=increment.acceleration,
            applied_force=increment.forces.applied,
            constraint_force=increment.forces.constraint.force,
            iterations=increment.forces.constraint.iterations,
            result=_result(increment.q, increment.v, increment.forces.constraint.converged),
        )
        return State(increment.q, increment.v, state.time + self.timestep), info


def _result(q: Array, v: Array, converged: Array) -> RESULTS:
    finite = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
    result = RESULTS.where(converged, RESULTS.ok, RESULTS.constraints_not_converged)
    return RESULTS.where(finite, result, RESULTS.not_finite)
