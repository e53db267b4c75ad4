"""Acceleration under soft constraints, with exact derivatives by the implicit function theorem."""

from typing import NamedTuple

import equinox as eqx
import jax

from truesim.core.typing import Array, Bool, Float, Int
from truesim.math import dense
from truesim.math.soft_constraints import newton
from truesim.math.soft_constraints.newton import NewtonOptions
from truesim.math.soft_constraints.problem import ConstraintNumbers, Constraints
from truesim.physics.dynamics import bias_forces, inverse_dynamics, mass_matrix
from truesim.physics.model.model import Model


class ConstrainedMotion(NamedTuple):
    """Acceleration and constraint forces: `M(q) a + c(q, v) = applied + J^T f(J a - reference)`."""

    a: Float[Array, " nv"]
    force: Float[Array, " nv"]
    """Generalized force `J^T f` of all constraints [N m or N]."""
    forces: ConstraintNumbers
    """Force of each row and cone [N or N m]."""
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def constrained_motion(
    model: Model,
    state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
    applied: Float[Array, " nv"],
    constraints: Constraints,
    start: Float[Array, " nv"],
    options: NewtonOptions,
) -> ConstrainedMotion:
    """Acceleration under soft constraints.

    Args:
        model: The robot.
        state: Configuration and velocity.
        applied: All other generalized forces.
        constraints: The constraints.
        start: Acceleration from which the solver starts; no derivative passes through it.
        options: Stopping rules of the solver.
    """
    inputs = model, *state, applied, constraints
    a, iterations, converged = _solve(inputs, jax.lax.stop_gradient(start), options)
    forces = constraints.forces(constraints.deviations(a))
    return ConstrainedMotion(a, constraints.generalized(forces), forces, iterations, converged)


@eqx.filter_custom_jvp
def _solve(inputs: tuple, start: Array, options: NewtonOptions) -> tuple[Array, Array, Array]:
    model, q, v, applied, constraints = inputs
    M, b = mass_matrix(model, q), applied - bias_forces(model, q, v)
    solution = newton.solve(M, b, constraints, start, options)
    return solution.a, solution.iterations, solution.converged


@_solve.def_jvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    """Differentiate the balance of forces at fixed a: `da = (M + J^T W J)^-1 d balance`.

    This takes the derivative of inverse dynamics instead of that of the mass matrix.
    """
    (inputs, start, options), (perturbations, _, _) = primals, tangents
    a, iterations, converged = _solve(inputs, start, options)

    def balance(inputs: tuple) -> Array:
        model, q, v, applied, constraints = inputs
        forces = constraints.forces(constraints.deviations(a))
        return applied - inverse_dynamics(model, q, v, a) + constraints.generalized(forces)

    _, unbalanced = eqx.filter_jvp(balance, (inputs,), (perturbations,))
    model, q, _, _, constraints = inputs
    H = constraints.hessian(mass_matrix(model, q), constraints.deviations(a))
    return (a, iterations, converged), (dense.solve(H, unbalanced), None, None)
