"""Soft constraints with bounded forces: a convex problem with a piecewise quadratic cost.

    minimize over a:  1/2 (a - a0)^T M (a - a0) + sum_r s_r(J_r a - ref_r)

Constraint r exerts the force `f_r = clip(-D_r (J_r a - ref_r), low_r, high_r)`, the negative derivative of s_r. Bounds
(-c, c) make joint friction, (0, inf) a unilateral constraint, (-inf, inf) an equality constraint. Newton's method with
an exact line search ends after finitely many steps. With the active set known (`sides`), the solution is that of the
linear system `hessian`, from which callers derive exact derivatives.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.math import dense

MAX_NEWTON_ITERATIONS = 50
"""Maximum Newton steps; larger solves harder problems."""


class SoftConstraints(NamedTuple):
    """Soft constraints on an acceleration."""

    J: Float[Array, "rows n"]
    """Jacobian."""
    reference: Float[Array, " rows"]
    """Value of `J a` at which the force is zero."""
    stiffness: Float[Array, " rows"]
    """Force per deviation (D)."""
    low: Float[Array, " rows"]
    """Smallest force."""
    high: Float[Array, " rows"]
    """Largest force."""


class SoftSolution(NamedTuple):
    """Minimizer with solver diagnostics."""

    a: Float[Array, " n"]
    forces: Float[Array, " rows"]
    sides: Int[Array, " rows"]
    """Active set: 1 at the upper bound, -1 at the lower bound, 0 between them."""
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def solve(M: Float[Array, "n n"], b: Float[Array, " n"], constraints: SoftConstraints) -> SoftSolution:
    """Minimize for `a0 = M^-1 b` by Newton's method, exact when converged; no derivative passes through it.

    Args:
        M: Metric, positive definite.
        b: Right-hand side without constraints.
        constraints: The constraints.
    """
    M, b, constraints = jax.lax.stop_gradient((M, b, constraints))

    def unfinished(carry: tuple) -> Array:
        _, _, done, count = carry
        return ~done & (count < MAX_NEWTON_ITERATIONS)

    def newton(carry: tuple) -> tuple:
        """One Newton step; the last one if the active set stays the same, since the cost was then quadratic."""
        a, sides, _, count = carry
        gradient, rounding = _gradient(M, b, constraints, a)
        step = -dense.solve(hessian(M, constraints, sides), gradient)
        a = jnp.where(jnp.max(jnp.abs(gradient)) <= rounding, a, _line_search(M, b, constraints, a, step))
        new_sides = _sides(constraints, a)
        return a, new_sides, jnp.all(new_sides == sides), count + 1

    start = jnp.zeros_like(b)
    carry = (start, _sides(constraints, start), jnp.zeros((), bool), jnp.zeros((), jnp.int32))
    a, sides, converged, count = jax.lax.while_loop(unfinished, newton, carry)
    return SoftSolution(a, forces_at(constraints, a, sides), sides, count, converged)


def forces_at(constraints: SoftConstraints, a: Float[Array, " n"], sides: Int[Array, " rows"]) -> Float[Array, " rows"]:
    """Force of each constraint at `a` for a known active set; smooth in all other arguments."""
    high, low = jnp.where(sides > 0, constraints.high, 0.0), jnp.where(sides < 0, constraints.low, 0.0)
    return jnp.where(sides == 0, _pull(constraints, a), high + low)


def hessian(M: Float[Array, "n n"], constraints: SoftConstraints, sides: Int[Array, " rows"]) -> Float[Array, "n n"]:
    """Second derivative of the cost for a known active set: `M + J^T D J`."""
    return M + constraints.J.T @ (jnp.where(sides == 0, constraints.stiffness, 0.0)[:, None] * constraints.J)


def _pull(constraints: SoftConstraints, a: Array) -> Array:
    """Unbounded force of each constraint."""
    return -constraints.stiffness * (constraints.J @ a - constraints.reference)


def _sides(constraints: SoftConstraints, a: Array) -> Int[Array, " rows"]:
    """Active set: 1 at the upper bound, -1 at the lower bound, 0 between them."""
    pull = _pull(constraints, a)
    return jnp.where(pull >= constraints.high, 1, jnp.where(pull <= constraints.low, -1, 0)).astype(jnp.int32)


def _gradient(M: Array, b: Array, constraints: SoftConstraints, a: Array) -> tuple[Array, Array]:
    """Gradient of the cost, and its rounding error."""
    force = jnp.clip(_pull(constraints, a), constraints.low, constraints.high)
    size = jnp.max(jnp.abs(M) @ jnp.abs(a) + jnp.abs(b)) + jnp.max(
        jnp.abs(constraints.stiffness * constraints.reference)
    )
    return M @ a - b - constraints.J.T @ force, 16 * jnp.finfo(a.dtype).eps * size


def _line_search(M: Array, b: Array, constraints: SoftConstraints, a: Array, direction: Array) -> Array:
    """Exact minimum along a direction.

    The directional derivative is piecewise linear and increasing, with kinks where a constraint meets a bound: find
    the kinks on either side of its zero and interpolate.
    """
    pull, speed = _pull(constraints, a), -constraints.stiffness * (constraints.J @ direction)
    moving = jnp.abs(speed) > 0
    reach = jnp.concatenate(
        [(bound - pull) / jnp.where(moving, speed, 1.0) for bound in (constraints.low, constraints.high)]
    )
    kinks = jnp.where(jnp.tile(moving, 2) & jnp.isfinite(reach) & (reach > 0), reach, 0.0)
    offset, rate, push = (M @ a - b) @ direction, direction @ M @ direction, constraints.J @ direction

    def derivative(t: Array) -> Array:
        force = jnp.clip(pull + t * speed, constraints.low, constraints.high)
        return offset + t * rate - force @ push

    derivatives = jax.vmap(derivative)(kinks)
    left = jnp.max(jnp.where(derivatives <= 0, kinks, 0.0))
    right = jnp.min(jnp.where(derivatives > 0, kinks, jnp.inf))
    right = jnp.where(jnp.isfinite(right), right, left + 1.0)
    at_left, at_right = derivative(left), derivative(right)
    rising = at_right > at_left
    t = left - jnp.where(rising, at_left / jnp.where(rising, at_right - at_left, 1.0), 0.0) * (right - left)
    return a + t * direction
