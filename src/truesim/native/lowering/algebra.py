"""Simplifying constructors: all operations enter the graph through them.

Each constructor folds constants, removes zeros and ones, moves signs outwards and orders commutative operands, so that
equal expressions become equal nodes. The rewrites are exact in floating point, up to the sign of a zero, with one
exception: a literal zero times anything is zero.
"""

import numpy as np

from truesim.native.lowering.folding import FOLD, convert_value, wrap
from truesim.native.lowering.graph import Graph
from truesim.native.lowering.indices import IndexAlgebra
from truesim.native.lowering.types import BOOL, INDEX, MemoryType, ScalarType

_NEGATED = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


class Algebra(IndexAlgebra, Graph):
    """A graph with simplifying constructors for every scalar operation."""

    def fold(self, op: str, dtype: ScalarType, *args: int) -> int | None:
        """Constant result of `op`, or None when an argument is not constant."""
        operands = [self.values[a] for a in args]
        if any(v is None for v in operands):
            return None
        return self.const(wrap(FOLD[op](*operands), dtype), dtype)

    def apply(self, op: str, *args: int, dtype: ScalarType | None = None) -> int:
        """Apply `op` to the arguments; fold it if all are constant, without further simplification."""
        result = dtype or self.scalar(args[0])
        folded = self.fold(op, result, *args)
        return self.node(op, result, args) if folded is None else folded

    def is_const(self, n: int, value: int | float) -> bool:
        """True when the node is this constant."""
        known = self.values[n]
        return known is not None and bool(known == value)

    # Arithmetic

    def add(self, a: int, b: int) -> int:
        """`a + b`."""
        va, vb = self.values[a], self.values[b]
        if va is not None:
            if va == 0 and (vb is None or vb != 0 or a == b):
                return b
            if vb is not None:
                return a if vb == 0 and va != 0 else self.const(wrap(va + vb, self.scalar(a)), self.scalar(a))
        elif vb is not None and vb == 0:
            return a
        ops = self.ops
        if ops[b] == "neg":
            return self.sub(a, self.args[b][0])
        if ops[a] == "neg":
            return self.sub(b, self.args[a][0])
        if ops[a] == "splat" or ops[b] == "splat":
            uniform = self.uniform_pair(a, b)
            if uniform is not None:
                return self.splat(self.index_add(*uniform), self.scalar(a))
        return self.node("add", self.types[a], (a, b) if a < b else (b, a))

    def sub(self, a: int, b: int) -> int:
        """`a - b`."""
        va, vb = self.values[a], self.values[b]
        if va is not None and vb is not None:
            return self.const(wrap(va - vb, self.scalar(a)), self.scalar(a))
        if vb is not None and vb == 0:
            return a
        if va is not None and va == 0:
            return self.neg(b)
        if self.ops[b] == "neg":
            return self.add(a, self.args[b][0])
        if self.ops[a] == "neg":
            return self.neg(self.add(self.args[a][0], b))
        uniform = self.uniform_pair(a, b)
        if uniform is not None:
            return self.splat(self.index_sub(*uniform), self.scalar(a))
        if a == b and self.scalar(a).kind != "float":
            return self.const(0, self.scalar(a))
        if ("sub", self.types[a], (b, a), None) in self._known:
            return self.node("neg", self.types[a], (self.node("sub", self.types[a], (b, a)),))
        return self.node("sub", self.types[a], (a, b))

    def mul(self, a: int, b: int) -> int:
        """`a * b`."""
        va, vb = self.values[a], self.values[b]
        if va is not None:
            if vb is not None:
                return self._constant_product(a, b)
            a, b, vb = b, a, va
        if vb is not None:
            if vb == 0:
                return self.small(0, self.scalar(a))
            if vb == 1:
                return a
            if vb == -1:
                return self.neg(a)
        ops = self.ops
        if ops[a] == "neg":
            return self.neg(self.mul(self.args[a][0], b))
        if ops[b] == "neg":
            return self.neg(self.mul(a, self.args[b][0]))
        if ops[a] == "splat" or ops[b] == "splat":
            uniform = self.uniform_pair(a, b)
            if uniform is not None:
                return self.splat(self.index_mul(*uniform), self.scalar(a))
        return self.node("mul", self.types[a], (a, b) if a < b else (b, a))

    def _constant_product(self, a: int, b: int) -> int:
        va, vb = self.values[a], self.values[b]
        if va == 1 or (vb == 0 and 0 < va < np.inf):
            return b
        if vb == 1 or (va == 0 and 0 < vb < np.inf):
            return a
        return self.const(wrap(va * vb, self.scalar(a)), self.scalar(a))

    def neg(self, a: int) -> int:
        """`-a`."""
        value = self.values[a]
        if value is not None:
            return self.const(wrap(np.negative(value), self.scalar(a)), self.scalar(a))
        if self.ops[a] == "neg":
            return self.args[a][0]
        return self.node("neg", self.types[a], (a,))

    def div(self, a: int, b: int) -> int:
        """`a / b`; for integers, truncated, -1 for a zero divisor."""
        dtype = self.scalar(a)
        folded = self.fold("div", dtype, a, b)
        if folded is not None:
            return folded
        vb = self.values[b]
        if vb is not None:
            if vb == 1:
                return a
            if dtype.kind == "float" and np.frexp(vb)[0] in (0.5, -0.5) and np.isfinite(1 / vb):
                return self.mul(a, self.const(1 / vb, dtype))
        if dtype.kind != "float":
            return self.node("div", dtype, (a, b))
        if self.ops[a] == "neg":
            return self.neg(self.div(self.args[a][0], b))
        if self.ops[b] == "neg":
            return self.neg(self.div(a, self.args[b][0]))
        return self.node("div", dtype, (a, b))

    def fma(self, a: int, b: int, c: int) -> int:
        """`a * b + c`, rounded once."""
        return self.apply("fma", a, b, c)

    def abs(self, a: int) -> int:
        """`|a|`."""
        if self.ops[a] in ("neg", "abs"):
            return self.abs(self.args[a][0]) if self.ops[a] == "neg" else a
        return a if self.scalar(a).kind == "uint" else self.apply("abs", a)

    def minimum(self, a: int, b: int) -> int:
        """Smaller of `a` and `b`; NaN if either is NaN."""
        return self._extremum("min", a, b)

    def maximum(self, a: int, b: int) -> int:
        """Larger of `a` and `b`; NaN if either is NaN."""
        return self._extremum("max", a, b)

    def _extremum(self, op: str, a: int, b: int) -> int:
        if a == b:
            return a
        uniform = self.uniform_pair(a, b)
        if uniform is not None:
            return self.splat(self.index_extremum(op, *uniform), self.scalar(a))
        return self.apply(op, *((a, b) if a < b else (b, a)))

    # Comparison and logic

    def compare(self, op: str, a: int, b: int) -> int:
        """`a op b` for op in eq, ne, lt, le, gt, ge; false when unordered, except for ne."""
        if op in ("gt", "ge"):
            op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
        if a == b and self.scalar(a).kind != "float":
            return self.const(op in ("eq", "le"), BOOL)
        known = self.compare_bounds(op, a, b)
        if known is not None:
            return self.const(known, BOOL)
        flag = self._compare_flag(op, a, b)
        if flag is not None:
            return flag
        if op in ("eq", "ne") and a > b:
            a, b = b, a
        return self.apply(op, a, b, dtype=BOOL)

    def _compare_flag(self, op: str, a: int, b: int) -> int | None:
        """Comparison of a constant with a converted boolean, simplified to a boolean, or None for other operands."""
        for x, y in ((a, b), (b, a)):
            if self.ops[x] == "convert" and self.scalar(self.args[x][0]) is BOOL and self.values[y] is not None:
                dtype = self.scalar(x)
                outcomes = [
                    bool(FOLD[op](*((v, self.values[y]) if x == a else (self.values[y], v))))
                    for v in (dtype.dtype.type(0), dtype.dtype.type(1))
                ]
                flag = self.args[x][0]
                if outcomes[0] == outcomes[1]:
                    return self.const(outcomes[0], BOOL)
                return flag if outcomes[1] else self.logical_not(flag)
        return None

    def logical_not(self, a: int) -> int:
        """`not a`; bitwise for integers."""
        if self.ops[a] == "not":
            return self.args[a][0]
        if self.ops[a] in _NEGATED and self.scalar(self.args[a][0]).kind != "float":
            x, y = self.args[a]
            negated = _NEGATED[self.ops[a]]
            return self.compare(negated, x, y) if negated in ("eq", "ne") else self.compare(negated, y, x)
        return self.apply("not", a)

    def logical_and(self, a: int, b: int) -> int:
        """`a and b`; bitwise for integers."""
        return self._logical("and", a, b, absorbing=0)

    def logical_or(self, a: int, b: int) -> int:
        """`a or b`; bitwise for integers."""
        return self._logical("or", a, b, absorbing=-1)

    def _logical(self, op: str, a: int, b: int, absorbing: int) -> int:
        if a == b:
            return a
        dtype = self.scalar(a)
        absorber = wrap(absorbing, dtype)
        neutral_element = wrap(~absorbing, dtype)
        for constant, other in ((self.values[a], b), (self.values[b], a)):
            if constant is not None and constant == absorber:
                return self.const(absorber, dtype)
            if constant is not None and constant == neutral_element:
                return other
        return self.apply(op, *((a, b) if a < b else (b, a)))

    def select(self, condition: int, a: int, b: int) -> int:
        """`a` where the condition holds, else `b`."""
        if a == b:
            return a
        known = self.values[condition]
        if known is not None:
            return a if known else b
        if self.ops[condition] == "not":
            return self.select(self.args[condition][0], b, a)
        if self.types[a] is BOOL:
            if self.values[a] is not None:
                if self.values[a]:
                    return self.logical_or(condition, b)
                return self.logical_and(self.logical_not(condition), b)
            if self.values[b] is not None:
                if self.values[b]:
                    return self.logical_or(self.logical_not(condition), a)
                return self.logical_and(condition, a)
        return self.node("select", self.types[a], (condition, a, b))

    # Conversion

    def convert(self, a: int, dtype: ScalarType) -> int:
        """Convert a value to another type."""
        source = self.scalar(a)
        if source is dtype:
            return a
        value = self.values[a]
        if value is not None:
            return self.const(convert_value(value, dtype), dtype)
        if dtype.kind == "bool":
            return self.compare("ne", a, self.const(0, source))
        if self.ops[a] == "splat" and dtype.kind == "int":
            return self.splat(self.args[a][0], dtype)
        return self.node("convert", dtype, (a,))

    def bitcast(self, a: int, dtype: ScalarType) -> int:
        """Reinterpret the bits as another type of the same width."""
        if self.scalar(a) is dtype:
            return a
        value = self.values[a]
        if value is not None:
            return self.const(np.asarray(value).view(dtype.dtype)[()], dtype)
        return self.node("bitcast", dtype, (a,))

    # Memory

    def load(self, memory: int, index: int) -> int:
        """Element of a memory array at an index shared by all lanes."""
        dtype = self.memory_type(memory)
        position = self.values[index]
        if position is not None:
            if self.ops[memory] == "data":
                return self.const(self.data[self.attrs[memory]][int(position)], dtype.element)
            if self.ops[memory] == "array":
                return self.args[memory][int(position)]
        return self.node("load", dtype.element, (memory, index))

    def gather(self, memory: int, lanes: int, offset: int = 0) -> int:
        """Element of a memory array at an index per lane plus an offset; the position must be in range."""
        index = self.uniform(lanes)
        if index is not None:
            return self.load(memory, self.index_add(index, self.index(offset)))
        return self.node("gather", self.memory_type(memory).element, (memory, lanes), offset)

    def array(self, elements: list[int], dtype: MemoryType) -> int:
        """Memory array with the given elements."""
        if all(self.values[e] is not None for e in elements):
            values = np.array([self.values[e] for e in elements], dtype=dtype.element.dtype)
            return self.read_only(values, dtype.element)
        return self.node("array", dtype, tuple(elements))

    def index(self, value: int) -> int:
        """Constant index node."""
        return self.small(value, INDEX)
