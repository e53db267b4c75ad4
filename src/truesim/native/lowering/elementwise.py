"""Rules of elementwise primitives."""

import functools
from collections.abc import Callable

import numpy as np

from truesim.native.lowering import elementary
from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.types import BOOL, I32, I64
from truesim.native.lowering.values import Array, MemoryArray, Nodes, RowArray

Operation = Callable[..., int]

_MIN_LOOP_ELEMENTS = 48
"""Minimum number of elements for which an elementary function is computed in a loop."""


def elementwise(low: Lowering, eqn: Equation, f: Operation, operands: tuple[Array, ...]) -> Array:
    """Apply `f` to every element."""
    aval = eqn.outvars[0].aval
    build: Callable[..., Nodes] = lambda *nodes: map_nodes(f, *nodes)  # noqa: E731
    return low.rowwise(aval.shape, low.type_of(aval), build, *operands)


def _register(name: str, make: Callable[[Algebra], Operation]) -> None:
    def lowered(low: Lowering, eqn: Equation, *operands: Array) -> Array:
        return elementwise(low, eqn, make(low.graph), operands)

    rule(name)(lowered)


def _logical_xor(g: Algebra) -> Operation:
    return lambda a, b: g.apply("xor", *((a, b) if a < b else (b, a)))


def _sign(g: Algebra) -> Operation:
    def sign(a: int) -> int:
        dtype = g.scalar(a)
        zero, one = g.const(0, dtype), g.const(1, dtype)
        positive = g.compare("gt", a, zero)
        if dtype.kind == "uint":
            return g.select(positive, one, zero)
        negative = g.select(g.compare("lt", a, zero), g.const(-1, dtype), a if dtype.kind == "float" else zero)
        return g.select(positive, one, negative)

    return sign


def _is_finite(g: Algebra) -> Operation:
    return lambda a: g.compare("lt", g.abs(a), g.const(np.inf, g.scalar(a)))


def _square(g: Algebra) -> Operation:
    return lambda a: g.mul(a, a)


def _next_after(g: Algebra) -> Operation:
    def next_after(a: int, b: int) -> int:
        dtype = g.scalar(a)
        bits = I64 if dtype.bits == 64 else I32
        zero, smallest = g.const(0, dtype), g.bitcast(g.const(1, bits), dtype)
        away = g.compare("eq", g.compare("gt", b, a), g.compare("gt", a, zero))
        step = g.select(away, g.const(1, bits), g.const(-1, bits))
        moved = g.bitcast(g.apply("add", g.bitcast(a, bits), step), dtype)
        from_zero = g.select(g.compare("gt", b, a), smallest, g.neg(smallest))
        moved = g.select(g.compare("eq", a, zero), from_zero, moved)
        moved = g.select(g.compare("eq", a, b), b, moved)
        unordered = g.logical_or(g.compare("ne", a, a), g.compare("ne", b, b))
        return g.select(unordered, g.add(a, b), moved)

    return next_after


_OPERATIONS: dict[str, Callable[[Algebra], Operation]] = {
    "add": lambda g: g.add,
    "add_any": lambda g: g.add,
    "sub": lambda g: g.sub,
    "mul": lambda g: g.mul,
    "div": lambda g: g.div,
    "rem": lambda g: lambda a, b: g.apply("rem", a, b),
    "neg": lambda g: g.neg,
    "abs": lambda g: g.abs,
    "max": lambda g: g.maximum,
    "min": lambda g: g.minimum,
    "square": _square,
    "sign": _sign,
    "sqrt": lambda g: lambda a: g.apply("sqrt", a),
    "floor": lambda g: lambda a: g.apply("floor", a),
    "ceil": lambda g: lambda a: g.apply("ceil", a),
    "is_finite": _is_finite,
    "nextafter": _next_after,
    "eq": lambda g: lambda a, b: g.compare("eq", a, b),
    "ne": lambda g: lambda a, b: g.compare("ne", a, b),
    "lt": lambda g: lambda a, b: g.compare("lt", a, b),
    "le": lambda g: lambda a, b: g.compare("le", a, b),
    "gt": lambda g: lambda a, b: g.compare("gt", a, b),
    "ge": lambda g: lambda a, b: g.compare("ge", a, b),
    "and": lambda g: g.logical_and,
    "or": lambda g: g.logical_or,
    "xor": _logical_xor,
    "not": lambda g: g.logical_not,
    "shift_left": lambda g: lambda a, b: g.apply("shl", a, b),
    "shift_right_arithmetic": lambda g: lambda a, b: g.apply("shr", a, b),
    "shift_right_logical": lambda g: lambda a, b: g.apply("shr_logical", a, b),
    "population_count": lambda g: lambda a: g.apply("popcount", a),
    "clz": lambda g: lambda a: g.apply("clz", a),
}

for _name, _make in _OPERATIONS.items():
    _register(_name, _make)


@rule(*elementary.FUNCTIONS)
def _elementary(low: Lowering, eqn: Equation, *operands: Array) -> Array:
    g, name = low.graph, eqn.primitive.name
    dtype = low.type_of(eqn.outvars[0].aval)

    def function(*nodes: int) -> int:
        if name == "pow":
            for exponent in (1, 2, 3):
                if g.is_const(nodes[1], exponent):
                    return _product(g, [g.convert(nodes[0], dtype)] * exponent)
        return elementary.apply(g, low.has_fma, name, *(g.convert(n, dtype) for n in nodes))

    if _is_worth_a_loop(operands):
        flat = [MemoryArray(g, x.memory(), (x.size,), x.type) for x in operands]
        rows = RowArray(g, flat[0].shape, dtype, lambda i: map_nodes(function, *(x.row(i) for x in flat)))
        return MemoryArray(g, rows.memory(), eqn.outvars[0].aval.shape, dtype)
    return elementwise(low, eqn, function, operands)


def _product(g: Algebra, factors: list[int]) -> int:
    return functools.reduce(g.mul, factors)


def _is_worth_a_loop(operands: tuple[Array, ...]) -> bool:
    """True for many different arguments, whose unrolled code would be long; large arrays are loops in any case."""
    sizes = {x.size for x in operands}
    if len(sizes) > 1 or min(sizes) < _MIN_LOOP_ELEMENTS or any(x.in_rows for x in operands):
        return False
    return all(np.unique(x.nodes()).size >= _MIN_LOOP_ELEMENTS for x in operands)


@rule("lt_to", "le_to")
def _total_order(low: Lowering, eqn: Equation, a: Array, b: Array) -> Array:
    """Comparison in which -0 < 0 and NaN is the largest, as sorting uses."""
    g, dtype = low.graph, a.type
    if dtype.kind != "float":
        return elementwise(low, eqn, lambda x, y: g.compare(eqn.primitive.name[:2], x, y), (a, b))
    op = eqn.primitive.name[:2]
    return elementwise(low, eqn, lambda x, y: g.compare(op, total_key(g, x), total_key(g, y)), (a, b))


def total_key(g: Algebra, x: int) -> int:
    """Integer whose order is the total order of the floating-point number (itself for other types)."""
    dtype = g.scalar(x)
    if dtype is BOOL:
        return g.convert(x, I32)
    if dtype.kind != "float":
        return x
    bits = I64 if dtype.bits == 64 else I32
    raw = g.bitcast(x, bits)
    flipped = g.apply("xor", raw, g.const(np.iinfo(bits.dtype).max, bits))
    return g.select(g.compare("lt", raw, g.const(0, bits)), flipped, raw)


@rule("integer_pow")
def _integer_pow(low: Lowering, eqn: Equation, x: Array) -> Array:
    g, exponent = low.graph, eqn.params["y"]

    def power(a: int) -> int:
        one = g.const(1, g.scalar(a))
        result, square, n = one, a, abs(exponent)
        while n:
            result = g.mul(result, square) if n & 1 else result
            square, n = (g.mul(square, square), n >> 1) if n > 1 else (square, 0)
        return g.div(one, result) if exponent < 0 else result

    return elementwise(low, eqn, power, (x,))


@rule("round")
def _round(low: Lowering, eqn: Equation, x: Array) -> Array:
    to_even = int(eqn.params["rounding_method"]) == 1
    return elementwise(low, eqn, lambda a: low.graph.apply("round" if to_even else "round_away", a), (x,))


@rule("select_n")
def _select_n(low: Lowering, eqn: Equation, which: Array, *cases: Array) -> Array:
    g = low.graph

    def choose(w: int, *options: int) -> int:
        if which.type is BOOL:
            return g.select(w, options[1], options[0])
        result = options[-1]
        for k in reversed(range(len(options) - 1)):
            result = g.select(g.compare("le", w, g.const(k, which.type)), options[k], result)
        return result

    return elementwise(low, eqn, choose, (which, *cases))


@rule("clamp")
def _clamp(low: Lowering, eqn: Equation, low_limit: Array, x: Array, high_limit: Array) -> Array:
    g = low.graph
    return elementwise(low, eqn, lambda a, b, c: g.minimum(g.maximum(b, a), c), (low_limit, x, high_limit))


@rule("convert_element_type")
def _convert(low: Lowering, eqn: Equation, x: Array) -> Array:
    dtype = low.type_of(eqn.outvars[0].aval)
    if dtype is x.type:
        return x
    return elementwise(low, eqn, lambda a: low.graph.convert(a, dtype), (x,))


@rule("bitcast_convert_type")
def _bitcast(low: Lowering, eqn: Equation, x: Array) -> Array:
    dtype = low.type_of(eqn.outvars[0].aval)
    return elementwise(low, eqn, lambda a: low.graph.bitcast(a, dtype), (x,))


@rule("copy", "copy_p", "stop_gradient", "name", "optimization_barrier", "reduce_precision", "pvary")
def _identity(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    return list(operands)
