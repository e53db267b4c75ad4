"""Chains with a border against a dense solve of the same system."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truesim.optimize.bordered import Chains, eliminate


def system(w: int, m: int, n: int, p: int, lengths: list[int], seed: int = 0):
    """A random positive definite system as chains, and as one dense matrix; chains end where `lengths` says."""
    rng = np.random.default_rng(seed)
    used = np.arange(m) < np.array(lengths)[:, None]
    joined = used & np.append(used[:, 1:], np.zeros((w, 1), bool), axis=1)
    E = rng.normal(size=(w, m, n, n)) * joined[..., None, None]
    F = rng.normal(size=(w, m, n, p)) * used[..., None, None]
    A = rng.normal(size=(w, m, n, n))
    heavy = 4.0 * (n + p) * w * m * np.eye(n)
    D = np.where(used[..., None, None], A @ A.transpose(0, 1, 3, 2) + heavy, np.eye(n))
    g = rng.normal(size=(w, m, n)) * used[..., None]
    B = rng.normal(size=(p, p))
    C, h = B @ B.T + 4.0 * (n + p) * w * m * np.eye(p), rng.normal(size=p)
    size = w * m * n
    H = np.zeros((size + p, size + p))
    for i in range(w):
        for j in range(m):
            at = (i * m + j) * n
            H[at : at + n, at : at + n] = D[i, j]
            H[at : at + n, size:] = F[i, j]
            if j + 1 < m:
                H[at : at + n, at + n : at + 2 * n] = E[i, j]
    H[size:, size:] = C
    dense = np.triu(H) + np.triu(H, 1).T
    return Chains(D, E, F, g), C, h, dense


shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))


@given(shapes, st.data(), st.integers(0, 2**31 - 1))
def test_solution_is_that_of_the_whole_matrix(shape, data, seed):
    """Border and chains, of all lengths; places beyond a chain's end stay zero."""
    w, m, n, p = shape
    lengths = data.draw(st.lists(st.integers(1, m), min_size=w, max_size=w))
    chains, C, h, dense = system(w, m, n, p, lengths, seed)
    whole = np.linalg.solve(dense, -np.concatenate([chains.gradient.ravel(), h]))
    reduced = eliminate(chains, C, h)
    y = np.linalg.solve(reduced.corner, -reduced.gradient)
    np.testing.assert_allclose(y, whole[-p:], rtol=1e-9, atol=1e-13)
    x = reduced.chains(y)
    np.testing.assert_allclose(x.ravel(), whole[:-p], rtol=1e-9, atol=1e-13)
    beyond = np.arange(m) >= np.array(lengths)[:, None]
    assert not np.any(x[beyond])


def test_corner_is_the_inverse_of_the_borders_covariance():
    """Eliminating the chains leaves the Schur complement."""
    chains, C, h, dense = system(3, 4, 2, 3, [4, 2, 1])
    covariance = np.linalg.inv(dense)[-3:, -3:]
    np.testing.assert_allclose(eliminate(chains, C, h).corner, np.linalg.inv(covariance), rtol=1e-9, atol=1e-9)


def test_sensitivity_is_the_derivative_of_the_chains():
    """The chains are linear in the border, so that differences are exact."""
    chains, C, h, _ = system(2, 3, 2, 3, [3, 2])
    reduced = eliminate(chains, C, h)
    X, base = reduced.sensitivity(), reduced.chains(np.zeros(3))
    for k, direction in enumerate(np.eye(3)):
        np.testing.assert_allclose(reduced.chains(direction) - base, X[..., k], rtol=1e-9, atol=1e-13)


def test_elimination_leaves_its_input_alone():
    """The same blocks are damped and solved again."""
    chains, C, h, _ = system(2, 3, 2, 2, [3, 3])
    before = [block.copy() for block in (*chains, C, h)]
    eliminate(chains, C, h).sensitivity()
    for old, new in zip(before, (*chains, C, h), strict=True):
        np.testing.assert_array_equal(old, new)


def test_nothing_in_the_border():
    """Chains alone solve too."""
    chains, C, h, dense = system(2, 3, 2, 1, [3, 2])
    bare = chains._replace(border=chains.border[..., :0])
    x = eliminate(bare, C[:0, :0], h[:0]).chains(np.zeros(0))
    np.testing.assert_allclose(x.ravel(), np.linalg.solve(dense[:-1, :-1], -chains.gradient.ravel()), rtol=1e-9)


def test_unknown_directions_stay_zero():
    """A block that knows nothing of one of its numbers is no error."""
    chains, C, h, _ = system(2, 3, 3, 2, [3, 3])
    blind = np.diag([1.0, 1.0, 0.0])
    parts = chains.diagonal, chains.coupling, chains.border, chains.gradient
    D, E, F, g = (blind @ x if x.ndim == 4 else x @ blind for x in parts)
    D, E = D @ blind, E @ blind
    reduced = eliminate(Chains(D, E, F, g), C, h)
    x = reduced.chains(np.linalg.solve(reduced.corner, -reduced.gradient))
    assert np.isfinite(x).all()
    assert not x[..., 2].any()
    small = [np.ascontiguousarray(a[..., :2, :2]) for a in (D, E)]
    known = eliminate(Chains(*small, np.ascontiguousarray(F[..., :2, :]), np.ascontiguousarray(g[..., :2])), C, h)
    np.testing.assert_allclose(reduced.corner, known.corner, rtol=1e-9)
