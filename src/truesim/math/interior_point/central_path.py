"""Central path of the rigid-contact problem: residuals, Newton's step and starting points.

Find the velocity v and the impulses g, f, h and l with

    M (v - free) = N^T g + sum T_k^T f_k + H^T h + E^T l,
    0 <= g  _|_  N v + offset >= 0                 unilateral constraints,
    f_k in the cone of bound g_k, opposing T_k v   contact friction, T_k scaled by the friction coefficients,
    h in [-1, 1], opposing H v                     joint friction, H scaled by its bound,
    E v = target                                   equality constraints.

On the central path, complementary products equal `barrier * mass * speed^2`, an energy. Each Newton step eliminates
all impulses constraint by constraint, which leaves one linear system of the size of v; its cost is linear in the
number of constraints. Friction is Coulomb's, without convex relaxation.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.math.interior_point.cones import AbstractCone, EllipticCone, Slip

INTERVAL_CONE: AbstractCone = EllipticCone()
"""Friction cone of a single direction, for joint friction."""
WARM_START_PRODUCT = 1e-4
"""Complementary products at a warm start, relative to the energy of each constraint; larger is more central."""


class ConeProblem(NamedTuple):
    """Rigid-contact problem; unilateral constraints with friction come first."""

    inertia: Float[Array, "n n"]
    """Mass matrix M."""
    free: Float[Array, " n"]
    """Velocity without constraints."""
    normal: Float[Array, "k n"]
    """Jacobian N of the unilateral constraints."""
    offset: Float[Array, " k"]
    """Lower bound of `N v`, negated."""
    tangent: Float[Array, "c d n"]
    """Jacobian T of contact friction, scaled by the friction coefficients."""
    joint_friction: Float[Array, "h n"]
    """Jacobian H of joint friction, scaled by its bound."""
    equality: Float[Array, "e n"]
    """Jacobian E of the equality constraints."""
    target: Float[Array, " e"]
    """Value of `E v`."""
    mass: Float[Array, " k"]
    """Effective mass of each unilateral constraint."""
    speed2: Float[Array, " k"]
    """Typical squared velocity along each unilateral constraint."""
    joint_friction_energy: Float[Array, " h"]
    """Typical energy of each joint friction constraint."""
    equality_mass: Float[Array, " e"]
    """Effective mass of each equality constraint."""
    equality_speed: Float[Array, " e"]
    """Typical velocity along each equality constraint."""
    barrier: Float[Array, ""]
    """Complementary products at the solution, relative to the energy of each constraint."""


class Iterate(NamedTuple):
    """Point, residual of the equations, or Newton step."""

    velocity: Float[Array, " n"]
    normal: Float[Array, " k"]
    slack: Float[Array, " k"]
    friction: Slip
    joint_friction: Slip
    equality: Float[Array, " e"]


class Impulses(NamedTuple):
    """Impulses of all constraints, from which a similar problem can be warm-started."""

    normal: Float[Array, " k"]
    """Positive; zeros mean that no impulses are known."""
    friction: Float[Array, "c m"]
    """Coordinates in the friction cone."""
    joint_friction: Float[Array, "h 1"]
    equality: Float[Array, " e"]


Step = Callable[[Iterate], Iterate]
"""Map from residuals to the step that makes them zero to first order."""


def start(problem: ConeProblem, cone: AbstractCone, product: float | Float[Array, ""] = 1.0) -> Iterate:
    """Cold start: each constraint alone on the central path at the free velocity.

    Args:
        problem: The problem.
        cone: The friction cone.
        product: Complementary products, relative to the energy of each constraint; larger is more central.
    """
    v, mass, speed2 = problem.free, problem.mass, product * problem.speed2
    gap = problem.normal @ v + problem.offset
    slack = (gap + jnp.sqrt(gap**2 + 4 * speed2)) / 2
    normal = mass * speed2 / slack
    count = friction_count(problem)
    kappa = (mass * speed2)[:count]
    return Iterate(
        velocity=v,
        normal=normal,
        slack=slack,
        friction=cone.start(normal[:count], problem.tangent @ v, kappa),
        joint_friction=INTERVAL_CONE.start(
            jnp.ones_like(problem.joint_friction_energy),
            joint_slip(problem, v),
            product * problem.joint_friction_energy,
        ),
        equality=jnp.zeros_like(problem.target),
    )


def resume(problem: ConeProblem, cone: AbstractCone, v: Float[Array, " n"], known: Impulses) -> Iterate:
    """Warm start: a point inside all constraints, near a velocity and the impulses of a similar problem.

    Each complementary pair (x, y) is replaced by the pair with the same difference `x - y` and a small product.
    """
    products, mass = jnp.maximum(WARM_START_PRODUCT, problem.barrier), problem.mass
    energy = products * mass * problem.speed2
    closing = known.normal - mass * (problem.normal @ v + problem.offset)
    root = jnp.sqrt(closing**2 + 4 * mass * energy)
    normal = jnp.where(closing > 0, (root + closing) / 2, 2 * mass * energy / (root + jnp.abs(closing)))
    count = friction_count(problem)
    return Iterate(
        velocity=v,
        normal=normal,
        slack=energy / normal,
        friction=cone.resume(known.friction, normal[:count], problem.tangent @ v, energy[:count]),
        joint_friction=INTERVAL_CONE.resume(
            known.joint_friction,
            jnp.ones_like(problem.joint_friction_energy),
            joint_slip(problem, v),
            products * problem.joint_friction_energy,
        ),
        equality=known.equality,
    )


def residuals(
    problem: ConeProblem, cone: AbstractCone, point: Iterate, barrier: Float[Array, ""], momentum: Float[Array, " n"]
) -> Iterate:
    """Residuals of the central-path equations.

    Args:
        problem: The problem.
        cone: The friction cone.
        point: Point of evaluation.
        barrier: Complementary products aimed at, relative to the energy of each constraint.
        momentum: `M (v - free)` at the point; an argument because callers may differentiate it more cheaply.
    """
    v, count = point.velocity, friction_count(problem)
    kappa, joint_kappa = barrier * problem.mass * problem.speed2, barrier * problem.joint_friction_energy
    friction = cone.products(point.friction, point.normal[:count], problem.tangent @ v)
    joint = INTERVAL_CONE.products(
        point.joint_friction, jnp.ones_like(problem.joint_friction_energy), joint_slip(problem, v)
    )
    return Iterate(
        velocity=momentum - impulse(problem, cone, point),
        normal=point.normal * point.slack - kappa,
        slack=point.slack - problem.normal @ v - problem.offset,
        friction=_minus(friction, cone.rounding(kappa[:count])),
        joint_friction=_minus(joint, INTERVAL_CONE.rounding(joint_kappa)),
        equality=problem.equality @ v - problem.target,
    )


def impulses(point: Iterate) -> Impulses:
    """Impulses at a point."""
    return Impulses(point.normal, point.friction.force, point.joint_friction.force, point.equality)


def impulse(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> Float[Array, " n"]:
    """Generalized impulse of all constraints."""
    total = problem.normal.T @ point.normal + problem.equality.T @ point.equality
    total = total + jnp.einsum("cdn,cd->n", problem.tangent, cone.force(point.friction))
    return total + problem.joint_friction.T @ INTERVAL_CONE.force(point.joint_friction)[:, 0]


def newton(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> Step:
    """Newton's step at a point as a linear function of the residuals.

    Impulses are eliminated constraint by constraint. Equality constraints have a compliance of `barrier / mass`, whose
    effect vanishes with their residual.
    """
    count = friction_count(problem)
    slip = point.normal[:count], problem.tangent @ point.velocity
    joint_state = jnp.ones_like(problem.joint_friction_energy), joint_slip(problem, point.velocity)
    stiffness = point.normal / point.slack
    equality_stiffness = problem.equality_mass / problem.barrier
    none = jax.tree.map(jnp.zeros_like, point)
    cut, pivot = cone.eliminate(point.friction, *slip, none.friction)
    joint_cut, joint_pivot = INTERVAL_CONE.eliminate(point.joint_friction, *joint_state, none.joint_friction)
    response = stiffness[:, None] * problem.normal
    sliding = jnp.einsum("cde,cen->cdn", cut.by_slip, problem.tangent)
    sliding = sliding + cut.by_bound[:, :, None] * response[:count][:, None, :]
    matrix = problem.inertia + problem.normal.T @ response
    matrix = matrix + jnp.einsum("cdm,cdn->mn", problem.tangent, sliding)
    matrix = matrix + problem.joint_friction.T @ (joint_cut.by_slip[:, 0] * problem.joint_friction)
    matrix = matrix + problem.equality.T @ (equality_stiffness[:, None] * problem.equality)
    factors = dense.factor(matrix)

    def step(r: Iterate) -> Iterate:
        pushed = (point.normal * r.slack - r.normal) / point.slack
        rubbed = cone.eliminate(point.friction, *slip, r.friction)[0].constant
        rubbed_at_bound = rubbed + cut.by_bound * pushed[:count][:, None]
        stuck = INTERVAL_CONE.eliminate(point.joint_friction, *joint_state, r.joint_friction)[0].constant
        right = problem.normal.T @ pushed + jnp.einsum("cdn,cd->n", problem.tangent, rubbed_at_bound) - r.velocity
        right = right + problem.joint_friction.T @ stuck[:, 0] - problem.equality.T @ (equality_stiffness * r.equality)
        dv = dense.substitute(factors, right)
        closing = problem.normal @ dv
        dnormal = pushed - stiffness * closing
        change = dnormal[:count], problem.tangent @ dv
        joint_change = jnp.zeros_like(problem.joint_friction_energy), joint_slip(problem, dv)
        return Iterate(
            velocity=dv,
            normal=dnormal,
            slack=closing - r.slack,
            friction=cone.step(point.friction, slip, r.friction, change, pivot),
            joint_friction=INTERVAL_CONE.step(
                point.joint_friction, joint_state, r.joint_friction, joint_change, joint_pivot
            ),
            equality=-equality_stiffness * (problem.equality @ dv + r.equality),
        )

    return step


def friction_count(problem: ConeProblem) -> int:
    """Number of unilateral constraints with friction."""
    return problem.tangent.shape[0]


def joint_slip(problem: ConeProblem, v: Float[Array, " n"]) -> Float[Array, "h 1"]:
    """Velocities along the joint friction constraints."""
    return (problem.joint_friction @ v)[:, None]


def _minus(a: Slip, b: Slip) -> Slip:
    return Slip(a.force - b.force, a.speed - b.speed)
