"""Scalar graph: every operation of a kernel, each distinct one stored once.

A node is an integer. Nodes are hash-consed: building the same operation twice gives the same node, so that there are no
common subexpressions. Each node belongs to a *region*: 0 for straight-line code, or the innermost loop whose counter or
carry it depends on. A node built inside a loop body from outer values only is therefore placed outside the loop.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truesim.native.lowering.types import BOOL, INDEX, MemoryType, ScalarType, Type, memory

Key = tuple


@dataclass
class Stack:
    """Result of a loop that grows by some elements in every iteration."""

    type: MemoryType
    start: int
    """Index node: position of the first element of this iteration."""
    elements: list[int]


@dataclass
class Write:
    """In-place update of a carried array at the end of every iteration."""

    carry: int
    """Number of the carry."""
    start: int
    """Position of the first element: an index node, or a number that may differ between lanes."""
    elements: list[int]

    def nodes(self) -> list[int]:
        """Nodes that the write needs."""
        return [self.start, *self.elements]


@dataclass
class Loop:
    """A loop in the graph: with a fixed number of iterations, or while the gate of any lane is true, or both."""

    region: int
    parent: int
    trips: int | None
    counter: int = -1
    """Index node counting iterations from zero."""
    carries: list[int] = field(default_factory=list)
    """Nodes of the values at the start of an iteration."""
    inits: list[int] = field(default_factory=list)
    nexts: list[int] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)
    node: int = -1
    live_carries: list[int] | None = None
    """Numbers of the carries in use; None before dead-code elimination."""
    live_stacks: list[int] | None = None
    gate: int | None = None
    """Number of a boolean carry: where it is false, iterations change nothing."""
    writes: list[Write] = field(default_factory=list)

    def roots(self) -> list[int]:
        """Nodes that an iteration must compute."""
        carries = range(len(self.nexts)) if self.live_carries is None else self.live_carries
        stacks = range(len(self.stacks)) if self.live_stacks is None else self.live_stacks
        stored = [n for k in stacks for n in (self.stacks[k].start, *self.stacks[k].elements)]
        return [*(self.nexts[k] for k in carries), *stored, *(n for w in self.live_writes() for n in w.nodes())]

    def live_writes(self) -> list[Write]:
        """Writes to carries in use."""
        return [w for w in self.writes if self.live_carries is None or w.carry in self.live_carries]


class Graph:
    """Hash-consed storage of nodes, constants, read-only data and loops."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.types: list[Type] = []
        self.args: list[tuple[int, ...]] = []
        self.attrs: list[Any] = []
        self.regions: list[int] = []
        self.values: list[Any] = []
        """Value of each constant node, None for the others."""
        self.loops: dict[int, Loop] = {}
        self.depth: list[int] = [0]
        self.current = 0
        """Innermost loop being built."""
        self.data: list[np.ndarray] = []
        self.bounds: dict[int, tuple[int, int]] = {}
        """Inclusive range of each index node."""
        self._known: dict[Key, int] = {}
        self._small: dict[tuple[int, ScalarType], int] = {}
        self._data_known: dict[Key, int] = {}

    def node(self, op: str, dtype: Type, args: tuple[int, ...] = (), attr: Any = None) -> int:
        """Node for `op` applied to `args`, new or existing."""
        key = (op, dtype, args, attr)
        known = self._known.get(key)
        if known is not None:
            return known
        region = 0
        regions = self.regions
        for a in args:
            r = regions[a]
            if r and self.depth[r] > self.depth[region]:
                region = r
        return self._append(key, region)

    def _append(self, key: Key, region: int, value: Any = None) -> int:
        op, dtype, args, attr = key
        n = len(self.ops)
        self._known[key] = n
        self.ops.append(op)
        self.types.append(dtype)
        self.args.append(args)
        self.attrs.append(attr)
        self.regions.append(region)
        self.values.append(value)
        return n

    def scalar(self, node: int) -> ScalarType:
        """Type of a node that is a number."""
        dtype = self.types[node]
        assert isinstance(dtype, ScalarType)
        return dtype

    def memory_type(self, node: int) -> MemoryType:
        """Type of a node that is an array in memory."""
        dtype = self.types[node]
        assert isinstance(dtype, MemoryType)
        return dtype

    def const(self, value: object, dtype: ScalarType) -> int:
        """Node of a constant."""
        number = dtype.dtype.type(value)
        key = ("const", dtype, (), number.tobytes())
        known = self._known.get(key)
        if known is not None:
            return known
        n = self._append(key, 0, number)
        if dtype is INDEX:
            self.bounds[n] = (int(number), int(number))
        return n

    def small(self, value: int, dtype: ScalarType) -> int:
        """Node of a constant that is an integer number, such as zero or one: faster than `const`."""
        known = self._small.get((value, dtype))
        if known is None:
            known = self._small[value, dtype] = self.const(value, dtype)
        return known

    def constants(self, array: np.ndarray, dtype: ScalarType) -> np.ndarray:
        """Nodes of every entry of a constant array, in the same shape."""
        flat = np.ascontiguousarray(array, dtype=dtype.dtype).reshape(-1)
        bits = flat.view(f"u{dtype.size}")
        unique, inverse = np.unique(bits, return_inverse=True)
        nodes = [self.const(v, dtype) for v in unique.view(dtype.dtype)]
        return np.asarray(nodes, dtype=np.int64)[inverse].reshape(np.shape(array))

    def read_only(self, array: np.ndarray, dtype: ScalarType) -> int:
        """Memory node of constant data, shared by all lanes."""
        flat = np.ascontiguousarray(array, dtype=dtype.dtype).reshape(-1)
        key = (dtype, flat.tobytes())
        number = self._data_known.get(key)
        if number is None:
            number = self._data_known[key] = len(self.data)
            self.data.append(flat)
        return self.node("data", memory(dtype, flat.size), (), number)

    def begin_loop(self, trips: int | None) -> Loop:
        """Open a new loop inside the current region; close it with `end_loop`."""
        region = len(self.depth)
        self.depth.append(self.depth[self.current] + 1)
        loop = Loop(region, self.current, trips, gate=0 if trips is None else None)
        self.current = region
        loop.counter = self._append(("counter", INDEX, (), region), region)
        self.bounds[loop.counter] = (0, trips - 1) if trips is not None else (0, 2**62)
        self.loops[region] = loop
        return loop

    def add_carry(self, loop: Loop, init: int) -> int:
        """Add a value carried by the loop, starting at `init`; its next value is appended to `loop.nexts`."""
        n = self._append(("carry", self.types[init], (), (loop.region, len(loop.carries))), loop.region)
        loop.inits.append(init)
        loop.carries.append(n)
        return n

    def end_loop(self, loop: Loop) -> int:
        """Close a loop; return the node that runs it. `carry_result` and `stack_memory` read its results."""
        free = self.free_nodes(loop, loop.roots())
        self.current = loop.parent
        loop.node = self.node("loop", BOOL, (*loop.inits, *free), loop.region)
        return loop.node

    def abandon_loop(self, loop: Loop) -> None:
        """Discard a loop whose body was built only for analysis; its nodes are dead."""
        self.current = loop.parent
        del self.loops[loop.region]

    def free_nodes(self, loop: Loop, roots: list[int]) -> list[int]:
        """Nodes from outside the loop that its body reads, in order of creation."""
        free: set[int] = set()
        seen: set[int] = set()
        stack = list(roots)
        depth = self.depth[loop.region]
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if self.depth[self.regions[n]] < depth:
                if self.values[n] is None:
                    free.add(n)
            else:
                stack.extend(self.args[n])
        return sorted(free)

    def reachable(self, roots: list[int]) -> list[int]:
        """All nodes that the roots depend on, themselves included, in order of creation."""
        seen = set(roots)
        stack = list(roots)
        while stack:
            new = [a for a in self.args[stack.pop()] if a not in seen]
            seen.update(new)
            stack += new
        return sorted(seen)

    def carry_result(self, loop: Loop, k: int) -> int:
        """Final value of carry `k`."""
        return self.node("result", self.types[loop.carries[k]], (loop.node,), k)

    def stack_memory(self, loop: Loop, k: int) -> int:
        """Memory node of stack `k` after all iterations."""
        return self.node("stack", loop.stacks[k].type, (loop.node,), k)
