"""Interior-point solver: follows the central path to the barrier with Mehrotra's predictor-corrector method."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Bool, Float, Int
from truesim.math.interior_point.central_path import (
    INTERVAL_CONE,
    ConeProblem,
    Impulses,
    Iterate,
    friction_count,
    impulse,
    joint_slip,
    newton,
    residuals,
    resume,
    start,
)
from truesim.math.interior_point.cones import AbstractCone, to_zero

MAX_INTERIOR_POINT_ITERATIONS = 50
"""Maximum iterations after a cold start; larger solves harder problems."""
MAX_WARM_ITERATIONS = 8
"""Maximum warm-started iterations before a cold start."""
RESTART_ITERATION = 18
"""Iteration at which the solver restarts, more central and with shorter steps; overflow restarts at once."""
RESTART_PRODUCT = 1e4
"""Complementary products at a restart, relative to those of a cold start; larger is more central."""
MAX_FINAL_ITERATIONS = 8
"""Maximum Newton steps at the final barrier; beyond them rounding prevents further progress."""
CENTRALITY_TOLERANCE = 1e-14
"""Deviation of the products from the barrier, relative to the energy of each constraint; float64 allows no less.

Other precisions have this and `TARGET_BALANCE` in proportion to their rounding.
"""
FINAL_PHASE_RATIO = 10.0
"""Products below this multiple of the barrier are solved by plain Newton steps."""
TARGET_BALANCE, ACCEPTED_BALANCE = 1e-13, 1e-9
"""Residual of the momentum balance, relative to the largest impulse: aimed at, and accepted as converged."""
LOOSEST_BALANCE = 2e-4
"""Accepted residual of the momentum balance in lower precision."""
LEAST_BARRIER = 1e-6 / float(np.finfo(np.float32).eps)
"""Smallest barrier in units of rounding; a smaller one is lost in the rounding of float32, far from that of float64."""
STEP_TO_BOUNDARY, RESTART_STEP_TO_BOUNDARY = 0.99, 0.9
"""Largest fraction of the way to the boundary in one step: at first, and after a restart."""
MIN_REDUCTION = 0.01
"""Smallest reduction of the products that a step aims at; larger is more cautious."""


WarmStart = tuple[Float[Array, " n"], Impulses]
"""Velocity and impulses of a similar problem."""


class ConeSolution(NamedTuple):
    """Solution with solver diagnostics."""

    point: Iterate
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def solve(
    problem: ConeProblem, cone: AbstractCone, warm_start: WarmStart | None = None, skip: Bool[Array, ""] | None = None
) -> ConeSolution:
    """Solve a rigid-contact problem by iteration; no derivative passes through it, see `newton`.

    Args:
        problem: The problem.
        cone: The friction cone.
        warm_start: Velocity and impulses of a similar problem; saves iterations and changes no result.
        skip: Return at once without converging; a batch in which all elements skip costs nothing.
    """
    skip = jnp.zeros((), bool) if skip is None else skip
    problem, warm_start = jax.lax.stop_gradient((problem, warm_start))
    aimed, accepted = of_precision(TARGET_BALANCE, problem.free.dtype), accepted_balance(problem.free.dtype)

    def unfinished(carry: tuple) -> Array:
        *_, done, count, late = carry
        return ~done & (count < MAX_INTERIOR_POINT_ITERATIONS) & (late < MAX_FINAL_ITERATIONS)

    def iterate(carry: tuple) -> tuple:
        point, kept, _, count, late = carry
        point = _where((count == 0) & (late == 0), cold, point)
        overflowed = ~jnp.isfinite(_mean_product(problem, cone, point)) & (count < RESTART_ITERATION)
        point = _where(((count == RESTART_ITERATION) & (late == 0)) | overflowed, restart, point)
        count, late = jnp.where(overflowed, RESTART_ITERATION, count), jnp.where(overflowed, 0, late)
        point = _advance(
            problem, cone, point, jnp.where(count < RESTART_ITERATION, STEP_TO_BOUNDARY, RESTART_STEP_TO_BOUNDARY)
        )
        products = _mean_product(problem, cone, point)
        done = _is_balanced(problem, cone, point, aimed) & _is_centered(problem, cone, point)
        near = products < FINAL_PHASE_RATIO * problem.barrier
        best = near | (jnp.isfinite(products) & (late == 0))
        return point, _where(best, point, kept), done, count + 1, late + near.astype(jnp.int32)

    zero = jnp.zeros((), jnp.int32)
    cold, restart = start(problem, cone), start(problem, cone, RESTART_PRODUCT)
    first, begin = cold, zero
    if warm_start is not None:
        known = jnp.all(warm_start[1].normal > 0)
        first = _where(known, resume(problem, cone, *warm_start), cold)
        begin = jnp.where(known, jnp.int32(-MAX_WARM_ITERATIONS), zero)
    point, kept, done, count, _ = jax.lax.while_loop(unfinished, iterate, (first, first, skip, begin, zero))
    finite = jnp.isfinite(_mean_product(problem, cone, point))  # otherwise rounding has put the point on a boundary
    point = _where(finite, point, kept)
    near = _mean_product(problem, cone, point) < FINAL_PHASE_RATIO * problem.barrier
    converged = ~skip & (done | (near & _is_balanced(problem, cone, point, accepted)))
    return ConeSolution(point, count - begin, converged)


def of_precision(tolerance: float, dtype: np.dtype) -> float:
    """Tolerance of float64 in proportion to the rounding of another precision."""
    return tolerance * float(np.finfo(dtype).eps / np.finfo(np.float64).eps)


def accepted_balance(dtype: np.dtype) -> float:
    """Residual of the momentum balance, relative to the largest impulse, that counts as converged."""
    return max(ACCEPTED_BALANCE, min(of_precision(ACCEPTED_BALANCE, dtype), LOOSEST_BALANCE))


def least_barrier(dtype: np.dtype) -> float:
    """Smallest barrier that a precision can resolve."""
    return LEAST_BARRIER * float(np.finfo(dtype).eps)


def _where(condition: Array, first: Iterate, second: Iterate) -> Iterate:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), first, second)


def _advance(problem: ConeProblem, cone: AbstractCone, point: Iterate, boundary: Array) -> Iterate:
    """One predictor-corrector step; a plain Newton step once the products are near the barrier."""
    step = newton(problem, cone, point)
    momentum = problem.inertia @ (point.velocity - problem.free)
    products = _mean_product(problem, cone, point)
    aimed_at_zero = residuals(problem, cone, point, jnp.zeros(()), momentum)
    predictor = step(aimed_at_zero)
    length = jnp.minimum(1.0, _reach(problem, cone, point, predictor))
    predicted = _mean_product(problem, cone, _moved(point, predictor, length))
    reduction = jnp.clip(predicted / products, 0.0, 1.0) ** 3
    near = products < FINAL_PHASE_RATIO * problem.barrier
    aim = jnp.maximum(problem.barrier, jnp.maximum(reduction, MIN_REDUCTION) * products)
    aim = jnp.where(near, problem.barrier, aim)
    bent = jnp.where(near, 0.0, length**2)
    count = friction_count(problem)
    friction = cone.corrections(predictor.friction, predictor.normal[:count], problem.tangent @ predictor.velocity)
    joint = INTERVAL_CONE.corrections(
        predictor.joint_friction, jnp.zeros_like(problem.joint_friction_energy), joint_slip(problem, predictor.velocity)
    )
    target = residuals(problem, cone, point, aim, momentum)
    target = target._replace(
        normal=target.normal + bent * predictor.normal * predictor.slack,
        friction=jax.tree.map(lambda r, c: r + bent * c, target.friction, friction),
        joint_friction=jax.tree.map(lambda r, c: r + bent * c, target.joint_friction, joint),
    )
    corrector = step(target)
    return _moved(point, corrector, jnp.minimum(1.0, boundary * _reach(problem, cone, point, corrector)))


def _moved(point: Iterate, step: Iterate, length: Array) -> Iterate:
    return jax.tree.map(lambda x, dx: x + length * dx, point, step)


def _reach(problem: ConeProblem, cone: AbstractCone, point: Iterate, step: Iterate) -> Float[Array, ""]:
    """Number of such steps to the boundary of the nearest constraint."""
    count = friction_count(problem)
    state = point.normal[:count], problem.tangent @ point.velocity
    change = step.normal[:count], problem.tangent @ step.velocity
    ones = jnp.ones_like(problem.joint_friction_energy)
    joint_state, joint_change = (
        (ones, joint_slip(problem, point.velocity)),
        (0 * ones, joint_slip(problem, step.velocity)),
    )
    reaches = [
        to_zero(point.normal, step.normal),
        to_zero(point.slack, step.slack),
        cone.reach(point.friction, state, step.friction, change),
        INTERVAL_CONE.reach(point.joint_friction, joint_state, step.joint_friction, joint_change),
    ]
    return jnp.min(jnp.concatenate(reaches), initial=jnp.inf)


def _mean_product(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> Float[Array, ""]:
    """Mean of the complementary products, relative to the energy of their constraints."""
    at_zero = residuals(problem, cone, point, jnp.zeros(()), jnp.zeros_like(problem.free))
    scale = problem.mass * problem.speed2
    parts = [
        at_zero.normal / scale,
        at_zero.friction.speed / scale[: friction_count(problem)],
        at_zero.joint_friction.speed / problem.joint_friction_energy,
    ]
    every = jnp.concatenate(parts)
    return jnp.sum(every) / max(len(every), 1)


def _is_centered(problem: ConeProblem, cone: AbstractCone, point: Iterate) -> Bool[Array, ""]:
    """True if every product equals the barrier."""
    r = residuals(problem, cone, point, problem.barrier, jnp.zeros_like(problem.free))
    energy, count = problem.mass * problem.speed2, friction_count(problem)
    parts = [
        r.normal / energy,
        point.normal * r.slack / energy,
        r.friction.speed / energy[:count],
        (r.friction.force / energy[:count][:, None]).reshape(-1),
        r.joint_friction.speed / problem.joint_friction_energy,
        (r.joint_friction.force / problem.joint_friction_energy[:, None]).reshape(-1),
    ]
    return jnp.max(jnp.abs(jnp.concatenate(parts)), initial=0.0) < of_precision(CENTRALITY_TOLERANCE, energy.dtype)


def _is_balanced(problem: ConeProblem, cone: AbstractCone, point: Iterate, tolerance: float) -> Bool[Array, ""]:
    """True if momentum is balanced and the equality constraints hold, up to a tolerance."""
    v = point.velocity
    momentum = problem.inertia @ (v - problem.free)
    off = jnp.abs(momentum - impulse(problem, cone, point))
    size = jnp.abs(problem.inertia) @ (jnp.abs(v) + jnp.abs(problem.free)) + jnp.abs(momentum)
    size = size + jnp.abs(problem.normal).T @ point.normal + jnp.abs(problem.equality).T @ jnp.abs(point.equality)
    opened = jnp.abs(problem.equality @ v - problem.target)
    return jnp.all(off <= tolerance * jnp.max(size)) & jnp.all(
        opened <= accepted_balance(v.dtype) * problem.equality_speed
    )
