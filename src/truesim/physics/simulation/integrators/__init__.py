"""Integrators of the equation of motion."""

from truesim.physics.simulation.integrators.base import AbstractIntegrator, Increment
from truesim.physics.simulation.integrators.euler import SemiImplicitEuler
from truesim.physics.simulation.integrators.implicit import Implicit, ImplicitFast, ImplicitStiff
from truesim.physics.simulation.integrators.runge_kutta import RungeKutta4

INTEGRATORS: dict[str, AbstractIntegrator] = {
    "Euler": SemiImplicitEuler(),
    "RK4": RungeKutta4(),
    "implicit": Implicit(),
    "implicitfast": ImplicitFast(),
    "discrete": ImplicitStiff(),
}
"""Integrators by their names in MJCF files."""

__all__ = [
    "INTEGRATORS",
    "AbstractIntegrator",
    "Implicit",
    "ImplicitFast",
    "ImplicitStiff",
    "Increment",
    "RungeKutta4",
    "SemiImplicitEuler",
]
