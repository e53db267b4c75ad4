"""Semi-implicit Euler, MuJoCo's default."""

from typing import ClassVar

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.dynamics.links import per_dof
from truesim.simulate.equation import EquationOfMotion
from truesim.simulate.integrators.base import AbstractIntegrator, Increment, semi_implicit


class SemiImplicitEuler(AbstractIntegrator):
    """`v' = v + dt a(q, v)`, `q' = q + dt v'`; joint damping may act on the new velocity, as in MuJoCo."""

    order: ClassVar[int] = 1
    implicit_damping: bool = eqx.field(static=True, default=True)
    """Solve `(M + dt diag(damping)) a = forces` instead of `M a = forces`."""

    def step(
        self, equation: EquationOfMotion, q: Float[Array, "nq"], v: Float[Array, "nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        model = equation.model
        forces = equation.forces(q, v)
        added = dt * per_dof(model, model.joints.damping) if self.implicit_damping and equation.damps() else None
        a = equation.accelerate(q, v, forces.total, added)
        return semi_implicit(v, dt, a, forces, added)
