"""Integrators of the equation of motion."""

from truesim.simulate.integrators.base import AbstractIntegrator, Increment
from truesim.simulate.integrators.euler import SemiImplicitEuler
from truesim.simulate.integrators.implicit import Implicit, ImplicitFast, ImplicitStiff
from truesim.simulate.integrators.runge_kutta import RungeKutta4

INTEGRATORS: dict[str, AbstractIntegrator] = {
    "Euler": SemiImplicitEuler(),
    "RK4": RungeKutta4(),
    "implicit": Implicit(),
    "implicitfast": ImplicitFast(),
    "discrete": ImplicitStiff(),
}
"""The integrator for each name that an MJCF file may ask for."""

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
