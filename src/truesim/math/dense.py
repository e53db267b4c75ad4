"""Small dense linear systems, solved by elimination in array operations.

Sizes are static and small, so the loops unroll: the code compiles to straight-line arithmetic on every backend and
differentiates like any other function. (XLA's LAPACK calls can deadlock when batched on few cores.) There is no
pivoting: matrices are positive definite, or positive definite up to a small unsymmetric part.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tracing import traced_once
from truesim.core.typing import Array, Float


class EliminationFactors(NamedTuple):
    """Factors of a matrix, eliminated from the last unknown to the first."""

    rows: list[Float[Array, " _"]]
    """Pivot row of each unknown."""
    ratios: list[Float[Array, " _"]]
    """Multiples of the pivot row that were subtracted from the rows above it."""


def solve(A: Float[Array, "n n"], b: Float[Array, " n *columns"]) -> Float[Array, " n *columns"]:
    """Solution x of `A x = b`."""
    return substitute(factor(A), b)


@traced_once
def factor(A: Float[Array, "n n"]) -> EliminationFactors:
    """Factor a matrix, for `substitute` to solve `A x = b` for any b.

    Elimination runs from the last unknown to the first: in a matrix over a tree whose parents come first, entries
    between branches are zero and stay so (Featherstone, section 6.5).
    """
    rows: list[Array] = []
    ratios: list[Array] = []
    A = jnp.asarray(A)
    for _ in range(A.shape[0]):
        rows.append(A[-1])
        ratios.append(A[:-1, -1] / A[-1, -1])
        A = A[:-1, :-1] - jnp.outer(ratios[-1], A[-1, :-1])
    return EliminationFactors(rows, ratios)


@traced_once
def substitute(factors: EliminationFactors, b: Float[Array, " n *columns"]) -> Float[Array, " n *columns"]:
    """Solution x of `A x = b` for a factored A."""
    right = []
    for ratio in factors.ratios:
        right.append(b[-1])
        b = b[:-1] - _outer(ratio, b[-1])
    x = b[:0]
    for row, value in zip(factors.rows[::-1], right[::-1], strict=True):
        x = jnp.concatenate([x, (value - jnp.tensordot(row[:-1], x, 1))[None] / row[-1]])
    return x


def _outer(column: Float[Array, " m"], row: Float[Array, "*columns"] | np.floating) -> Float[Array, " m *columns"]:
    return column.reshape((-1,) + (1,) * row.ndim) * row[None]  # type: ignore[index]  # NumPy scalars are indexable by None


def solve_in_loop(A: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solution x of `A x = b` by elimination in a loop: compiles in no time for any size; no reverse derivative."""
    n = A.shape[0]
    whole = jnp.concatenate([A, b[:, None]], axis=1)

    def eliminate(k: Array, whole: Array) -> Array:
        row = whole[k] / whole[k, k]
        others = jnp.where(jnp.arange(n) == k, 0.0, whole[:, k])
        return jnp.asarray(whole - others[:, None] * row[None]).at[k].set(row)

    return jax.lax.fori_loop(0, n, eliminate, whole)[:, -1]
