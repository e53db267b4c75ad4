"""Matrix products: unrolled when small, blocked loops over memory when large."""

import itertools
import math

import numpy as np

from truesim.native.graph import Stack
from truesim.native.lower.context import Equation, Lowering, rule
from truesim.native.lower.shaping import reshaped
from truesim.native.lower.values import Array, InMemory, Nodes
from truesim.native.types import Scalar, memory

_UNROLLED = 2048
"""Products with a large array in memory become loops if they have more multiplications than this."""
_UNROLLED_AT_MOST = 32768
"""All products become loops if they have more multiplications than this."""
_BLOCK = 8
"""Accumulators kept in registers by the loop form."""


@rule("dot_general")
def _dot_general(low: Lowering, eqn: Equation, a: Array, b: Array) -> Array:
    (contract_a, contract_b), (batch_a, batch_b) = eqn.params["dimension_numbers"]
    aval = eqn.outvars[0].aval
    dtype = low.type_of(aval)
    free_a = [d for d in range(len(a.shape)) if d not in (*contract_a, *batch_a)]
    free_b = [d for d in range(len(b.shape)) if d not in (*contract_b, *batch_b)]
    m = math.prod(a.shape[d] for d in free_a)
    n = math.prod(b.shape[d] for d in free_b)
    k = math.prod(a.shape[d] for d in contract_a)
    limit = _UNROLLED if a.in_rows or b.in_rows else _UNROLLED_AT_MOST
    if not batch_a and m * n * k > limit and (m > 1 or n > 1) and a.type is b.type is dtype:
        rows = _Matrix(a, free_a, list(contract_a))
        columns = _Matrix(b, free_b, list(contract_b))
        if rows.regular and columns.regular:
            flat = _product_in_memory(low, rows, columns, (m, n, k), dtype)
            return reshaped(low, flat, aval.shape)
    batch = math.prod(a.shape[d] for d in batch_a)
    left = a.nodes().transpose(*batch_a, *free_a, *contract_a).reshape(batch, m, k)
    right = b.nodes().transpose(*batch_b, *free_b, *contract_b).reshape(batch, n, k)
    result = [_product(low, x, y, dtype) for x, y in zip(left, right, strict=True)]
    return low.elements(np.array(result, dtype=np.int64).reshape(aval.shape), dtype)


def _product(low: Lowering, left: Nodes, right: Nodes, dtype: Scalar) -> list[list[int]]:
    """Nodes of left @ right.T."""
    g = low.graph
    zero = g.const(0, dtype)

    def dot(x: list[int], y: list[int]) -> int:
        total = zero
        for p, q in zip(x, y, strict=True):
            total = g.add(total, g.mul(g.convert(p, dtype), g.convert(q, dtype)))
        return total

    columns = right.tolist()
    return [[dot(x, y) for y in columns] for x in left.tolist()]


class _Matrix:
    """An array in memory seen as a matrix (free axes by contracted axes), addressed by strides."""

    def __init__(self, array: Array, free: list[int], contracted: list[int]):
        strides = [math.prod(array.shape[d + 1 :]) for d in range(len(array.shape))]
        self.array = array
        self.free, free_regular = _merged(array.shape, strides, free)
        self.contracted, contracted_regular = _merged(array.shape, strides, contracted)
        self.regular = free_regular and contracted_regular


def _merged(shape: tuple[int, ...], strides: list[int], dims: list[int]) -> tuple[int, bool]:
    """Stride of several axes walked as one, and whether they can be."""
    dims = [d for d in dims if shape[d] > 1]
    if not dims:
        return 0, True
    regular = all(strides[p] == strides[q] * shape[q] for p, q in itertools.pairwise(dims))
    return strides[dims[-1]], regular


def _product_in_memory(low: Lowering, a: _Matrix, b: _Matrix, sizes: tuple[int, int, int], dtype: Scalar) -> Array:
    """A @ b.T as a memory array of m rows and n columns.

    One loop runs over blocks of the result; the last block of a row overlaps the one before it when the block
    size does not divide the row. The inner loop accumulates a block over the contracted axis.
    """
    g = low.graph
    m, n, k = sizes
    if n == 1:
        return reshaped(low, _product_in_memory(low, b, a, (n, m, k), dtype), (m, n))
    width = min(n, _BLOCK)
    blocks = -(-n // width)
    outer = g.begin_loop(m * blocks)
    row = g.index_div(outer.counter, blocks)
    block = g.index_sub(outer.counter, g.index_mul(row, g.index(blocks)), (0, blocks - 1))
    column = g.index_extremum("min", g.index_mul(block, g.index(width)), g.index(n - width))
    totals = _accumulate(low, (a, row), (b, column), (width, k), dtype)
    start = g.index_add(g.index_mul(row, g.index(n)), column)
    outer.stacks.append(Stack(memory(dtype, m * n), start, totals))
    g.end_loop(outer)
    return InMemory(g, g.stacked(outer, 0), (m, n), dtype)


def _accumulate(
    low: Lowering, a: tuple[_Matrix, int], b: tuple[_Matrix, int], sizes: tuple[int, int], dtype: Scalar
) -> list[int]:
    """Dot products of one row of `a` with `width` consecutive rows of `b`."""
    g = low.graph
    width, k = sizes
    (left, row), (right, column) = a, b
    x, y = left.array.memory(), right.array.memory()
    loop = g.begin_loop(k)
    carries = [g.add_carry(loop, g.const(0, dtype)) for _ in range(width)]

    def place(matrix: _Matrix, free: int) -> int:
        along = g.index_mul(loop.counter, g.index(matrix.contracted))
        return g.index_add(g.index_mul(free, g.index(matrix.free)), along)

    p = g.load(x, place(left, row))
    factors = [g.load(y, place(right, g.index_add(column, g.index(t)))) for t in range(width)]
    loop.nexts = [g.add(c, g.mul(p, q)) for c, q in zip(carries, factors, strict=True)]
    g.end_loop(loop)
    return [g.carried(loop, t) for t in range(width)]
