"""Small dense systems, by elimination written out in array operations.

Sizes are static and small, so the loops unroll: the code compiles to straight-line arithmetic on every backend and
differentiates like any other function. (XLA's LAPACK calls can deadlock when batched on few cores.) There is no
pivoting: matrices are positive definite, or positive definite up to a small unsymmetric part.
"""

import jax.numpy as jnp

from truesim.core.typing import Array, Float


def solve(A: Float[Array, "n n"], b: Float[Array, "n *columns"]) -> Float[Array, "n *columns"]:
    """Solution x of `A x = b`.

    Elimination runs from the last unknown to the first: in a matrix over a tree whose parents come first, entries
    between branches are zero and stay so (Featherstone, section 6.5).
    """
    n = A.shape[0]
    if n <= 1:
        return b / A[0, 0] if n else b
    rows, right = [], []
    for _ in range(n):
        rows.append(A[-1])
        right.append(b[-1])
        factor = A[:-1, -1] / A[-1, -1]
        A, b = A[:-1, :-1] - jnp.outer(factor, A[-1, :-1]), b[:-1] - _outer(factor, b[-1])
    x = right[-1][None] / rows[-1][0]
    for row, value in zip(rows[-2::-1], right[-2::-1], strict=True):
        x = jnp.concatenate([x, (value - jnp.tensordot(row[:-1], x, 1))[None] / row[-1]])
    return x


def _outer(column: Float[Array, "m"], row: Float[Array, "*columns"]) -> Float[Array, "m *columns"]:
    return column.reshape((-1,) + (1,) * row.ndim) * row[None]
