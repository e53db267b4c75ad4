"""Small positive definite systems, by elimination written out in array operations.

Sizes are static and small, so the loops unroll: the code compiles to straight-line arithmetic on every backend and
differentiates like any other function. (XLA's LAPACK calls can deadlock when batched on few cores.)
"""

import jax.numpy as jnp

from truesim.core.typing import Array, Float


def factor_positive(A: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Float[Array, "n"]]:
    """Unit lower triangular L and diagonal d with `A = L diag(d) L^T`, for a positive definite A."""
    n = A.shape[0]
    columns, pivots = [], []
    for j in range(n):
        pivots.append(A[0, 0])
        column = A[:, 0] / A[0, 0]
        columns.append(jnp.concatenate([jnp.zeros(j, A.dtype), column]))
        A = A[1:, 1:] - jnp.outer(column[1:], A[0, 1:])
    if n == 0:
        return A, jnp.zeros(0, A.dtype)
    return jnp.stack(columns, axis=1), jnp.stack(pivots)


def solve_factored(
    L: Float[Array, "n n"], d: Float[Array, "n"], b: Float[Array, "n *columns"]
) -> Float[Array, "n *columns"]:
    """Solution x of `L diag(d) L^T x = b`."""
    n = L.shape[0]
    y = b
    for j in range(n):
        y = y.at[j + 1 :].add(-_outer(L[j + 1 :, j], y[j]))
    x = y / d.reshape((n,) + (1,) * (b.ndim - 1))
    for j in reversed(range(n)):
        x = x.at[:j].add(-_outer(L[j, :j], x[j]))
    return x


def solve_positive(A: Float[Array, "n n"], b: Float[Array, "n *columns"]) -> Float[Array, "n *columns"]:
    """Solution x of `A x = b` for a positive definite A."""
    if A.shape[0] <= 1:
        return b / A[0, 0] if A.shape[0] else b
    return solve_factored(*factor_positive(A), b)


def _outer(column: Float[Array, "m"], row: Float[Array, "*columns"]) -> Float[Array, "m *columns"]:
    return column.reshape((-1,) + (1,) * row.ndim) * row
