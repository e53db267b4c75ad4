"""Removal of overlap: a velocity that moves bodies apart without changing their momentum."""

from collections.abc import Callable

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.physics.dynamics import inertia_forces, mass_matrix


@eqx.filter_custom_jvp
def shift_velocity(inputs: tuple) -> Float[Array, " nv"]:
    """Smallest velocity, in the metric of the mass matrix, that shifts loaded constraints: `N w = shift`.

    Args:
        inputs: Model, configuration, Jacobian N, stiffness of each constraint (`loads`) and `shift` [m/s or rad/s].
    """
    _, _, normal, loads, shift = inputs
    return _shift_solver(inputs)(normal.T @ (loads * shift))


@shift_velocity.def_jvp
def _shift_velocity_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Differentiate the balance `M w = N^T loads (shift - N w)` at fixed w."""
    (inputs,), (changes,) = primals, tangents
    w = shift_velocity(inputs)

    def balance(inputs: tuple) -> Array:
        model, q, normal, loads, shift = inputs
        return normal.T @ (loads * (shift - normal @ w)) - inertia_forces(model, q, w)

    _, unbalanced = eqx.filter_jvp(balance, (inputs,), (changes,))
    return w, _shift_solver(inputs)(unbalanced)


def _shift_solver(inputs: tuple) -> Callable[[Array], Array]:
    """Solve with `M + N^T loads N`."""
    model, q, normal, loads, _ = inputs
    factors = dense.factor(mass_matrix(model, q) + normal.T @ (loads[:, None] * normal))
    return lambda right: dense.substitute(factors, right)
