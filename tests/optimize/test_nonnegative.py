"""Least squares without negative unknowns, against SciPy."""

import numpy as np
import pytest
from scipy.optimize import nnls

from truesim.optimize.nonnegative import nonnegative_least_squares


@pytest.mark.parametrize("seed", range(12))
def test_solution_is_scipys(seed):
    """Random problems, of which a part of the unknowns is zero; also correlated columns, as of noise with memory."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        A = np.exp(-np.arange(12)[:, None] / 2.0 ** np.arange(5)) * rng.uniform(0.5, 1.0, (12, 1))
    else:
        A = rng.normal(size=(rng.integers(5, 20), rng.integers(1, 9)))
    b = A @ np.maximum(rng.normal(size=A.shape[1]), 0) + 0.1 * rng.normal(size=len(A))
    np.testing.assert_allclose(nonnegative_least_squares(A, b), nnls(A, b)[0], rtol=1e-8, atol=1e-10)


def test_zero_where_nothing_helps():
    """Columns that only raise the cost, a zero right side, and a repeated column."""
    A = np.array([[1.0, 2.0, 2.0], [0.5, 1.0, 1.0]])
    np.testing.assert_array_equal(nonnegative_least_squares(A, -np.ones(2)), np.zeros(3))
    np.testing.assert_array_equal(nonnegative_least_squares(A, np.zeros(2)), np.zeros(3))
    found = nonnegative_least_squares(A, np.array([4.0, 2.0]))
    assert found.min() >= 0
    np.testing.assert_allclose(A @ found, [4.0, 2.0])
