"""Small dense linear algebra against XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_agrees, normal
from truesim import native


def _positive(n, seed=0):
    x = normal(seed, 3, n, n)
    return x @ np.swapaxes(x, 1, 2) + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_cholesky(n):
    """Cholesky factors and solves with them agree."""

    def f(a, b):
        factor = jnp.linalg.cholesky(a)
        return factor, jax.scipy.linalg.cho_solve((factor, True), b)

    assert_agrees(f, _positive(n), normal(1, 3, n))


def test_cholesky_of_an_indefinite_matrix_is_nan():
    """A factorization that fails in one lane leaves the other lanes alone."""
    a = _positive(3)
    a[1] = -a[1]
    kernel = native.compile(jnp.linalg.cholesky, a[0])
    factors = kernel(a)
    assert np.isnan(np.tril(factors[1])[np.tril_indices(3)]).all()
    assert np.isfinite(factors[[0, 2]]).all()


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1])
def test_triangular_solve(lower, trans):
    """Triangular systems agree in every orientation."""

    def f(a, b):
        solve = jax.scipy.linalg.solve_triangular
        return solve(a, b, lower=lower, trans=trans), solve(a, b, lower=lower, unit_diagonal=True)

    assert_agrees(f, normal(0, 3, 4, 4) + 3 * np.eye(4), normal(1, 3, 4, 2))


@pytest.mark.parametrize("n", [1, 3, 6])
def test_solve(n):
    """Linear systems, inverses and determinants agree; every lane has its own pivots."""

    def f(a, b):
        return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)

    assert_agrees(f, normal(0, 5, n, n), normal(1, 5, n), scale=100)


def test_gradient_of_a_solve():
    """Derivatives through factorizations agree."""
    f = lambda a, b: jnp.sum(jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b) ** 2)  # noqa: E731
    assert_agrees(jax.grad(f, argnums=(0, 1)), _positive(4), normal(1, 3, 4))
