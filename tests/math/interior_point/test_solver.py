"""The interior-point solver against the conditions of rigid contact with Coulomb friction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import compiled
from tests.math.interior_point.problems import BARRIER, CONTACTS, problem, stack, without_equalities
from truesim.math.interior_point import active_rows, central_path, solver
from truesim.math.interior_point.cones import AbstractCone, EllipticCone, PolyhedralCone

PROBLEMS = 64
CONES = {"elliptic": EllipticCone(), "polyhedral": PolyhedralCone(8)}
EXACT = 1e-10
"""Relative error of the momentum balance and of equality constraints: the solver accepts 1e-9, these are better."""
SMALL = 1e-4
"""Square root of the barrier, with room: distance from complementarity where both numbers of a pair vanish."""


def solve(problem, cone, warm_start=None):
    """Solution of a batch of problems, without the cone in the batch."""
    return jax.vmap(lambda p, w: solver.solve(p, cone, w))(problem, warm_start)


@pytest.fixture(scope="module", params=CONES)
def solved(request) -> tuple[AbstractCone, list, list]:
    """Random problems and their solutions for a cone."""
    cone, problems = CONES[request.param], [problem(seed) for seed in range(PROBLEMS)]
    batch = stack(problems)
    found = compiled(lambda p: solve(p, cone), batch)(batch)
    return cone, problems, [jax.tree.map(lambda x, i=i: np.asarray(x[i]), found) for i in range(PROBLEMS)]


def test_every_problem_converges(solved):
    """Random problems converge, most of them without the restart."""
    iterations = [int(s.iterations) for s in solved[2]]
    assert all(s.converged for s in solved[2])
    assert np.median(iterations) < solver.RESTART_ITERATION


def test_momentum_and_equalities(solved):
    """`M (v - free)` is the sum of all impulses, and `E v = target`."""
    cone, problems, solutions = solved
    for p, s in zip(problems, solutions, strict=True):
        total = np.asarray(central_path.impulse(p, cone, s.point))
        momentum = p.inertia @ (s.point.velocity - p.free)
        assert np.max(np.abs(momentum - total)) < EXACT * np.max(np.abs(p.inertia) @ np.abs(p.free))
        np.testing.assert_allclose(p.equality @ s.point.velocity, p.target, atol=EXACT * p.equality_speed[0])


def test_normal_impulses_are_complementary(solved):
    """Impulses push, nothing closes beyond its gap, and the product of both is the barrier energy."""
    _, problems, solutions = solved
    for p, s in zip(problems, solutions, strict=True):
        gap = p.normal @ s.point.velocity + p.offset
        assert np.all(s.point.normal > 0)
        assert np.all(gap > -SMALL * np.sqrt(p.speed2))
        np.testing.assert_allclose(s.point.normal * s.point.slack, BARRIER * p.mass * p.speed2, rtol=1e-4)
        assert np.all(np.abs(s.point.slack - gap) < 1e-9 * np.sqrt(p.speed2))


def test_friction_is_in_its_cone_and_dissipates_most(solved):
    """`|f| <= bound`, and where a contact slips the force is at the boundary, against the slip."""
    cone, problems, solutions = solved
    sliding = 0
    for p, s in zip(problems, solutions, strict=True):
        force, bound = np.asarray(cone.force(s.point.friction)), s.point.normal[:CONTACTS]
        slip = p.tangent @ s.point.velocity
        assert np.all(np.linalg.norm(force, axis=1) <= bound * (1 + 1e-9))
        for f, g, u in zip(force, bound, slip, strict=True):
            corners = _corners(cone)
            most = -np.linalg.norm(u) if corners is None else np.min(corners @ u)
            loss = f @ u - g * most  # not negative: no force in the cone takes out more power
            assert loss > -1e-9 * (1 + abs(f @ u))
            assert loss < SMALL * (1 + g * np.linalg.norm(u))
            sliding += np.linalg.norm(u) > 0.1 and g > 0.1
    assert sliding > PROBLEMS / 8  # the conditions above are empty at rest


def _corners(cone):
    """Corners of a polyhedral cone; None for a round one."""
    return cone.directions(2) if isinstance(cone, PolyhedralCone) else None


def test_joint_friction_holds_or_opposes(solved):
    """Joint friction stays within its bound; a joint that moves meets the full bound, against its motion."""
    _, problems, solutions = solved
    for p, s in zip(problems, solutions, strict=True):
        share, slip = s.point.joint_friction.force[:, 0], p.joint_friction @ s.point.velocity
        assert np.all(np.abs(share) <= 1 + 1e-9)
        moving = np.abs(slip) > 0.01
        np.testing.assert_allclose(share[moving], -np.sign(slip[moving]), atol=1e-4)
        assert np.all(share * slip <= 1e-4)


def test_a_warm_start_changes_no_result(solved):
    """Impulses of the same problem, or of another one, lead to the same solution as a cold start."""
    cone, problems, solutions = solved
    batch = stack(problems)
    own = stack([(s.point.velocity, central_path.impulses(s.point)) for s in solutions])
    others = jax.tree.map(lambda x: jnp.roll(x, 1, axis=0), own)
    run = compiled(lambda p, w: solve(p, cone, w), batch, own)
    cold = stack([s.point.velocity for s in solutions])
    for start in (own, others):
        warm = run(batch, start)
        assert np.all(warm.converged)
        np.testing.assert_allclose(warm.point.velocity, cold, atol=1e-6)
    saved = np.array([int(s.iterations) for s in solutions]) - np.asarray(run(batch, own).iterations)
    assert np.median(saved) > 0


def test_zero_impulses_are_a_cold_start():
    """Zeros mean that no impulses are known: the iterations are those of a cold start."""
    cone, batch = EllipticCone(), stack([problem(seed) for seed in range(4)])
    cold = compiled(lambda p: solve(p, cone), batch)(batch)
    zeros = jax.tree.map(jnp.zeros_like, (cold.point.velocity, central_path.impulses(cold.point)))
    warm = compiled(lambda p, w: solve(p, cone, w), batch, zeros)(batch, zeros)
    np.testing.assert_array_equal(warm.iterations, cold.iterations)
    np.testing.assert_allclose(warm.point.velocity, cold.point.velocity, atol=1e-9)  # compiled separately


def test_overflow_restarts():
    """A warm start whose numbers overflow ends at the solution of a cold start, and never in NaN."""
    cone, batch = EllipticCone(), stack([problem(seed) for seed in range(4)])
    cold = compiled(lambda p: solve(p, cone), batch)(batch)
    known = central_path.impulses(cold.point)
    start = (cold.point.velocity, known._replace(normal=jnp.full_like(known.normal, 1e300)))
    warm = compiled(lambda p, w: solve(p, cone, w), batch, start)(batch, start)
    assert np.all(warm.converged)
    np.testing.assert_allclose(warm.point.velocity, cold.point.velocity, atol=1e-6)


def test_skip_returns_at_once():
    """A skipped problem takes no iteration and does not count as converged."""
    p = problem(0)
    found = compiled(lambda p: solver.solve(p, EllipticCone(), skip=jnp.ones((), bool)), p)(p)
    assert int(found.iterations) == 0
    assert not found.converged


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_active_set_changes_no_result(offset):
    """Trying a subset of the constraints first gives the solution of the whole problem; far gaps stay out of it."""
    cone, problems = EllipticCone(), []
    for seed in range(16):
        p = problem(seed)
        problems.append(p._replace(offset=p.offset + offset * (np.arange(len(p.offset)) > 1)))
    batch = stack(problems)
    whole = compiled(lambda p: solve(p, cone), batch)(batch)
    subset = np.array([0, 1])
    run = compiled(jax.vmap(lambda p: active_rows.solve(p, cone, subset)), batch)
    found = run(batch)
    assert np.all(found.converged)
    np.testing.assert_allclose(found.point.velocity, whole.point.velocity, atol=1e-6)


@pytest.mark.parametrize("name", CONES)
def test_implicit_derivatives_are_central_differences(name):
    """Newton's step on the derivative of the residuals is the derivative of the solution.

    Without equality constraints, whose compliance in Newton's step is of the size of the barrier.
    """
    cone, direction = CONES[name], np.random.default_rng(1).normal(size=6)
    problems = [without_equalities(problem(seed, barrier=1e-3)) for seed in range(16)]
    batch = stack(problems)

    def solution(p, t):
        return solver.solve(p._replace(free=p.free + t * direction), cone)

    def both(p):
        point = solution(p, 0.0).point

        def residuals(free):
            changed = p._replace(free=free)
            return central_path.residuals(changed, cone, point, p.barrier, p.inertia @ (point.velocity - free))

        change = jax.jvp(residuals, (p.free,), (jnp.asarray(direction),))[1]
        h = 1e-5
        ends = [solution(p, t).point.velocity for t in (h, -h)]
        return central_path.newton(p, cone, point)(change).velocity, (ends[0] - ends[1]) / (2 * h)

    implicit, central = compiled(jax.vmap(both), batch)(batch)
    np.testing.assert_allclose(implicit, central, atol=1e-6 * np.max(np.abs(central)))
