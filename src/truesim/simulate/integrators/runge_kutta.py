"""The classical Runge-Kutta method."""

from typing import ClassVar

from truesim.core.typing import Array, Float
from truesim.dynamics import forward_dynamics, integrate
from truesim.simulate.equation import EquationOfMotion
from truesim.simulate.integrators.base import AbstractIntegrator, Increment


class RungeKutta4(AbstractIntegrator):
    """Four evaluations, fourth order; quaternions move along weighted means of angular velocities, as in MuJoCo."""

    order: ClassVar[int] = 4

    def step(
        self, equation: EquationOfMotion, q: Float[Array, "nq"], v: Float[Array, "nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        model = equation.model
        forces = equation.forces(q, v)
        v1, a1 = v, forward_dynamics(model, q, v, forces.total)
        v2, a2 = self._stage(equation, q, v, dt / 2, v1, a1)
        v3, a3 = self._stage(equation, q, v, dt / 2, v2, a2)
        v4, a4 = self._stage(equation, q, v, dt, v3, a3)
        velocity = (v1 + 2 * v2 + 2 * v3 + v4) / 6
        acceleration = (a1 + 2 * a2 + 2 * a3 + a4) / 6
        return Increment(integrate(model, q, dt * velocity), v + dt * acceleration, acceleration, forces)

    @staticmethod
    def _stage(equation: EquationOfMotion, q: Array, v: Array, dt: Array, rate: Array, a: Array) -> tuple[Array, Array]:
        """Velocity and acceleration at the state reached from (q, v) with this velocity and acceleration."""
        reached = v + dt * a
        return reached, equation.acceleration(integrate(equation.model, q, dt * rate), reached)
