"""MuJoCo's Newton method for soft constraints, with its start, its line search and its stopping rules.

The iterations are repeated literally: at the file's tolerance the result differs from the minimum by up to 1e-4 of the
acceleration, and equals MuJoCo's only if every rule does.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.math import dense
from truesim.math.soft_constraints import cones as elliptic
from truesim.math.soft_constraints.line_search import LineSearchResult, SearchPoint, line_search
from truesim.math.soft_constraints.problem import ConstraintNumbers, Constraints

MIN_DIRECTION = 1e-15
"""Norm of Newton's direction below which MuJoCo does not search along it."""


class NewtonOptions(NamedTuple):
    """Stopping rules of the solver, as in MuJoCo."""

    iterations: int = 100
    """Most Newton steps."""
    tolerance: float = 1e-8
    """Gradient or improvement, scaled by the inertia, below which the solver stops."""
    line_search_points: int = 50
    """Most points of a line search."""
    line_search_tolerance: float = 0.01
    """Derivative along the line, relative to `tolerance`, below which a line search stops."""


class NewtonSolution(NamedTuple):
    """Acceleration, with solver diagnostics."""

    a: Float[Array, " n"]
    iterations: Int[Array, ""]
    evaluations: Int[Array, ""]
    """Points of all line searches."""
    converged: Bool[Array, ""]


class _Iterate(NamedTuple):
    a: Float[Array, " n"]
    Ma: Float[Array, " n"]
    at: ConstraintNumbers
    improvement: Float[Array, ""]
    done: Bool[Array, ""]
    iterations: Int[Array, ""]
    evaluations: Int[Array, ""]


def solve(
    M: Float[Array, "n n"],
    b: Float[Array, " n"],
    constraints: Constraints,
    start: Float[Array, " n"],
    options: NewtonOptions,
) -> NewtonSolution:
    """Minimize for `a0 = M^-1 b`, from `start` or from a0, whichever costs less; no derivative passes through it.

    Args:
        M: Metric, positive definite.
        b: Right-hand side without constraints.
        constraints: The constraints.
        start: First guess.
        options: Stopping rules.
    """
    M, b, constraints, start = jax.lax.stop_gradient((M, b, constraints, start))
    scale, smooth = 1 / jnp.trace(M), dense.solve_in_loop(M, b)

    def total_cost(a: Array) -> Array:
        return (M @ a - b) @ (a - smooth) / 2 + constraints.cost(constraints.deviations(a))

    a = jnp.where(total_cost(smooth) < total_cost(start), smooth, start)

    def advance(state: _Iterate) -> _Iterate:
        g = state.Ma - b - constraints.generalized(constraints.forces(state.at))
        small = jnp.sqrt(g @ g) * scale < options.tolerance
        initial = state.iterations == 0
        settled = (state.improvement > 0) & (state.improvement < options.tolerance)
        at_start = g @ dense.solve_in_loop(M, g) * scale / 2 < options.tolerance
        done = jnp.where(initial, small & at_start, small | settled | (state.iterations >= options.iterations))
        x = -dense.solve_in_loop(constraints.hessian(M, state.at), g)
        flat = -(g @ x) * scale / 2 < options.tolerance
        done = done | (flat & (small | ~initial))
        result = _search(M, b, constraints, state, x, scale, options)
        done = done | (jnp.sqrt(x @ x) < MIN_DIRECTION)
        step = jnp.where(done, 0.0, result.point.step)
        stop = done | (result.point.step == 0.0)
        moved = jnp.where(stop, 0, 1)
        return _Iterate(
            state.a + step * x,
            state.Ma + step * (M @ x),
            state.at.along(step, constraints.changes(x)),
            -result.point.cost * scale,
            stop,
            state.iterations + moved,
            state.evaluations + jnp.where(done, 0, result.evaluations),
        )

    zero = jnp.zeros((), jnp.result_type(int))
    begun = _Iterate(a, M @ a, constraints.deviations(a), -jnp.ones(()), jnp.zeros((), bool), zero, zero)
    end = jax.lax.while_loop(lambda state: ~state.done, advance, begun)
    return NewtonSolution(end.a, end.iterations, end.evaluations, end.iterations < options.iterations)


def _search(
    M: Array, b: Array, constraints: Constraints, state: _Iterate, x: Array, scale: Array, options: NewtonOptions
) -> LineSearchResult:
    """Line search from an iterate along x."""
    changes, Mx = constraints.changes(x), M @ x
    rate, curve, base = x @ (state.Ma - b), x @ Mx, constraints.cost(state.at)

    def evaluate(step: Array) -> SearchPoint:
        at = state.at.along(step, changes)
        forces, inside = constraints.forces(at), constraints.inside(at)
        blocks = elliptic.hessian_blocks(constraints.cones, at.cones)
        first = rate + step * curve - forces.rows @ changes.rows - jnp.sum(forces.cones * changes.cones)
        second = curve + jnp.sum(jnp.where(inside, constraints.rows.stiffness * changes.rows**2, 0.0))
        second = second + jnp.einsum("ci,cij,cj->", changes.cones, blocks, changes.cones)
        return SearchPoint(step, step * (rate + step * curve / 2) + constraints.cost(at) - base, first, second)

    tolerance = options.tolerance * options.line_search_tolerance * jnp.sqrt(x @ x) / scale
    return line_search(evaluate, tolerance, options.line_search_points)
