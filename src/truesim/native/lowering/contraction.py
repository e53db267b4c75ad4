"""Matrix products: unrolled when small, blocked loops over memory when large."""

import itertools
import math

import numpy as np

from truesim.native.lowering.context import Equation, Lowering, rule
from truesim.native.lowering.graph import Stack
from truesim.native.lowering.shaping import reshape_array
from truesim.native.lowering.types import ScalarType, memory
from truesim.native.lowering.values import Array, MemoryArray, Nodes

_MAX_UNROLLED_MEMORY_PRODUCTS = 2048
"""Maximum number of multiplications of an unrolled product with a large array in memory."""
_MAX_UNROLLED_PRODUCTS = 32768
"""Maximum number of multiplications of any unrolled product."""
_BLOCK_COLUMNS = 8
"""Accumulators of the loop form; more reuse loads better, but need more registers."""


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
    limit = _MAX_UNROLLED_MEMORY_PRODUCTS if a.in_rows or b.in_rows else _MAX_UNROLLED_PRODUCTS
    if not batch_a and m * n * k > limit and (m > 1 or n > 1) and a.type is b.type is dtype:
        rows = _Matrix(a, free_a, list(contract_a))
        columns = _Matrix(b, free_b, list(contract_b))
        if rows.regular and columns.regular:
            flat = _product_in_memory(low, rows, columns, (m, n, k), dtype)
            return reshape_array(low, flat, aval.shape)
    batch = math.prod(a.shape[d] for d in batch_a)
    left = a.nodes().transpose(*batch_a, *free_a, *contract_a).reshape(batch, m, k)
    right = b.nodes().transpose(*batch_b, *free_b, *contract_b).reshape(batch, n, k)
    result = [_product(low, x, y, dtype) for x, y in zip(left, right, strict=True)]
    return low.elements(np.array(result, dtype=np.int64).reshape(aval.shape), dtype)


def _product(low: Lowering, left: Nodes, right: Nodes, dtype: ScalarType) -> list[list[int]]:
    """Nodes of left @ right.T; products with literal zeros are skipped."""
    g = low.graph
    zero = g.small(0, dtype)
    add, mul = g.add, g.mul

    def dot(x: dict[int, int], y: dict[int, int]) -> int:
        total = zero
        if len(y) < len(x):
            x, y = y, x
        for k, p in x.items():
            q = y.get(k)
            if q is not None:
                total = add(total, mul(p, q))
        return total

    columns = _nonzero(low, right, dtype)
    return [[dot(x, y) for y in columns] for x in _nonzero(low, left, dtype)]


def _nonzero(low: Lowering, rows: Nodes, dtype: ScalarType) -> list[dict[int, int]]:
    """Entries of each row that are not literal zeros, by column, in the type of the product."""
    g = low.graph
    values, types = g.values, g.types

    def entries(row: list[int]) -> dict[int, int]:
        present = ((k, n) for k, n in enumerate(row) if values[n] is None or values[n] != 0)
        return {k: n if types[n] is dtype else g.convert(n, dtype) for k, n in present}

    return [entries(row) for row in rows.tolist()]


class _Matrix:
    """An array in memory as a matrix (free axes by contracted axes), addressed by strides."""

    def __init__(self, array: Array, free: list[int], contracted: list[int]):
        strides = [math.prod(array.shape[d + 1 :]) for d in range(len(array.shape))]
        self.array = array
        self.free, free_regular = _merge_axes(array.shape, strides, free)
        self.contracted, contracted_regular = _merge_axes(array.shape, strides, contracted)
        self.regular = free_regular and contracted_regular


def _merge_axes(shape: tuple[int, ...], strides: list[int], dims: list[int]) -> tuple[int, bool]:
    """Stride of several axes merged into one, and whether they can be merged."""
    dims = [d for d in dims if shape[d] > 1]
    if not dims:
        return 0, True
    regular = all(strides[p] == strides[q] * shape[q] for p, q in itertools.pairwise(dims))
    return strides[dims[-1]], regular


def _product_in_memory(low: Lowering, a: _Matrix, b: _Matrix, sizes: tuple[int, int, int], dtype: ScalarType) -> Array:
    """`a @ b.T` as a memory array of m rows and n columns.

    One loop runs over blocks of the result; the last block of a row overlaps the previous one when the block size does
    not divide the row. The inner loop accumulates a block over the contracted axis.
    """
    g = low.graph
    m, n, k = sizes
    if n == 1:
        return reshape_array(low, _product_in_memory(low, b, a, (n, m, k), dtype), (m, n))
    width = min(n, _BLOCK_COLUMNS)
    blocks = -(-n // width)
    outer = g.begin_loop(m * blocks)
    row = g.index_div(outer.counter, blocks)
    block = g.index_sub(outer.counter, g.index_mul(row, g.index(blocks)), (0, blocks - 1))
    column = g.index_extremum("min", g.index_mul(block, g.index(width)), g.index(n - width))
    totals = _accumulate(low, (a, row), (b, column), (width, k), dtype)
    start = g.index_add(g.index_mul(row, g.index(n)), column)
    outer.stacks.append(Stack(memory(dtype, m * n), start, totals))
    g.end_loop(outer)
    return MemoryArray(g, g.stack_memory(outer, 0), (m, n), dtype)


def _accumulate(
    low: Lowering, a: tuple[_Matrix, int], b: tuple[_Matrix, int], sizes: tuple[int, int], dtype: ScalarType
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
    return [g.carry_result(loop, t) for t in range(width)]
