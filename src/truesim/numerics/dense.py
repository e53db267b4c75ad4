"""Small dense systems, by elimination written out in array operations.

Sizes are static and small, so the loops unroll: the code compiles to straight-line arithmetic on every backend and
differentiates like any other function. (XLA's LAPACK calls can deadlock when batched on few cores.) There is no
pivoting: matrices are positive definite, or positive definite up to a small unsymmetric part.
"""

from typing import NamedTuple

import jax.numpy as jnp

from truesim.core.typing import Array, Float


class Factors(NamedTuple):
    """A matrix after elimination, from the last unknown to the first."""

    rows: list[Float[Array, "_"]]
    """Row of each unknown when its turn came."""
    ratios: list[Float[Array, "_"]]
    """What was taken from the rows of the unknowns before it, in parts of that row."""


def solve(A: Float[Array, "n n"], b: Float[Array, "n *columns"]) -> Float[Array, "n *columns"]:
    """Solution x of `A x = b`."""
    return substitute(factor(A), b)


def factor(A: Float[Array, "n n"]) -> Factors:
    """The factors with which `substitute` solves `A x = b` for any b.

    Elimination runs from the last unknown to the first: in a matrix over a tree whose parents come first, entries
    between branches are zero and stay so (Featherstone, section 6.5).
    """
    rows, ratios = [], []
    for _ in range(A.shape[0]):
        rows.append(A[-1])
        ratios.append(A[:-1, -1] / A[-1, -1])
        A = A[:-1, :-1] - jnp.outer(ratios[-1], A[-1, :-1])
    return Factors(rows, ratios)


def substitute(factors: Factors, b: Float[Array, "n *columns"]) -> Float[Array, "n *columns"]:
    """Solution x of `A x = b`."""
    right = []
    for ratio in factors.ratios:
        right.append(b[-1])
        b = b[:-1] - _outer(ratio, b[-1])
    x = b[:0]
    for row, value in zip(factors.rows[::-1], right[::-1], strict=True):
        x = jnp.concatenate([x, (value - jnp.tensordot(row[:-1], x, 1))[None] / row[-1]])
    return x


def _outer(column: Float[Array, "m"], row: Float[Array, "*columns"]) -> Float[Array, "m *columns"]:
    return column.reshape((-1,) + (1,) * row.ndim) * row[None]
