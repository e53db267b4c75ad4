"""What an integrator must provide."""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.dynamics import integrate
from truesim.simulate.equation import EquationOfMotion, Forces


class Increment(NamedTuple):
    """One step of an integrator."""

    q: Float[Array, "nq"]
    v: Float[Array, "nv"]
    acceleration: Float[Array, "nv"]
    """Change of velocity over the step, per time [rad/s^2 or m/s^2]."""
    forces: Forces
    """Forces at the start of the step."""


class AbstractIntegrator(eqx.Module):
    """Advances configuration and velocity by one time step, the command held."""

    order: ClassVar[int]
    """The error of one second of motion shrinks with this power of the time step."""

    @abc.abstractmethod
    def step(
        self, equation: EquationOfMotion, q: Float[Array, "nq"], v: Float[Array, "nv"], dt: Float[Array, ""]
    ) -> Increment:
        """Configuration and velocity after `dt` [s]."""


def semi_implicit(
    equation: EquationOfMotion, q: Array, v: Array, dt: Array, acceleration: Array, forces: Forces
) -> Increment:
    """Velocity first, then position with the new velocity: `v' = v + dt a`, `q' = q + dt v'`."""
    v = v + dt * acceleration
    return Increment(integrate(equation.model, q, dt * v), v, acceleration, forces)
