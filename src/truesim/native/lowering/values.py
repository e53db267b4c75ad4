"""Array values during lowering: scalar nodes, memory, or rows computed on demand."""

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.graph import Loop, Stack, Write
from truesim.native.lowering.types import I32, ScalarType, memory

Shape = tuple[int, ...]
Nodes = np.ndarray
"""Integer array of graph nodes, one per element."""

_LARGE_ELEMENTS = 4096
"""Minimum number of elements of a large array."""
_LARGE_STACK_ELEMENTS = 1024
"""Minimum number of elements of a large array with many rows."""
_LARGE_STACK_ROWS = 32
"""Minimum number of rows of an array that counts as one with many."""
_HUGE_ELEMENTS = 16384
"""Minimum number of elements of a huge array; a larger limit gives longer code."""
_COPIED_ELEMENTS = 64
"""Maximum number of elements that are copied one by one instead of in a loop."""


def is_large(shape: Shape) -> bool:
    """True when an array of this shape stays in memory if it is there."""
    size = math.prod(shape)
    if not shape or shape[0] < 2:
        return False
    return size >= _LARGE_ELEMENTS or (size >= _LARGE_STACK_ELEMENTS and shape[0] >= _LARGE_STACK_ROWS)


def is_huge(shape: Shape) -> bool:
    """True when an array of this shape is never split into scalar nodes."""
    return math.prod(shape) >= _HUGE_ELEMENTS and shape[0] > 1


def is_copied(shape: Shape) -> bool:
    """True when an array of this shape is copied from memory to memory by a loop."""
    return math.prod(shape) > _COPIED_ELEMENTS


class Array:
    """Value of one array: its shape, its element type, and ways to read it."""

    def __init__(self, graph: Algebra, shape: Shape, dtype: ScalarType):
        self.graph = graph
        self.shape = shape
        self.type = dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def in_rows(self) -> bool:
        """True when operations on the array are loops over its rows instead of one node per element."""
        return False

    @property
    def row_shape(self) -> Shape:
        """Shape of one entry along the first axis."""
        return self.shape[1:]

    @abstractmethod
    def nodes(self) -> Nodes:
        """Every element as a scalar node, in the array's shape."""

    @abstractmethod
    def memory(self) -> int:
        """Memory node holding all elements, row-major."""

    @abstractmethod
    def row(self, index: int) -> Nodes:
        """Elements of one entry along the first axis, at an index node."""

    def scalar(self) -> int:
        """The only element of an array of size one."""
        return int(self.nodes().reshape(-1)[0])

    def constant(self) -> np.ndarray | None:
        """The array's value when all elements are constants, else None."""
        flat = self.nodes().reshape(-1).tolist()
        values = [self.graph.values[n] for n in flat]
        if any(v is None for v in values):
            return None
        return np.array(values, dtype=self.type.dtype).reshape(self.shape)


class NodeArray(Array):
    """An array whose elements are scalar nodes."""

    def __init__(self, graph: Algebra, nodes: Nodes, dtype: ScalarType):
        super().__init__(graph, nodes.shape, dtype)
        self._nodes = nodes
        self._memory: int | None = None

    def nodes(self) -> Nodes:
        """Nodes of the elements."""
        return self._nodes

    def memory(self) -> int:
        """Memory node to which the elements are stored, once."""
        if self._memory is None:
            flat = self._nodes.reshape(-1).tolist()
            self._memory = self.graph.array(flat, memory(self.type, len(flat)))
        return self._memory

    def row(self, index: int) -> Nodes:
        """One entry; with a computed index it is loaded."""
        position = self.graph.values[index]
        if position is not None:
            return self._nodes[int(position), ...]
        low, high = self.graph.bounds[index]
        window = self._nodes[max(low, 0) : high + 1]
        if window.size and (window == window[:1]).all():
            return window[0, ...]
        return MemoryArray(self.graph, self.memory(), self.shape, self.type).row(index)


class MemoryArray(Array):
    """An array in memory; elements are loaded at each use."""

    def __init__(self, graph: Algebra, memory: int, shape: Shape, dtype: ScalarType):
        super().__init__(graph, shape, dtype)
        self._memory = memory

    @property
    def in_rows(self) -> bool:
        """True when the array is large."""
        return is_large(self.shape)

    def nodes(self) -> Nodes:
        """A load of every element."""
        g = self.graph
        if g.ops[self._memory] == "data":
            return g.constants(g.data[g.attrs[self._memory]].reshape(self.shape), self.type)
        loads = [g.load(self._memory, g.index(k)) for k in range(self.size)]
        return np.array(loads, dtype=np.int64).reshape(self.shape)

    def memory(self) -> int:
        """The node that holds the array."""
        return self._memory

    def row(self, index: int) -> Nodes:
        """Loads of one entry."""
        g = self.graph
        width = math.prod(self.row_shape)
        start = g.index_mul(index, g.index(width))
        loads = [g.load(self._memory, g.index_add(start, g.index(k))) for k in range(width)]
        return np.array(loads, dtype=np.int64).reshape(self.row_shape)


class RowArray(Array):
    """A large array computed on demand: `make_row` builds the entry at an index node."""

    is_cheap = False
    """True when rows are recomputed at each use instead of being stored."""

    def __init__(self, graph: Algebra, shape: Shape, dtype: ScalarType, make_row: Callable[[int], Nodes]):
        super().__init__(graph, shape, dtype)
        self._make_row = make_row

    @property
    def in_rows(self) -> bool:
        """Always true."""
        return True

    def nodes(self) -> Nodes:
        """Nodes of all rows."""
        rows = [self.row(self.graph.index(k)) for k in range(self.shape[0])]
        return np.stack(rows).reshape(self.shape)

    def memory(self) -> int:
        """Memory node filled by a loop over the rows."""
        return self.materialize().memory()

    def row(self, index: int) -> Nodes:
        """Row at an index."""
        return np.broadcast_to(self._make_row(index), self.row_shape)

    def materialize(self) -> MemoryArray:
        """Store the array in memory, by a loop over its rows."""
        g = self.graph
        loop = g.begin_loop(self.shape[0])
        k = store_row(g, loop, loop.counter, self.row(loop.counter), self.shape, self.type)
        g.end_loop(loop)
        return MemoryArray(g, g.stack_memory(loop, k), self.shape, self.type)


class UpdatedArray(RowArray):
    """A large array that differs from another in one row; a loop that carries it writes only that row."""

    is_cheap = True

    def __init__(self, base: Array, place: int, row: Nodes, condition: int):
        super().__init__(base.graph, base.shape, base.type, self._selected)
        self.base = base
        self.place = place
        """Number of the row, which may differ between lanes."""
        self._new = row
        self._condition = condition
        """Lanes in which the row is changed at all."""

    def _selected(self, index: int) -> Nodes:
        g = self.graph
        here = g.logical_and(self._condition, g.compare("eq", g.splat(index, I32), self.place))
        return self._blend(here, self.base.row(index))

    def _blend(self, here: int, old: Nodes) -> Nodes:
        pairs = zip(self._new.reshape(-1).tolist(), old.reshape(-1).tolist(), strict=True)
        nodes = [self.graph.select(here, new, before) for new, before in pairs]
        return np.array(nodes, dtype=np.int64).reshape(self.row_shape)

    def root(self) -> Array:
        """Array before all changes."""
        return self.base.root() if isinstance(self.base, UpdatedArray) else self.base

    def where(self, condition: int) -> "UpdatedArray":
        """The same changes, only in the lanes where a condition holds."""
        base = self.base.where(condition) if isinstance(self.base, UpdatedArray) else self.base
        return UpdatedArray(base, self.place, self._new, self.graph.logical_and(self._condition, condition))

    def writes(self, carry: int) -> list[Write] | None:
        """The changes as writes into the carried array they start from, or None if they cannot be."""
        g, width = self.graph, math.prod(self.row_shape)
        before = self.base.writes(carry) if isinstance(self.base, UpdatedArray) else []
        index, new = g.uniform(self.place), self._new
        if before is None or (index is None and isinstance(self.base, UpdatedArray)):
            return None
        if index is not None:
            start = g.index_mul(index, g.index(width))
            new = self._blend(self._condition, self.base.row(index))
        else:
            start = g.mul(self.place, g.const(width, g.scalar(self.place)))
            old = [g.gather(self.base.memory(), start, k) for k in range(width)]
            new = self._blend(self._condition, np.array(old, dtype=np.int64))
        return [*before, Write(carry, start, new.reshape(-1).tolist())]


class RearrangedArray(RowArray):
    """Rows that only move elements, which are recomputed at no cost; split into nodes unless huge."""

    is_cheap = True

    @property
    def in_rows(self) -> bool:
        """True when the array is huge."""
        return is_huge(self.shape)


def store_row(g: Algebra, loop: Loop, index: int, row: Nodes, shape: Shape, dtype: ScalarType) -> int:
    """Store `row` at `index` in every iteration of the loop; return the number of the stack."""
    start = g.index_mul(index, g.index(math.prod(shape[1:])))
    loop.stacks.append(Stack(memory(dtype, math.prod(shape)), start, row.reshape(-1).tolist()))
    return len(loop.stacks) - 1


def constant(graph: Algebra, value: np.ndarray, dtype: ScalarType) -> Array:
    """Array of literals."""
    value = np.asarray(value)
    if is_large(value.shape):
        return MemoryArray(graph, graph.read_only(value, dtype), value.shape, dtype)
    return NodeArray(graph, graph.constants(value, dtype), dtype)
