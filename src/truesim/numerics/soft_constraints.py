"""Soft constraints with bounded forces: a convex problem, solved exactly.

    minimise over a:  1/2 (a - a0)^T M (a - a0) + sum_r s_r(J_r a - ref_r)

where each row pulls towards its reference with the force `f_r = clip(-D_r (J_r a - ref_r), low_r, high_r)`, the
negative derivative of s_r. Bounds (-c, c) make dry friction, (0, inf) a one-sided limit, (-inf, inf) an equality. The
cost is piecewise quadratic, so Newton's method with an exact line search ends after finitely many steps; with the rows
that are not at a bound known, the solution is one linear system, through which derivatives of any order are exact.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.numerics import dense

MAX_ITERATIONS = 50


class Rows(NamedTuple):
    """Constraint rows."""

    J: Float[Array, "rows n"]
    """Jacobian."""
    reference: Float[Array, "rows"]
    """Value of `J a` at which the row exerts no force."""
    stiffness: Float[Array, "rows"]
    """Force per deviation (D)."""
    low: Float[Array, "rows"]
    """Smallest force."""
    high: Float[Array, "rows"]
    """Largest force."""


class Solution(NamedTuple):
    """The minimiser, and how it was reached."""

    a: Float[Array, "n"]
    forces: Float[Array, "rows"]
    sides: Int[Array, "rows"]
    """Where each row ended: 1 at its upper bound, -1 at its lower bound, 0 between them."""
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def solve(M: Float[Array, "n n"], b: Float[Array, "n"], rows: Rows) -> Solution:
    """The minimiser for `a0 = M^-1 b`, with exact derivatives.

    With the rows at their bounds known from `search`, it is `(M + J^T D J) a = b + J^T (D ref, or the bound)`.

    Args:
        M: Metric, positive definite.
        b: Right-hand side without constraints.
        rows: The constraints.
    """
    found = search(M, b, rows)
    known = forces_at(rows, jnp.zeros_like(b), found.sides)
    a = dense.solve(hessian(M, rows, found.sides), b + rows.J.T @ known)
    return found._replace(a=a, forces=forces_at(rows, a, found.sides))


def search(M: Float[Array, "n n"], b: Float[Array, "n"], rows: Rows) -> Solution:
    """The minimiser by Newton's method, exact when converged; no derivative passes through it."""
    M, b, rows = jax.lax.stop_gradient((M, b, rows))

    def unfinished(carry: tuple) -> Array:
        _, _, done, count = carry
        return ~done & (count < MAX_ITERATIONS)

    def newton(carry: tuple) -> tuple:
        """One Newton step; the last if the rows at their bounds stay the same: then the cost was quadratic."""
        a, sides, _, count = carry
        gradient, rounding = _gradient(M, b, rows, a)
        step = -dense.solve(hessian(M, rows, sides), gradient)
        a = jnp.where(jnp.max(jnp.abs(gradient)) <= rounding, a, _line_search(M, b, rows, a, step))
        new_sides = _sides(rows, a)
        return a, new_sides, jnp.all(new_sides == sides), count + 1

    start = jnp.zeros_like(b)
    carry = (start, _sides(rows, start), jnp.zeros((), bool), jnp.zeros((), jnp.int32))
    a, sides, converged, count = jax.lax.while_loop(unfinished, newton, carry)
    return Solution(a, forces_at(rows, a, sides), sides, count, converged)


def forces_at(rows: Rows, a: Float[Array, "n"], sides: Int[Array, "rows"]) -> Float[Array, "rows"]:
    """Force of each row at `a`, with the rows at their bounds known; smooth in everything else."""
    high, low = jnp.where(sides > 0, rows.high, 0.0), jnp.where(sides < 0, rows.low, 0.0)
    return jnp.where(sides == 0, _pull(rows, a), high + low)


def hessian(M: Float[Array, "n n"], rows: Rows, sides: Int[Array, "rows"]) -> Float[Array, "n n"]:
    """Second derivative of the cost, with the rows at their bounds known: `M + J^T D J`."""
    return M + rows.J.T @ (jnp.where(sides == 0, rows.stiffness, 0.0)[:, None] * rows.J)


def _pull(rows: Rows, a: Array) -> Array:
    """Force of each row if it had no bounds."""
    return -rows.stiffness * (rows.J @ a - rows.reference)


def _sides(rows: Rows, a: Array) -> Int[Array, "rows"]:
    """Where each row is: 1 at its upper bound, -1 at its lower bound, 0 between them."""
    pull = _pull(rows, a)
    return jnp.where(pull >= rows.high, 1, jnp.where(pull <= rows.low, -1, 0)).astype(jnp.int32)


def _gradient(M: Array, b: Array, rows: Rows, a: Array) -> tuple[Array, Array]:
    """Gradient of the cost, and the size of what rounding leaves of it."""
    force = jnp.clip(_pull(rows, a), rows.low, rows.high)
    size = jnp.max(jnp.abs(M) @ jnp.abs(a) + jnp.abs(b)) + jnp.max(jnp.abs(rows.stiffness * rows.reference))
    return M @ a - b - rows.J.T @ force, 16 * jnp.finfo(a.dtype).eps * size


def _line_search(M: Array, b: Array, rows: Rows, a: Array, direction: Array) -> Array:
    """The exact minimum along a direction.

    The slope along it is piecewise linear and increasing, with kinks where a row meets a bound: find the kinks on
    either side of its zero and interpolate.
    """
    pull, speed = _pull(rows, a), -rows.stiffness * (rows.J @ direction)
    moving = jnp.abs(speed) > 0
    reach = jnp.concatenate([(bound - pull) / jnp.where(moving, speed, 1.0) for bound in (rows.low, rows.high)])
    kinks = jnp.where(jnp.tile(moving, 2) & jnp.isfinite(reach) & (reach > 0), reach, 0.0)
    offset, rate, push = (M @ a - b) @ direction, direction @ M @ direction, rows.J @ direction

    def slope(t: Array) -> Array:
        force = jnp.clip(pull + t * speed, rows.low, rows.high)
        return offset + t * rate - force @ push

    slopes = jax.vmap(slope)(kinks)
    left = jnp.max(jnp.where(slopes <= 0, kinks, 0.0))
    right = jnp.min(jnp.where(slopes > 0, kinks, jnp.inf))
    right = jnp.where(jnp.isfinite(right), right, left + 1.0)
    at_left, at_right = slope(left), slope(right)
    rising = at_right > at_left
    t = left - jnp.where(rising, at_left / jnp.where(rising, at_right - at_left, 1.0), 0.0) * (right - left)
    return a + t * direction
