"""Classical Runge-Kutta method on the manifold of configurations."""

from typing import ClassVar

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.dynamics import integrate
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model
from truesim.physics.simulation.equation_of_motion import EquationOfMotion
from truesim.physics.simulation.integrators.base import AbstractIntegrator, Increment


class RungeKutta4(AbstractIntegrator):
    """Four evaluations, fourth order for orientations too (Runge-Kutta-Munthe-Kaas), as in MuJoCo.

    A stage reaches the configuration `q0 + dq`; rotations compose, so the rate of a rotation vector dq is not the
    angular velocity there but `dexp^-1(dq) w`.
    """

    order: ClassVar[int] = 4

    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        forces = equation.forces(q, v)
        r1, a1 = v, equation.acceleration_under(q, v, forces)
        r2, a2 = self._stage(equation, q, v, dt / 2, r1, a1)
        r3, a3 = self._stage(equation, q, v, dt / 2, r2, a2)
        r4, a4 = self._stage(equation, q, v, dt, r3, a3)
        rate = (r1 + 2 * r2 + 2 * r3 + r4) / 6
        acceleration = (a1 + 2 * a2 + 2 * a3 + a4) / 6
        if forces.constraint.acceleration is not None:  # MuJoCo's solver starts the next step from the last stage
            forces = forces._replace(constraint=forces.constraint._replace(acceleration=a4))
        return Increment(rate, v + dt * acceleration, acceleration, forces, None)

    @staticmethod
    def _stage(equation: EquationOfMotion, q: Array, v: Array, dt: Array, rate: Array, a: Array) -> tuple[Array, Array]:
        """Rate of the configuration and acceleration at the state reached with this rate and acceleration."""
        dq, reached = dt * rate, v + dt * a
        acceleration = equation.acceleration(integrate(equation.model, q, dq), reached)
        return _configuration_rate(equation.model, dq, reached), acceleration


def _configuration_rate(model: Model, dq: Float[Array, " nv"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Rate of `dq` while the configuration `q0 + dq` moves with velocity `v`.

    For a rotation vector r it is `dexp^-1(r) w = w + r x w / 2 + r x (r x w) / 12 + ...`.
    """
    for link in model.topology.links:
        if link.kind in (BALL, FREE):
            rotation = slice(link.v.stop - 3, link.v.stop)
            r, w = dq[rotation], v[rotation]
            turned = jnp.cross(r, w)
            v = jnp.asarray(v).at[rotation].add(turned / 2 + jnp.cross(r, turned) / 12)
    return v
