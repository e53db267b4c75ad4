"""Velocities under complementarity constraints, by a primal-dual interior-point method.

Find the velocity v, impulses g, f, h and l with

    M (v - free) = N^T g + sum T_k^T f_k + H^T h + E^T l,
    0 <= g  _|_  N v + offset >= 0            one-sided rows,
    f_k in the cone of bound g_k, opposing T_k v   friction, its rows scaled by the friction coefficients,
    h in [-1, 1], opposing H v                dry friction, its rows scaled by its size,
    E v = target                              equalities.

Products of complementary numbers are brought to `barrier * mass * speed^2`, an energy, along the central path
(Mehrotra's predictor and corrector). Each Newton step eliminates all impulses row by row, so that one system of the
size of v is left and the cost grows linearly with the number of rows. The problem is Coulomb's own, without convex
relaxation.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.numerics import dense
from truesim.numerics.cones import AbstractCone, EllipticCone, Slip, to_zero

MAX_ITERATIONS = 50
PATIENCE = 18
"""After so many iterations the search starts again, from farther inside and with shorter steps."""
FARTHER = 1e4
"""How much larger the products are at which it starts again."""
LATE_ITERATIONS = 8
"""So many Newton steps at the final barrier are made before rounding is blamed."""
CENTRED = 1e-14
"""Products are equal to the barrier up to this part of the energy of their rows; float64 allows no less."""
NEAR = 10.0
"""Products within this multiple of the barrier are as good as solved."""
BALANCED, TOLERATED = 1e-13, 1e-9
"""Part of the largest impulse by which the balance of momentum may be off: what is aimed at, and what will do."""
BOUNDARY, CAREFUL = 0.99, 0.9
"""Part of the way to the boundary that a step may go, at first and after starting again."""
LEAST_REDUCTION = 0.01
"""A step aims at no less than this part of the products."""
DRY: AbstractCone = EllipticCone()
"""The cone of a single direction, of dry friction."""


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


class Solution(NamedTuple):
    """The solution, and how it was reached."""

    point: Point
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


Step = Callable[[Point], Point]
"""The step that makes these residuals zero, to first order."""


def search(problem: Problem, cone: AbstractCone) -> Solution:
    """The solution by iteration; no derivative passes through it, see `newton`."""
    problem = jax.lax.stop_gradient(problem)

    def unfinished(carry: tuple) -> Array:
        _, done, count, late = carry
        return ~done & (count < MAX_ITERATIONS) & (late < LATE_ITERATIONS)

    def iterate(carry: tuple) -> tuple:
        point, _, count, late = carry
        again = (count == PATIENCE) & (late == 0)
        point = jax.tree.map(lambda x, y: jnp.where(again, x, y), inside, point)
        point = _advance(problem, cone, point, jnp.where(count < PATIENCE, BOUNDARY, CAREFUL))
        products = _mean_product(problem, cone, point)
        done = _balanced(problem, cone, point, BALANCED) & _centred(problem, cone, point)
        return point, done, count + 1, late + (products < NEAR * problem.barrier).astype(jnp.int32)

    zero = jnp.zeros((), jnp.int32)
    inside = start(problem, cone, FARTHER)
    carry = (start(problem, cone), jnp.zeros((), bool), zero, zero)
    point, done, count, _ = jax.lax.while_loop(unfinished, iterate, carry)
    near = _mean_product(problem, cone, point) < NEAR * problem.barrier
    return Solution(point, count, done | (near & _balanced(problem, cone, point, TOLERATED)))


def start(problem: Problem, cone: AbstractCone, farther: float = 1.0) -> Point:
    """A point inside all constraints: what each row would do by itself, well rounded."""
    v, mass, speed2 = problem.free, problem.mass, farther * problem.speed2
    gap = problem.normal @ v + problem.offset
    slack = (gap + jnp.sqrt(gap**2 + 4 * speed2)) / 2
    normal = mass * speed2 / slack
    rough = _rough(problem)
    kappa = (mass * speed2)[:rough]
    return Point(
        velocity=v,
        normal=normal,
        slack=slack,
        friction=cone.start(normal[:rough], problem.tangent @ v, kappa),
        dry=DRY.start(jnp.ones_like(problem.dry_energy), _slips(problem, v), farther * problem.dry_energy),
        equal=jnp.zeros_like(problem.target),
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
    v, rough = point.velocity, _rough(problem)
    kappa, dry_kappa = barrier * problem.mass * problem.speed2, barrier * problem.dry_energy
    friction = cone.products(point.friction, point.normal[:rough], problem.tangent @ v)
    dry = DRY.products(point.dry, jnp.ones_like(problem.dry_energy), _slips(problem, v))
    return Point(
        velocity=momentum - impulse(problem, cone, point),
        normal=point.normal * point.slack - kappa,
        slack=point.slack - problem.normal @ v - problem.offset,
        friction=_minus(friction, cone.rounding(kappa[:rough])),
        dry=_minus(dry, DRY.rounding(dry_kappa)),
        equal=problem.equal @ v - problem.target,
    )


def impulse(problem: Problem, cone: AbstractCone, point: Point) -> Float[Array, "n"]:
    """Generalised impulse of all constraints."""
    total = problem.normal.T @ point.normal + problem.equal.T @ point.equal
    total = total + jnp.einsum("cdn,cd->n", problem.tangent, cone.force(point.friction))
    return total + problem.dry.T @ DRY.force(point.dry)[:, 0]


def newton(problem: Problem, cone: AbstractCone, point: Point) -> Step:
    """Newton's step at a point as a linear function of residuals; all impulses are eliminated row by row.

    Equalities have a compliance of `barrier / mass`, which vanishes with their residual.
    """
    rough = _rough(problem)
    slip = point.normal[:rough], problem.tangent @ point.velocity
    dry_slip = jnp.ones_like(problem.dry_energy), _slips(problem, point.velocity)
    stiffness = point.normal / point.slack
    stiff_equal = problem.equal_mass / problem.barrier
    none = _none(problem, point)
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
        dry_change = jnp.zeros_like(problem.dry_energy), _slips(problem, dv)
        return Point(
            velocity=dv,
            normal=dnormal,
            slack=closing - r.slack,
            friction=cone.step(point.friction, slip, r.friction, change, pivot),
            dry=DRY.step(point.dry, dry_slip, r.dry, dry_change, dry_pivot),
            equal=-stiff_equal * (problem.equal @ dv + r.equal),
        )

    return step


def _advance(problem: Problem, cone: AbstractCone, point: Point, boundary: Array) -> Point:
    """One step of Mehrotra's predictor-corrector method; plain Newton once the products are near the barrier."""
    step = newton(problem, cone, point)
    momentum = problem.inertia @ (point.velocity - problem.free)
    products = _mean_product(problem, cone, point)
    aimed_at_zero = residuals(problem, cone, point, jnp.zeros(()), momentum)
    predictor = step(aimed_at_zero)
    length = jnp.minimum(1.0, _reach(problem, cone, point, predictor))
    predicted = _mean_product(problem, cone, _moved(point, predictor, length))
    reduction = jnp.clip(predicted / products, 0.0, 1.0) ** 3
    near = products < NEAR * problem.barrier
    aim = jnp.maximum(problem.barrier, jnp.maximum(reduction, LEAST_REDUCTION) * products)
    aim = jnp.where(near, problem.barrier, aim)
    bent = jnp.where(near, 0.0, length**2)
    rough = _rough(problem)
    friction = cone.corrections(predictor.friction, predictor.normal[:rough], problem.tangent @ predictor.velocity)
    dry = DRY.corrections(predictor.dry, jnp.zeros_like(problem.dry_energy), _slips(problem, predictor.velocity))
    target = residuals(problem, cone, point, aim, momentum)
    target = target._replace(
        normal=target.normal + bent * predictor.normal * predictor.slack,
        friction=jax.tree.map(lambda r, c: r + bent * c, target.friction, friction),
        dry=jax.tree.map(lambda r, c: r + bent * c, target.dry, dry),
    )
    corrector = step(target)
    return _moved(point, corrector, jnp.minimum(1.0, boundary * _reach(problem, cone, point, corrector)))


def _moved(point: Point, step: Point, length: Array) -> Point:
    return jax.tree.map(lambda x, dx: x + length * dx, point, step)


def _reach(problem: Problem, cone: AbstractCone, point: Point, step: Point) -> Float[Array, ""]:
    """How many such steps lead to the boundary of the nearest constraint."""
    rough = _rough(problem)
    state = point.normal[:rough], problem.tangent @ point.velocity
    change = step.normal[:rough], problem.tangent @ step.velocity
    ones = jnp.ones_like(problem.dry_energy)
    dry_state, dry_change = (ones, _slips(problem, point.velocity)), (0 * ones, _slips(problem, step.velocity))
    reaches = [
        to_zero(point.normal, step.normal),
        to_zero(point.slack, step.slack),
        cone.reach(point.friction, state, step.friction, change),
        DRY.reach(point.dry, dry_state, step.dry, dry_change),
    ]
    return jnp.min(jnp.concatenate(reaches), initial=jnp.inf)


def _mean_product(problem: Problem, cone: AbstractCone, point: Point) -> Float[Array, ""]:
    """Mean of the complementary products, in parts of the energy of their rows."""
    at_zero = residuals(problem, cone, point, jnp.zeros(()), jnp.zeros_like(problem.free))
    scale = problem.mass * problem.speed2
    parts = [
        at_zero.normal / scale,
        at_zero.friction.speed / scale[: _rough(problem)],
        at_zero.dry.speed / problem.dry_energy,
    ]
    every = jnp.concatenate(parts)
    return jnp.sum(every) / max(len(every), 1)


def _centred(problem: Problem, cone: AbstractCone, point: Point) -> Bool[Array, ""]:
    """Whether every product equals the barrier."""
    r = residuals(problem, cone, point, problem.barrier, jnp.zeros_like(problem.free))
    energy, rough = problem.mass * problem.speed2, _rough(problem)
    parts = [
        r.normal / energy,
        point.normal * r.slack / energy,
        r.friction.speed / energy[:rough],
        (r.friction.force / energy[:rough][:, None]).reshape(-1),
        r.dry.speed / problem.dry_energy,
        (r.dry.force / problem.dry_energy[:, None]).reshape(-1),
    ]
    return jnp.max(jnp.abs(jnp.concatenate(parts)), initial=0.0) < CENTRED


def _balanced(problem: Problem, cone: AbstractCone, point: Point, tolerance: float) -> Bool[Array, ""]:
    """Whether momentum is balanced and the equalities hold, up to rounding."""
    v = point.velocity
    momentum = problem.inertia @ (v - problem.free)
    off = jnp.abs(momentum - impulse(problem, cone, point))
    size = jnp.abs(problem.inertia) @ (jnp.abs(v) + jnp.abs(problem.free)) + jnp.abs(momentum)
    size = size + jnp.abs(problem.normal).T @ point.normal + jnp.abs(problem.equal).T @ jnp.abs(point.equal)
    opened = jnp.abs(problem.equal @ v - problem.target)
    return jnp.all(off <= tolerance * jnp.max(size)) & jnp.all(opened <= TOLERATED * problem.equal_speed)


def _none(problem: Problem, point: Point) -> Point:
    """Residuals of zero."""
    return jax.tree.map(jnp.zeros_like, point)


def _rough(problem: Problem) -> int:
    """Number of one-sided rows with friction."""
    return problem.tangent.shape[0]


def _slips(problem: Problem, v: Float[Array, "n"]) -> Float[Array, "h 1"]:
    return (problem.dry @ v)[:, None]


def _minus(a: Slip, b: Slip) -> Slip:
    return Slip(a.force - b.force, a.speed - b.speed)
