"""Semi-implicit Euler, MuJoCo's default."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.dynamics.links import per_dof
from truesim.physics.simulation.equation_of_motion import EquationOfMotion
from truesim.physics.simulation.integrators.base import AbstractIntegrator, Increment, semi_implicit


class SemiImplicitEuler(AbstractIntegrator):
    """`v' = v + dt a(q, v)`, `q' = q + dt v'`; joint damping may act on the new velocity, as in MuJoCo."""

    order: ClassVar[int] = 1
    implicit_damping: bool = eqx.field(static=True, default=True)
    """Solve `(M + dt diag(damping)) a = forces` instead of `M a = forces`."""

    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        model = equation.model
        forces = equation.forces(q, v)
        added = dt * per_dof(model, model.joints.damping) if self.implicit_damping and equation.damps() else None
        if added is None:
            return semi_implicit(v, dt, equation.acceleration_under(q, v, forces), forces, None)
        a = equation.accelerate(q, v, forces.total, added)
        if forces.constraint.acceleration is not None:  # MuJoCo: without any damping, the solver's own acceleration
            a = jnp.where(jnp.any(added != 0), a, forces.constraint.acceleration)
        return semi_implicit(v, dt, a, forces, added)
