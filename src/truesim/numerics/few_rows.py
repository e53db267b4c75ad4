"""The search of `interior_point` with as few rows as possible: rows that stay clear take no part in it.

Most rows of most steps belong to bodies that are far from each other, and rows that join branches of a tree fill its
matrix. So the free velocity is tried first, then a few rows, then all. A row is left out only if its impulse at the
barrier is negligible at the velocity that is found, so that the answer does not depend on what was tried.
"""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Bool, Float
from truesim.numerics import central_path, interior_point
from truesim.numerics.central_path import Point, Problem
from truesim.numerics.cones import AbstractCone, Slip
from truesim.numerics.interior_point import Before, Solution

NEGLIGIBLE = 1e-9
"""Impulse of a row that is left out, at most, in parts of its mass times speed."""


def search(
    problem: Problem,
    cone: AbstractCone,
    few: np.ndarray,
    before: Before | None = None,
    skip: Bool[Array, ""] | None = None,
) -> Solution:
    """The solution by iteration; no derivative passes through it.

    Args:
        problem: All rows.
        cone: The cone of friction.
        few: Indices of the one-sided rows that are tried before all; it pays if they leave most zeros of the inertia.
        before: Velocity and impulses of a similar problem, to start from.
        skip: Whether to return at once what each row would do by itself.
    """
    problem = jax.lax.stop_gradient(problem)
    others = np.setdiff1d(np.arange(len(problem.offset)), few)
    always = len(problem.dry_energy) + len(problem.target) > 0
    clear_of_others = _clear(problem, problem.free, others)
    skip = jnp.zeros((), bool) if skip is None else skip
    holds = skip if always else skip | (clear_of_others & _clear(problem, problem.free, few))
    solution = Solution(_alone(problem, cone, problem.free), jnp.zeros((), jnp.int32), holds)
    if others.size and (few.size or always):
        tried = _with_few(problem, cone, few, before, holds | ~clear_of_others)
        clear = _clear(problem, tried.point.velocity, others)
        solution = _either(solution, tried._replace(converged=tried.converged & clear))
    return _either(solution, interior_point.search(problem, cone, before, solution.converged))


def _with_few(problem: Problem, cone: AbstractCone, few: np.ndarray, before: Before | None, skip: Array) -> Solution:
    """The solution with these one-sided rows only."""
    rough = few[few < problem.tangent.shape[0]]
    if before is not None:
        known = before[1]
        before = before[0], known._replace(normal=known.normal[few], friction=known.friction[rough])
    found = interior_point.search(_restricted(problem, few), cone, before, skip)
    return found._replace(point=_completed(problem, cone, found.point, few))


def _either(first: Solution, second: Solution) -> Solution:
    """The first where it converged, else the second."""
    chosen = jax.tree.map(lambda x, y: jnp.where(first.converged, x, y), first, second)
    return chosen._replace(iterations=first.iterations + second.iterations)


def _clear(problem: Problem, v: Float[Array, "n"], rows: np.ndarray) -> Bool[Array, ""]:
    """Whether the impulses of these rows are negligible at a velocity: `barrier mass speed^2 / slack`."""
    slack = problem.normal[rows] @ v + problem.offset[rows]
    return jnp.all(NEGLIGIBLE * slack >= problem.barrier * jnp.sqrt(problem.speed2[rows]))


def _restricted(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem with these one-sided rows only."""
    rough = rows[rows < problem.tangent.shape[0]]
    return problem._replace(
        normal=problem.normal[rows],
        offset=problem.offset[rows],
        tangent=problem.tangent[rough],
        mass=problem.mass[rows],
        speed2=problem.speed2[rows],
    )


def _alone(problem: Problem, cone: AbstractCone, v: Float[Array, "n"]) -> Point:
    """Every row at the barrier by itself."""
    return central_path.start(problem._replace(free=v), cone, problem.barrier)


def _completed(problem: Problem, cone: AbstractCone, point: Point, rows: np.ndarray) -> Point:
    """A point of the problem with a few rows as one of the whole: the others are at the barrier by themselves."""
    whole = _alone(problem, cone, point.velocity)
    rough = rows[rows < problem.tangent.shape[0]]
    return point._replace(
        normal=whole.normal.at[rows].set(point.normal),
        slack=whole.slack.at[rows].set(point.slack),
        friction=Slip(*(all_.at[rough].set(own) for all_, own in zip(whole.friction, point.friction, strict=True))),
    )
