"""Elimination without pivoting against LAPACK."""

import jax
import numpy as np
import pytest

from tests.evaluation import evaluate
from truesim.math import dense


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    """A random matrix with condition number below some hundred."""
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("columns", [(), (4,), (0,)], ids=["vector", "matrix", "no columns"])
def test_solution_is_lapacks(n, columns):
    """Vectors and matrices on the right, of any width."""
    A, b = positive_definite(n), np.random.default_rng(1).normal(size=(n, *columns))
    np.testing.assert_allclose(evaluate(dense.solve, A, b), np.linalg.solve(A, b), rtol=1e-12, atol=1e-13)


def test_slightly_unsymmetric_matrices():
    """The derivative of Coriolis forces makes the matrix of implicit integrators unsymmetric."""
    A = positive_definite(5) + 0.5 * np.random.default_rng(2).normal(size=(5, 5))
    b = np.arange(5.0)
    np.testing.assert_allclose(evaluate(dense.solve, A, b), np.linalg.solve(A, b), rtol=1e-12)


def test_no_unknowns():
    """Nothing to solve gives nothing."""
    assert dense.solve(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    assert dense.solve(np.zeros((0, 0)), np.zeros((0, 6))).shape == (0, 6)


def test_derivative():
    """The derivative is `-A^-1 dA x`."""
    A, b, dA = positive_definite(3), np.arange(3.0), np.random.default_rng(3).normal(size=(3, 3))
    x, dx = evaluate(lambda A, dA: jax.jvp(lambda A: dense.solve(A, b), (A,), (dA,)), A, dA)
    np.testing.assert_allclose(dx, -np.linalg.solve(A, dA @ x), rtol=1e-12)
