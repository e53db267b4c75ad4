"""Rules of small dense linear algebra: Cholesky, LU and triangular solves, fully unrolled."""

import math
from collections.abc import Callable

import numpy as np

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.types import I32, ScalarType
from truesim.native.lowering.values import Array, Nodes


def _matrices(x: Array) -> Nodes:
    """Trailing matrices of an array, one after the other."""
    return x.nodes().reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def _over_matrices(low: Lowering, x: Array, f: Callable[..., Nodes], *others: Array) -> Array:
    """Apply `f` to the trailing matrices of the operands, for every leading index."""
    stacks = [_matrices(a) for a in (x, *others)]
    results = np.array([f(*matrices) for matrices in zip(*stacks, strict=True)], dtype=np.int64)
    return low.elements(results.reshape(*x.shape[:-2], *results.shape[1:]), x.type)


def _subtract_products(g: Algebra, start: int, left: list[int], right: list[int]) -> int:
    for a, b in zip(left, right, strict=True):
        start = g.sub(start, g.mul(a, b))
    return start


@rule("cholesky")
def _cholesky(low: Lowering, eqn: Equation, x: Array) -> Array:
    g = low.graph

    def factor(a: Nodes) -> Nodes:
        n = len(a)
        lower = np.full((n, n), g.const(0, x.type))
        for j in range(n):
            known = lower[j, :j].tolist()
            pivot = g.apply("sqrt", _subtract_products(g, int(a[j, j]), known, known))
            lower[j, j] = pivot
            for i in range(j + 1, n):
                lower[i, j] = g.div(_subtract_products(g, int(a[i, j]), lower[i, :j].tolist(), known), pivot)
        return lower

    return _nan_where_failed(low, _over_matrices(low, x, factor))


def _nan_where_failed(low: Lowering, factors: Array) -> Array:
    """Matrices, all NaN where the factorization failed, as JAX returns them."""
    g, dtype = low.graph, factors.type

    def mark(matrix: Nodes) -> Nodes:
        last = int(matrix[-1, -1])
        failed = g.compare("ne", last, last)
        nan = g.const(np.nan, dtype)
        size = len(matrix)
        below = np.tril(np.ones((size, size), bool))
        marked = map_nodes(lambda n: g.select(failed, nan, n), matrix)
        return np.where(below, marked, matrix)

    return _over_matrices(low, factors, mark)


@rule("triangular_solve")
def _triangular_solve(low: Lowering, eqn: Equation, a: Array, b: Array) -> Array:
    p, g = eqn.params, low.graph

    def solve(matrix: Nodes, right: Nodes) -> Nodes:
        lower = p["lower"]
        if p["transpose_a"]:
            matrix, lower = matrix.T, not lower
        if not p["left_side"]:
            return _substitute(g, matrix.T, right.T, not lower, p["unit_diagonal"]).T
        return _substitute(g, matrix, right, lower, p["unit_diagonal"])

    pairs = zip(_matrices(a), _matrices(b), strict=True)
    results = np.array([solve(m, r) for m, r in pairs], dtype=np.int64)
    return low.elements(results.reshape(b.shape), b.type)


def _substitute(g: Algebra, a: Nodes, b: Nodes, lower: bool, unit: bool) -> Nodes:
    """Solve the triangular system a x = b."""
    n = len(a)
    x = b.copy()
    order = list(range(n)) if lower else list(range(n))[::-1]
    for position, i in enumerate(order):
        done = order[:position]
        for column in range(b.shape[1]):
            value = _subtract_products(g, int(b[i, column]), a[i, done].tolist(), x[done, column].tolist())
            x[i, column] = value if unit else g.div(value, int(a[i, i]))
    return x


@rule("lu")
def _lu(low: Lowering, eqn: Equation, x: Array) -> list[Array]:
    """LU factors with partial pivoting; each lane chooses its own pivots."""
    pivot_type, permutation_type = (low.type_of(v.aval) for v in eqn.outvars[1:])
    batch, (m, n) = x.shape[:-2], x.shape[-2:]
    parts = [_factor_in_place(low.graph, a.copy(), x.type) for a in _matrices(x)]
    factors, pivots, permutations = (np.array(list(p), dtype=np.int64) for p in zip(*parts, strict=True))
    convert = low.graph.convert
    return [
        low.elements(factors.reshape(x.shape), x.type),
        low.elements(map_nodes(lambda k: convert(k, pivot_type), pivots).reshape(*batch, min(m, n)), pivot_type),
        low.elements(
            map_nodes(lambda k: convert(k, permutation_type), permutations).reshape(*batch, m),
            permutation_type,
        ),
    ]


def _factor_in_place(g: Algebra, a: Nodes, dtype: ScalarType) -> tuple[Nodes, list[int], list[int]]:
    """Factor one matrix in place; return its factors, pivots and permutation."""
    m, n = a.shape
    permutation = [g.const(k, I32) for k in range(m)]
    pivots: list[int] = []
    zero = g.const(0, dtype)
    for k in range(min(m, n)):
        best, where = g.abs(int(a[k, k])), g.const(k, I32)
        for i in range(k + 1, m):
            candidate = g.abs(int(a[i, k]))
            wins = g.compare("gt", candidate, best)
            best, where = g.select(wins, candidate, best), g.select(wins, g.const(i, I32), where)
        pivots.append(where)
        for i in range(k + 1, m):
            here = g.compare("eq", where, g.const(i, I32))
            for j in range(n):
                top, row = int(a[k, j]), int(a[i, j])
                a[k, j], a[i, j] = g.select(here, row, top), g.select(here, top, row)
            top, row = permutation[k], permutation[i]
            permutation[k], permutation[i] = g.select(here, row, top), g.select(here, top, row)
        singular = g.compare("eq", int(a[k, k]), zero)
        for i in range(k + 1, m):
            below = int(a[i, k])
            a[i, k] = g.select(singular, below, g.div(below, int(a[k, k])))
            for j in range(k + 1, n):
                a[i, j] = g.sub(int(a[i, j]), g.mul(int(a[i, k]), int(a[k, j])))
    return a, pivots, permutation
