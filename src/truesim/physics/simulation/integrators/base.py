"""Abstract integrator."""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.physics.simulation.equation_of_motion import EquationOfMotion, Forces


class Increment(NamedTuple):
    """Result of one step of an integrator."""

    rate: Float[Array, " nv"]
    """Rate of the configuration: the step ends at `integrate(model, q, dt * rate)` [rad/s or m/s]."""
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    """Change of velocity over the step, divided by the time step [rad/s^2 or m/s^2]."""
    forces: Forces
    """Forces at the start of the step."""
    added_inertia: Float[Array, " nv"] | None
    """Diagonal added to the mass matrix by implicit terms [kg m^2 or kg]."""


class AbstractIntegrator(eqx.Module):
    """Advances configuration and velocity by one time step at a held command."""

    order: ClassVar[int]
    """Order: the global error decreases with this power of the time step."""

    @abc.abstractmethod
    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """Rate of the configuration over the next `dt` [s], and velocity after it."""


def semi_implicit(v: Array, dt: Array, acceleration: Array, forces: Forces, added_inertia: Array | None) -> Increment:
    """Velocity first, then position with the new velocity: `v' = v + dt a`, `q' = q + dt v'`."""
    v = v + dt * acceleration
    return Increment(v, v, acceleration, forces, added_inertia)
