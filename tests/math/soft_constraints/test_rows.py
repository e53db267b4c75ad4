"""The solver of soft constraints against its optimality conditions, a bounded least-squares solver and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from tests.evaluation import compiled, evaluate
from truesim.math import dense
from truesim.math.soft_constraints.rows import MAX_NEWTON_ITERATIONS, SoftConstraints, forces_at, hessian, solve

N, ROWS = 4, 6
PROBLEMS = 300


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, SoftConstraints]:
    """Friction, limits and equalities on random rows; every third has repeated rows, every fifth is very stiff."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(N, N))
    J = rng.normal(size=(ROWS, N))
    if seed % 3 == 0:
        J[1], J[3] = J[0], -J[2]
    if seed % 4 == 0:
        J[:N] = np.eye(N)  # joint constraints
    stiffness = 10.0 ** rng.uniform(-1, 6 if seed % 5 == 0 else 3, ROWS)
    stiffness[rng.random(ROWS) < 0.2] = 0.0  # a limit that is not reached
    kind = rng.integers(0, 3, ROWS)
    bound = rng.uniform(0.01, 3, ROWS)
    low = np.choose(kind, [-bound, np.zeros(ROWS), np.full(ROWS, -np.inf)])
    high = np.choose(kind, [bound, np.full(ROWS, np.inf), np.full(ROWS, np.inf)])
    return (
        A @ A.T + 0.1 * np.eye(N),
        rng.normal(size=N) * 5,
        SoftConstraints(J, rng.normal(size=ROWS), stiffness, low, high),
    )


@pytest.fixture(scope="module")
def solved():
    """All problems, solved in one batch, which takes as long as the slowest."""
    problems = [problem(seed) for seed in range(PROBLEMS)]
    stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)
    solutions = compiled(jax.vmap(solve), *stacked)(*stacked)
    return problems, [jax.tree.map(lambda x, i=i: np.asarray(x[i]), solutions) for i in range(PROBLEMS)]


def test_always_converges(solved):
    """Every problem, degenerate ones included, ends well before the limit of iterations."""
    assert all(s.converged for s in solved[1])
    assert max(int(s.iterations) for s in solved[1]) < MAX_NEWTON_ITERATIONS / 2


def test_optimality_conditions(solved):
    """`M a = b + J^T f` with every force the clipped pull of its row: the conditions of a convex optimum."""
    for (M, b, rows), s in zip(*solved, strict=True):
        size = np.max(np.abs(M) @ np.abs(s.a) + np.abs(b) + np.abs(rows.J.T) @ np.abs(s.forces))
        condition = 1 + np.max(rows.stiffness) * np.max(np.abs(rows.J)) ** 2 / np.linalg.eigvalsh(M)[0]
        assert np.max(np.abs(M @ s.a - b - rows.J.T @ s.forces)) < 1e-14 * condition * size
        pull = np.clip(-rows.stiffness * (rows.J @ s.a - rows.reference), rows.low, rows.high)
        assert np.max(np.abs(pull - s.forces)) < 1e-13 * condition * max(1.0, np.max(np.abs(s.forces)))


def test_forces_are_those_of_the_dual_problem(solved):
    """Bounded least squares on the dual, `min 1/2 f'(J M^-1 J' + 1/D) f + f'(J a0 - ref)`, finds the same forces."""
    for (M, b, rows), s in list(zip(*solved, strict=True))[:60]:
        active = rows.stiffness > 0
        J, D = rows.J[active], rows.stiffness[active]
        A = J @ np.linalg.solve(M, J.T) + np.diag(1 / D)
        C = np.linalg.cholesky(A).T
        target = -np.linalg.solve(C.T, J @ np.linalg.solve(M, b) - rows.reference[active])
        dual = lsq_linear(C, target, (rows.low[active], rows.high[active]), tol=1e-14, method="bvls").x
        np.testing.assert_allclose(s.forces[active], dual, rtol=1e-6, atol=1e-7)  # what the reference solver reaches
        np.testing.assert_array_equal(s.forces[~active], 0)


def test_the_active_set_gives_the_solution(solved):
    """With the active set known, `hessian` and `forces_at` give the solution as one linear system."""
    batch = [jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *solved[k]) for k in (0, 1)]

    def linear(M, b, rows, sides):
        a = dense.solve(hessian(M, rows, sides), b + rows.J.T @ forces_at(rows, jnp.zeros_like(b), sides))
        return a, forces_at(rows, a, sides)

    a, forces = evaluate(jax.vmap(linear), *batch[0], batch[1].sides)
    for k, (_, _, rows) in enumerate(solved[0]):
        s, size = solved[1][k], 1 + np.max(np.abs(solved[1][k].a))
        np.testing.assert_allclose(a[k], s.a, atol=1e-8 * size)
        assert np.all(np.abs(forces[k] - s.forces) <= 1e-8 * (1 + rows.stiffness) * size)


def test_derivatives():
    """Derivatives at a fixed active set, as the joint model takes them, are central differences of the solution."""

    def along(t, M, b, rows, dM, db, drows):
        moved = jax.tree.map(lambda x, dx: x + t * dx, rows, drows)
        return M + t * dM, b + t * db, moved

    def implicit(*arguments):
        s = solve(*along(0.0, *arguments))

        def balance(t):
            M, b, rows = along(t, *arguments)
            return b - M @ s.a + rows.J.T @ forces_at(rows, s.a, s.sides)

        da = dense.solve(hessian(*arguments[:1], arguments[2], s.sides), jax.jvp(balance, (0.0,), (1.0,))[1])
        df = jax.jvp(lambda t, a: forces_at(along(t, *arguments)[2], a, s.sides), (0.0, s.a), (1.0, da))[1]
        return jnp.concatenate([da, df])

    def both(*arguments):
        h = 1e-6
        ends = [solve(*along(t, *arguments)) for t in (h, -h)]
        central = [(x - y) / (2 * h) for x, y in zip(ends[0][:2], ends[1][:2], strict=True)]
        return implicit(*arguments), jnp.concatenate(central)

    arguments = []
    for seed in (s for s in range(1, 40, 2) if s % 5):  # differences of the very stiff ones are all rounding
        M, b, rows = problem(seed)
        rng = np.random.default_rng(seed)
        dM = rng.normal(size=(N, N))
        still = SoftConstraints(*(rng.normal(size=np.shape(x)) for x in rows))
        still = still._replace(stiffness=rows.stiffness * still.stiffness)
        still = still._replace(low=np.where(np.isfinite(rows.low), still.low, 0) * (rows.low < 0))
        still = still._replace(high=np.where(np.isfinite(rows.high), still.high, 0))
        arguments.append((M, b, rows, dM + dM.T, rng.normal(size=N), still))
    stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *arguments)
    forward, central = compiled(jax.vmap(both), *stacked)(*stacked)
    scale = np.maximum(1.0, np.abs(central).max(axis=1, keepdims=True))
    np.testing.assert_allclose(np.asarray(forward) / scale, np.asarray(central) / scale, atol=1e-6)


def test_no_derivative_passes_through_the_solver():
    """Newton's iteration is not differentiated: callers differentiate the balance at its solution."""
    M, b, rows = problem(1)
    change = evaluate(lambda M, b, rows: jax.jvp(lambda b: solve(M, b, rows).a, (b,), (b,))[1], M, b, rows)
    np.testing.assert_array_equal(change, 0)


def test_without_pull_nothing_happens():
    """No stiffness means no force, and the free solution."""
    M, b, rows = problem(1)
    s = evaluate(solve, M, b, rows._replace(stiffness=np.zeros(ROWS)))
    np.testing.assert_array_equal(s.forces, 0)
    np.testing.assert_allclose(s.a, np.linalg.solve(M, b), rtol=1e-12)
