"""Velocities under complementarity constraints: the equations, Newton's step on them, and points to start from.

Find the velocity v, impulses g, f, h and l with

    M (v - free) = N^T g + sum T_k^T f_k + H^T h + E^T l,
    0 <= g  _|_  N v + offset >= 0            one-sided rows,
    f_k in the cone of bound g_k, opposing T_k v   friction, its rows scaled by the friction coefficients,
    h in [-1, 1], opposing H v                dry friction, its rows scaled by its size,
    E v = target                              equalities.

On the central path, products of complementary numbers equal `barrier * mass * speed^2`, an energy. Each Newton step
eliminates all impulses row by row, so that one system of the size of v is left and the cost grows linearly with the
number of rows. The problem is Coulomb's own, without convex relaxation.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.numerics import dense
from truesim.numerics.cones import AbstractCone, EllipticCone, Slip

DRY: AbstractCone = EllipticCone()
"""The cone of a single direction, of dry friction."""
RESUMED = 1e-4
"""Products at which a search starts from known impulses, in parts of the energy of their rows."""


class Problem(NamedTuple):
    """One problem; rows of one-sided constraints with friction come first."""

    inertia: Float[Array, "n n"]
    free: Float[Array, "n"]
    """Velocity without constraints."""
    normal: Float[Array, "k n"]
    offset: Float[Array, "k"]
    tangent: Float[Array, "c d n"]
    dry: Float[Array, "h n"]
    equal: Float[Array, "e n"]
    target: Float[Array, "e"]
    mass: Float[Array, "k"]
    """Size of the inertia that a row feels."""
    speed2: Float[Array, "k"]
    """Size of the velocities along a row, squared."""
    dry_energy: Float[Array, "h"]
    """Size of the energy of a row of dry friction."""
    equal_mass: Float[Array, "e"]
    equal_speed: Float[Array, "e"]
    """Size of the velocities along an equality."""
    barrier: Float[Array, ""]


class Point(NamedTuple):
    """An iterate, the residuals of the equations at one, or a step between two."""

    velocity: Float[Array, "n"]
    normal: Float[Array, "k"]
    slack: Float[Array, "k"]
    friction: Slip
    dry: Slip
    equal: Float[Array, "e"]


class Impulses(NamedTuple):
    """What acts at a point: enough to start the search for the next from."""

    normal: Float[Array, "k"]
    """Positive wherever they are known."""
    friction: Float[Array, "c m"]
    """Coordinates in the cone."""
    dry: Float[Array, "h 1"]
    equal: Float[Array, "e"]


Step = Callable[[Point], Point]
"""The step that makes these residuals zero, to first order."""


def start(problem: Problem, cone: AbstractCone, farther: float | Float[Array, ""] = 1.0) -> Point:
    """A point inside all constraints: what each row would do by itself, well rounded."""
    v, mass, speed2 = problem.free, problem.mass, farther * problem.speed2
    gap = problem.normal @ v + problem.offset
    slack = (gap + jnp.sqrt(gap**2 + 4 * speed2)) / 2
    normal = mass * speed2 / slack
    rough = rough_rows(problem)
    kappa = (mass * speed2)[:rough]
    return Point(
        velocity=v,
        normal=normal,
        slack=slack,
        friction=cone.start(normal[:rough], problem.tangent @ v, kappa),
        dry=DRY.start(jnp.ones_like(problem.dry_energy), slips(problem, v), farther * problem.dry_energy),
        equal=jnp.zeros_like(problem.target),
    )


def resumed(problem: Problem, cone: AbstractCone, v: Float[Array, "n"], known: Impulses) -> Point:
    """A point inside all constraints, near a velocity and the impulses of a similar problem.

    Complementary numbers x and y become those with the same difference `x - y` and a small product.
    """
    products, mass = jnp.maximum(RESUMED, problem.barrier), problem.mass
    energy = products * mass * problem.speed2
    closing = known.normal - mass * (problem.normal @ v + problem.offset)
    root = jnp.sqrt(closing**2 + 4 * mass * energy)
    normal = jnp.where(closing > 0, (root + closing) / 2, 2 * mass * energy / (root + jnp.abs(closing)))
    rough = rough_rows(problem)
    return Point(
        velocity=v,
        normal=normal,
        slack=energy / normal,
        friction=cone.resume(known.friction, normal[:rough], problem.tangent @ v, energy[:rough]),
        dry=DRY.resume(known.dry, jnp.ones_like(problem.dry_energy), slips(problem, v), products * problem.dry_energy),
        equal=known.equal,
    )


def residuals(
    problem: Problem, cone: AbstractCone, point: Point, barrier: Float[Array, ""], momentum: Float[Array, "n"]
) -> Point:
    """What the equations are off by.

    Args:
        problem: The problem.
        cone: The cone of friction.
        point: Where.
        barrier: In parts of the energy of each row.
        momentum: `M (v - free)` there, which the caller may know how to differentiate cheaply.
    """
    v, rough = point.velocity, rough_rows(problem)
    kappa, dry_kappa = barrier * problem.mass * problem.speed2, barrier * problem.dry_energy
    friction = cone.products(point.friction, point.normal[:rough], problem.tangent @ v)
    dry = DRY.products(point.dry, jnp.ones_like(problem.dry_energy), slips(problem, v))
    return Point(
        velocity=momentum - impulse(problem, cone, point),
        normal=point.normal * point.slack - kappa,
        slack=point.slack - problem.normal @ v - problem.offset,
        friction=_minus(friction, cone.rounding(kappa[:rough])),
        dry=_minus(dry, DRY.rounding(dry_kappa)),
        equal=problem.equal @ v - problem.target,
    )


def impulses(point: Point) -> Impulses:
    """What acts at a point."""
    return Impulses(point.normal, point.friction.force, point.dry.force, point.equal)


def impulse(problem: Problem, cone: AbstractCone, point: Point) -> Float[Array, "n"]:
    """Generalised impulse of all constraints."""
    total = problem.normal.T @ point.normal + problem.equal.T @ point.equal
    total = total + jnp.einsum("cdn,cd->n", problem.tangent, cone.force(point.friction))
    return total + problem.dry.T @ DRY.force(point.dry)[:, 0]


def newton(problem: Problem, cone: AbstractCone, point: Point) -> Step:
    """Newton's step at a point as a linear function of residuals; all impulses are eliminated row by row.

    Equalities have a compliance of `barrier / mass`, which vanishes with their residual.
    """
    rough = rough_rows(problem)
    slip = point.normal[:rough], problem.tangent @ point.velocity
    dry_slip = jnp.ones_like(problem.dry_energy), slips(problem, point.velocity)
    stiffness = point.normal / point.slack
    stiff_equal = problem.equal_mass / problem.barrier
    none = jax.tree.map(jnp.zeros_like, point)
    cut, pivot = cone.eliminate(point.friction, *slip, none.friction)
    dry_cut, dry_pivot = DRY.eliminate(point.dry, *dry_slip, none.dry)
    response = stiffness[:, None] * problem.normal
    sliding = jnp.einsum("cde,cen->cdn", cut.by_slip, problem.tangent)
    sliding = sliding + cut.by_bound[:, :, None] * response[:rough][:, None, :]
    matrix = problem.inertia + problem.normal.T @ response
    matrix = matrix + jnp.einsum("cdm,cdn->mn", problem.tangent, sliding)
    matrix = matrix + problem.dry.T @ (dry_cut.by_slip[:, 0] * problem.dry)
    matrix = matrix + problem.equal.T @ (stiff_equal[:, None] * problem.equal)
    factors = dense.factor(matrix)

    def step(r: Point) -> Point:
        pushed = (point.normal * r.slack - r.normal) / point.slack
        rubbed = cone.eliminate(point.friction, *slip, r.friction)[0].constant
        rubbed_at_bound = rubbed + cut.by_bound * pushed[:rough][:, None]
        stuck = DRY.eliminate(point.dry, *dry_slip, r.dry)[0].constant
        right = problem.normal.T @ pushed + jnp.einsum("cdn,cd->n", problem.tangent, rubbed_at_bound) - r.velocity
        right = right + problem.dry.T @ stuck[:, 0] - problem.equal.T @ (stiff_equal * r.equal)
        dv = dense.substitute(factors, right)
        closing = problem.normal @ dv
        dnormal = pushed - stiffness * closing
        change = dnormal[:rough], problem.tangent @ dv
        dry_change = jnp.zeros_like(problem.dry_energy), slips(problem, dv)
        return Point(
            velocity=dv,
            normal=dnormal,
            slack=closing - r.slack,
            friction=cone.step(point.friction, slip, r.friction, change, pivot),
            dry=DRY.step(point.dry, dry_slip, r.dry, dry_change, dry_pivot),
            equal=-stiff_equal * (problem.equal @ dv + r.equal),
        )

    return step


def rough_rows(problem: Problem) -> int:
    """Number of one-sided rows with friction."""
    return problem.tangent.shape[0]


def slips(problem: Problem, v: Float[Array, "n"]) -> Float[Array, "h 1"]:
    """Velocities along the rows of dry friction."""
    return (problem.dry @ v)[:, None]


def _minus(a: Slip, b: Slip) -> Slip:
    return Slip(a.force - b.force, a.speed - b.speed)
