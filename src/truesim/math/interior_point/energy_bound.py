"""Energy bound: constraints take energy out of the motion, whether or not the solver converged.

With impulses l, Jacobian J and `M (v - free) = J^T l`, the kinetic energy changes by `l.J v - |v - free|_M^2 / 2`. On
the central path every term of `l.J v` is at most a complementary product, so that the energy grows by at most the sum
of the products. A solution beyond that bound is scaled towards the free motion, along which the energy is quadratic:

    E(t) - E(0) = t free.M d + t^2 / 2 d.M d,    d = v - free.

Impulses stay in their cones under the scale t, and momentum stays balanced.
"""

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float
from truesim.math import dense
from truesim.math.interior_point.central_path import (
    ConeProblem,
    Iterate,
    friction_count,
    impulse,
    impulses,
    resume,
    start,
)
from truesim.math.interior_point.cones import AbstractCone
from truesim.math.interior_point.solver import FINAL_PHASE_RATIO, ConeSolution

ENERGY_TOLERANCE = 1e-9
"""Energy gain that counts as rounding, relative to the energy of the motion without constraints."""
LEAST_SCALE = 1e-9
"""Smallest scale of impulses, which keeps them inside their cones."""


def bound_energy(problem: ConeProblem, cone: AbstractCone, found: ConeSolution) -> ConeSolution:
    """The solution, finite and without more energy than the motion without constraints has.

    A converged solution obeys the bound by itself, up to its tolerance. Otherwise the velocity follows from the
    impulses of the last finite iterate, scaled so that they take out as much energy as they can.
    """
    point = _rebalanced(problem, cone, found)
    return found._replace(point=_scaled(point, _trimmed(problem, point, found.converged)))


def _trimmed(problem: ConeProblem, point: Iterate, converged: Bool[Array, ""]) -> tuple[Array, Array]:
    """Velocity within the energy bound, and the scale of its impulses: the largest t with `E(t) <= E(0) + products`."""
    gained = point.velocity - problem.free
    momentum = problem.inertia @ gained
    square, work = gained @ momentum, problem.free @ momentum
    bounced = jnp.where(converged, point.normal @ jnp.maximum(-problem.offset, 0.0), 0.0)
    allowed = _products(problem, point) + bounced
    allowed = allowed + ENERGY_TOLERANCE * (problem.free @ problem.inertia @ problem.free) / 2
    beyond = work + square / 2 > allowed
    root = jnp.sqrt(jnp.maximum(work**2 + 2 * square * allowed, 0.0)) - work
    scale = jnp.where(beyond, jnp.minimum(root / jnp.where(beyond, square, 1.0), 1.0), 1.0)
    return jnp.where(beyond, problem.free + scale * gained, point.velocity), scale


def _products(problem: ConeProblem, point: Iterate) -> Float[Array, ""]:
    """Sum of the complementary products with which a solution counts as converged."""
    energy = problem.mass * problem.speed2
    rubbing = point.friction.force.shape[1] * jnp.sum(energy[: friction_count(problem)])
    total = jnp.sum(energy) + rubbing + jnp.sum(problem.joint_friction_energy)
    return FINAL_PHASE_RATIO * problem.barrier * total


def _scaled(point: Iterate, trimmed: tuple[Array, Array]) -> Iterate:
    """The point with another velocity and scaled impulses."""
    v, scale = trimmed
    scale = jnp.maximum(scale, LEAST_SCALE)
    return point._replace(
        velocity=v,
        normal=scale * point.normal,
        friction=point.friction._replace(force=scale * point.friction.force),
        joint_friction=point.joint_friction._replace(force=scale * point.joint_friction.force),
        equality=scale * point.equality,
    )


def _rebalanced(problem: ConeProblem, cone: AbstractCone, found: ConeSolution) -> Iterate:
    """The point where it converged, else a finite one with the velocity that the impulses give.

    The loop runs once for unconverged solutions and costs nothing without any.
    """

    def rebalance(carry: tuple[Iterate, Array]) -> tuple[Iterate, Array]:
        (last, usable), (cold, _) = (_dissipating(problem, cone, x) for x in (carry[0], start(problem, cone)))
        point = jax.tree.map(lambda x, y: jnp.where(usable, x, y), last, cold)
        return _inside(problem, cone, point), jnp.ones((), bool)

    return jax.lax.while_loop(lambda carry: ~carry[1], rebalance, (found.point, found.converged))[0]


def _dissipating(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> tuple[Iterate, Bool[Array, ""]]:
    """Impulses of a point, scaled to leave the least energy, with the velocity that they give; and if it is usable.

    A point is usable if its numbers are finite, its normal impulses push, and its impulses take out energy.
    """
    given = dense.solve(problem.inertia, impulse(problem, cone, point))
    momentum = problem.inertia @ given
    square, work = given @ momentum, problem.free @ momentum
    finite = jnp.isfinite(square) & (square > 0)
    scale = jnp.where(finite, jnp.clip(-work / jnp.where(finite, square, 1.0), 0.0, 1.0), 0.0)
    for x in jax.tree.leaves(point):
        finite = finite & jnp.all(jnp.isfinite(x))
    moved = _scaled(point, (problem.free + jnp.where(finite, scale * given, 0.0), scale))
    return moved, finite & jnp.all(point.normal > 0) & (scale > LEAST_SCALE)


def _inside(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> Iterate:
    """The point with slacks and slip speeds inside all constraints, where derivatives are finite."""
    near = resume(problem, cone, point.velocity, impulses(point))
    return point._replace(
        slack=near.slack,
        friction=point.friction._replace(speed=near.friction.speed),
        joint_friction=point.joint_friction._replace(speed=near.joint_friction.speed),
    )
