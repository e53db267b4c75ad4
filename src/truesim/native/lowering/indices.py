"""Index arithmetic: integers known to be equal in all lanes, with their ranges.

Loop counters are index nodes. An integer of the program that is an affine function of counters stays an
index (wrapped in `splat`), so that array accesses inside loops become plain vector loads, and bounds
checks on them fold.
"""

from truesim.native.lowering.graph import Graph
from truesim.native.lowering.types import BOOL, INDEX, ScalarType

_MAX_INT32 = 2**31 - 1
"""Largest 32-bit integer: indices whose products may exceed it stay ordinary integers."""


class IndexAlgebra(Graph):
    """A graph with constructors for index nodes and their bounds."""

    def splat(self, index: int, dtype: ScalarType) -> int:
        """The index as a number in every lane."""
        value = self.values[index]
        return self.const(value, dtype) if value is not None else self.node("splat", dtype, (index,))

    def uniform(self, n: int) -> int | None:
        """Index node behind an integer that is known to be equal in all lanes, else None."""
        if self.ops[n] == "splat":
            return self.args[n][0]
        value = self.values[n]
        if value is not None and value.dtype.kind in "iu":
            return self.const(value, INDEX)
        return None

    def uniform_pair(self, a: int, b: int) -> tuple[int, int] | None:
        """Index nodes of both operands, if a loop counter is among them and nothing can overflow, else None."""
        if self.ops[a] != "splat" and self.ops[b] != "splat":
            return None
        x, y = self.uniform(a), self.uniform(b)
        if x is None or y is None:
            return None
        small = all(abs(limit) < _MAX_INT32**0.5 for i in (x, y) for limit in self.bounds[i])
        return (x, y) if small else None

    def _index_node(self, op: str, a: int, b: int, bounds: tuple[int, int]) -> int:
        if bounds[0] == bounds[1]:
            return self.const(bounds[0], INDEX)
        n = self.node(op, INDEX, (a, b))
        self.bounds[n] = bounds
        return n

    def index_add(self, a: int, b: int) -> int:
        """`a + b`."""
        if self.values[a] is not None and self.values[b] is None:
            a, b = b, a
        if self.bounds[b] == (0, 0):
            return a
        (la, ha), (lb, hb) = self.bounds[a], self.bounds[b]
        return self._index_node("add", a, b, (la + lb, ha + hb))

    def index_sub(self, a: int, b: int, bounds: tuple[int, int] | None = None) -> int:
        """`a - b`; `bounds` may be tighter than those derived here."""
        (la, ha), (lb, hb) = self.bounds[a], self.bounds[b]
        return self._index_node("sub", a, b, bounds or (la - hb, ha - lb))

    def index_div(self, a: int, divisor: int) -> int:
        """Quotient of a non-negative index by a positive constant."""
        if divisor == 1:
            return a
        low, high = self.bounds[a]
        return self._index_node("div", a, self.const(divisor, INDEX), (low // divisor, high // divisor))

    def index_mul(self, a: int, b: int) -> int:
        """`a * b`."""
        if self.values[a] is not None and self.values[b] is None:
            a, b = b, a
        if self.bounds[b] == (1, 1):
            return a
        corners = [x * y for x in self.bounds[a] for y in self.bounds[b]]
        return self._index_node("mul", a, b, (min(corners), max(corners)))

    def index_extremum(self, op: str, a: int, b: int) -> int:
        """The smaller ("min") or larger ("max") of two indices."""
        (la, ha), (lb, hb) = self.bounds[a], self.bounds[b]
        choose = min if op == "min" else max
        if (ha <= lb) if op == "min" else (la >= hb):
            return a
        if (hb <= la) if op == "min" else (lb >= ha):
            return b
        return self._index_node(op, a, b, (choose(la, lb), choose(ha, hb)))

    def compare_bounds(self, op: str, a: int, b: int) -> bool | None:
        """Result of a comparison if the ranges of both sides decide it, else None."""
        if self.types[a] is BOOL or (self.ops[a] != "splat" and self.ops[b] != "splat"):
            return None
        x, y = self.uniform(a), self.uniform(b)
        if x is None or y is None:
            return None
        (lx, hx), (ly, hy) = self.bounds[x], self.bounds[y]
        apart = hx < ly or hy < lx
        if op in ("eq", "ne"):
            return (op == "ne") if apart else None
        below = hx < ly if op == "lt" else hx <= ly
        above = lx >= hy if op == "lt" else lx > hy
        return True if below else False if above else None
