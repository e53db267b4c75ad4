"""Active-set wrapper of the interior-point solver: solves with as few unilateral constraints as possible.

Most constraints of most steps belong to bodies that are far apart, and constraints between branches of a tree fill its
mass matrix. The solver therefore tries the free velocity, then a subset of the constraints, then all. A constraint is
left out only if its impulse at the barrier is negligible at the solution, so that the result does not depend on the
subset.
"""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Bool, Float
from truesim.math.interior_point import central_path
from truesim.math.interior_point import solver as interior_point
from truesim.math.interior_point.central_path import ConeProblem, Iterate
from truesim.math.interior_point.cones import AbstractCone, Slip
from truesim.math.interior_point.energy_bound import bound_energy
from truesim.math.interior_point.solver import ConeSolution, WarmStart

NEGLIGIBLE_IMPULSE = 1e-9
"""Largest impulse of a constraint that is left out, relative to its mass times speed."""


def solve(
    problem: ConeProblem,
    cone: AbstractCone,
    subset: np.ndarray,
    warm_start: WarmStart | None = None,
    skip: Bool[Array, ""] | None = None,
) -> ConeSolution:
    """Solve a rigid-contact problem by iteration; no derivative passes through it.

    The solution is finite and obeys the energy bound even where it has not converged; see `energy_bound`.

    Args:
        problem: The problem with all constraints.
        cone: The friction cone.
        subset: Indices of the unilateral constraints that are tried first; it pays if they keep the inertia sparse.
        warm_start: Velocity and impulses of a similar problem.
        skip: Return at once the starting point of each constraint by itself.
    """
    problem = jax.lax.stop_gradient(problem)
    others = np.setdiff1d(np.arange(len(problem.offset)), subset)
    has_others = len(problem.joint_friction_energy) + len(problem.target) > 0
    others_clear = _is_clear(problem, problem.free, others)
    skip = jnp.zeros((), bool) if skip is None else skip
    holds = skip if has_others else skip | (others_clear & _is_clear(problem, problem.free, subset))
    solution = ConeSolution(_alone(problem, cone, problem.free), jnp.zeros((), jnp.int32), holds)
    if others.size and (subset.size or has_others):
        tried = _solve_subset(problem, cone, subset, warm_start, holds | ~others_clear)
        clear = _is_clear(problem, tried.point.velocity, others)
        solution = _either(solution, tried._replace(converged=tried.converged & clear))
    solution = _either(solution, interior_point.solve(problem, cone, warm_start, solution.converged))
    return bound_energy(problem, cone, solution)


def _solve_subset(
    problem: ConeProblem, cone: AbstractCone, subset: np.ndarray, warm_start: WarmStart | None, skip: Array
) -> ConeSolution:
    """Solution with a subset of the unilateral constraints."""
    with_friction = subset[subset < problem.tangent.shape[0]]
    if warm_start is not None:
        known = warm_start[1]
        warm_start = warm_start[0], known._replace(normal=known.normal[subset], friction=known.friction[with_friction])
    found = interior_point.solve(_restrict(problem, subset), cone, warm_start, skip)
    return found._replace(point=_complete(problem, cone, found.point, subset))


def _either(first: ConeSolution, second: ConeSolution) -> ConeSolution:
    """First solution where it converged, else the second."""
    chosen = jax.tree.map(lambda x, y: jnp.where(first.converged, x, y), first, second)
    return chosen._replace(iterations=first.iterations + second.iterations)


def _is_clear(problem: ConeProblem, v: Float[Array, " n"], rows: np.ndarray) -> Bool[Array, ""]:
    """True if the impulses `barrier mass speed^2 / slack` of these constraints are negligible at a velocity."""
    slack = problem.normal[rows] @ v + problem.offset[rows]
    return jnp.all(NEGLIGIBLE_IMPULSE * slack >= problem.barrier * jnp.sqrt(problem.speed2[rows]))


def _restrict(problem: ConeProblem, rows: np.ndarray) -> ConeProblem:
    """Problem with a subset of the unilateral constraints."""
    with_friction = rows[rows < problem.tangent.shape[0]]
    return problem._replace(
        normal=problem.normal[rows],
        offset=problem.offset[rows],
        tangent=problem.tangent[with_friction],
        mass=problem.mass[rows],
        speed2=problem.speed2[rows],
    )


def _alone(problem: ConeProblem, cone: AbstractCone, v: Float[Array, " n"]) -> Iterate:
    """Every constraint by itself at the barrier."""
    return central_path.start(problem._replace(free=v), cone, problem.barrier)


def _complete(problem: ConeProblem, cone: AbstractCone, point: Iterate, rows: np.ndarray) -> Iterate:
    """Point of the whole problem from one of a subset; the other constraints are at the barrier by themselves."""
    whole = jax.tree.map(jnp.asarray, _alone(problem, cone, point.velocity))
    with_friction = rows[rows < problem.tangent.shape[0]]
    return point._replace(
        normal=whole.normal.at[rows].set(point.normal),
        slack=whole.slack.at[rows].set(point.slack),
        friction=Slip(
            *(all_.at[with_friction].set(own) for all_, own in zip(whole.friction, point.friction, strict=True))
        ),
    )
