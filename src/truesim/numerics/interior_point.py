"""The interior-point method: along the central path to the barrier, by Mehrotra's predictor and corrector."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.numerics.central_path import (
    DRY,
    Impulses,
    Point,
    Problem,
    impulse,
    newton,
    residuals,
    resumed,
    rough_rows,
    slips,
    start,
)
from truesim.numerics.cones import AbstractCone, to_zero

MAX_ITERATIONS = 50
HOPEFUL = 8
"""So many iterations are made from known impulses before the search starts without."""
PATIENCE = 18
"""After so many iterations, or when numbers overflow, the search starts again, farther inside and in shorter steps."""
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


Before = tuple[Float[Array, "n"], Impulses]
"""Velocity and impulses."""


class Solution(NamedTuple):
    """The solution, and how it was reached."""

    point: Point
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def search(
    problem: Problem, cone: AbstractCone, before: Before | None = None, skip: Bool[Array, ""] | None = None
) -> Solution:
    """The solution by iteration; no derivative passes through it, see `newton`.

    Args:
        problem: The problem.
        cone: The cone of friction.
        before: Velocity and impulses of a similar problem, to start from; they save iterations and change no result.
        skip: Whether to give up at once, so that a batch of which all do costs nothing.
    """
    skip = jnp.zeros((), bool) if skip is None else skip
    problem, before = jax.lax.stop_gradient((problem, before))

    def unfinished(carry: tuple) -> Array:
        *_, done, count, late = carry
        return ~done & (count < MAX_ITERATIONS) & (late < LATE_ITERATIONS)

    def iterate(carry: tuple) -> tuple:
        point, kept, _, count, late = carry
        point = _where((count == 0) & (late == 0), outset, point)
        lost = ~jnp.isfinite(_mean_product(problem, cone, point)) & (count < PATIENCE)
        point = _where(((count == PATIENCE) & (late == 0)) | lost, inside, point)
        count, late = jnp.where(lost, PATIENCE, count), jnp.where(lost, 0, late)
        point = _advance(problem, cone, point, jnp.where(count < PATIENCE, BOUNDARY, CAREFUL))
        products = _mean_product(problem, cone, point)
        done = _balanced(problem, cone, point, BALANCED) & _centred(problem, cone, point)
        near = products < NEAR * problem.barrier
        return point, _where(near, point, kept), done, count + 1, late + near.astype(jnp.int32)

    zero = jnp.zeros((), jnp.int32)
    outset, inside = start(problem, cone), start(problem, cone, FARTHER)
    first, begin = outset, zero
    if before is not None:
        known = jnp.all(before[1].normal > 0)
        first = _where(known, resumed(problem, cone, *before), outset)
        begin = jnp.where(known, jnp.int32(-HOPEFUL), zero)
    point, kept, done, count, _ = jax.lax.while_loop(unfinished, iterate, (first, first, skip, begin, zero))
    sound = jnp.isfinite(_mean_product(problem, cone, point))  # else rounding has put it on a boundary in the end
    point = _where(sound, point, kept)
    near = _mean_product(problem, cone, point) < NEAR * problem.barrier
    converged = ~skip & (done | (near & _balanced(problem, cone, point, TOLERATED)))
    return Solution(point, count - begin, converged)


def _where(condition: Array, first: Point, second: Point) -> Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), first, second)


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
    rough = rough_rows(problem)
    friction = cone.corrections(predictor.friction, predictor.normal[:rough], problem.tangent @ predictor.velocity)
    dry = DRY.corrections(predictor.dry, jnp.zeros_like(problem.dry_energy), slips(problem, predictor.velocity))
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
    rough = rough_rows(problem)
    state = point.normal[:rough], problem.tangent @ point.velocity
    change = step.normal[:rough], problem.tangent @ step.velocity
    ones = jnp.ones_like(problem.dry_energy)
    dry_state, dry_change = (ones, slips(problem, point.velocity)), (0 * ones, slips(problem, step.velocity))
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
        at_zero.friction.speed / scale[: rough_rows(problem)],
        at_zero.dry.speed / problem.dry_energy,
    ]
    every = jnp.concatenate(parts)
    return jnp.sum(every) / max(len(every), 1)


def _centred(problem: Problem, cone: AbstractCone, point: Point) -> Bool[Array, ""]:
    """Whether every product equals the barrier."""
    r = residuals(problem, cone, point, problem.barrier, jnp.zeros_like(problem.free))
    energy, rough = problem.mass * problem.speed2, rough_rows(problem)
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
