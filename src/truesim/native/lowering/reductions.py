"""Rules of reductions and cumulative operations."""

import itertools
import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.types import I32, ScalarType
from truesim.native.lowering.values import Array, Nodes, RowArray, is_large

Combine = Callable[[int, int], int]


def _combine(low: Lowering, name: str) -> Combine:
    g = low.graph
    return {
        "sum": g.add,
        "prod": g.mul,
        "max": g.maximum,
        "min": g.minimum,
        "and": g.logical_and,
        "or": g.logical_or,
        "xor": lambda a, b: g.apply("xor", a, b),
    }[name]


def neutral_element(name: str, dtype: ScalarType) -> object:
    """Neutral element of the named reduction."""
    if name in ("max", "min"):
        if dtype.kind == "float":
            return -np.inf if name == "max" else np.inf
        if dtype.kind == "bool":
            return name == "min"
        limits = np.iinfo(dtype.dtype)
        return limits.min if name == "max" else limits.max
    if name == "and":
        return (
            True if dtype.kind == "bool" else dtype.dtype.type(0) - 1 if dtype.kind == "int" else ~dtype.dtype.type(0)
        )
    return 1 if name == "prod" else 0


def reduce_nodes(f: Combine, nodes: Nodes, axes: tuple[int, ...], start: int) -> Nodes:
    """Combine nodes along some axes, in order."""
    kept = [d for d in range(nodes.ndim) if d not in axes]
    shape = tuple(nodes.shape[d] for d in kept)
    depth = math.prod(nodes.shape[d] for d in axes)
    columns = nodes.transpose(*kept, *axes).reshape(math.prod(shape), depth).tolist()
    combined = [reduce(f, column) if column else start for column in columns]
    return np.array(combined, dtype=np.int64).reshape(shape)


def reduce_array(low: Lowering, x: Array, name: str, axes: tuple[int, ...]) -> Array:
    """Combine an array along some axes by the named operation."""
    g, f = low.graph, _combine(low, name)
    start = g.const(neutral_element(name, x.type), x.type)
    shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    inner = tuple(d - 1 for d in axes if d)
    if not axes:
        return x
    if not x.in_rows:
        return low.elements(reduce_nodes(f, x.nodes(), axes, start), x.type)
    if 0 not in axes:
        rows = RowArray(g, shape, x.type, lambda i: reduce_nodes(f, x.row(i), inner, start))
        return rows if is_large(shape) else rows.materialize()
    loop = g.begin_loop(x.shape[0])
    row = reduce_nodes(f, x.row(loop.counter), inner, start)
    carries = [g.add_carry(loop, start) for _ in range(row.size)]
    loop.nexts = [f(c, r) for c, r in zip(carries, row.reshape(-1).tolist(), strict=True)]
    g.end_loop(loop)
    result = np.array([g.carry_result(loop, k) for k in range(row.size)], dtype=np.int64)
    return low.elements(result.reshape(shape), x.type)


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def _reduce(low: Lowering, eqn: Equation, x: Array) -> Array:
    return reduce_array(low, x, eqn.primitive.name.removeprefix("reduce_"), tuple(map(int, eqn.params["axes"])))


@rule("argmax", "argmin")
def _arg_extremum(low: Lowering, eqn: Equation, x: Array) -> Array:
    g = low.graph
    (axis,) = eqn.params["axes"]
    dtype = low.type_of(eqn.outvars[0].aval)
    better = "gt" if eqn.primitive.name == "argmax" else "lt"
    candidates = np.moveaxis(x.nodes(), axis, 0)

    def first(*column: int) -> int:
        best, where = column[0], g.const(0, dtype)
        for k, value in enumerate(column[1:], 1):
            wins = g.compare(better, value, best)
            if x.type.kind == "float":
                wins = g.logical_or(wins, g.compare("ne", value, value))
                wins = g.logical_and(wins, g.compare("eq", best, best))
            best, where = g.select(wins, value, best), g.select(wins, g.const(k, dtype), where)
        return where

    return low.elements(map_nodes(first, *candidates), dtype)


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(low: Lowering, eqn: Equation, x: Array) -> Array:
    name, axis = eqn.primitive.name.removeprefix("cum"), eqn.params["axis"]
    if name == "logsumexp":
        raise low.unsupported("the primitive `cumlogsumexp` is not supported")
    f = _combine(low, name)
    nodes = np.moveaxis(x.nodes(), axis, 0).copy()
    order = range(len(nodes))[::-1] if eqn.params["reverse"] else range(len(nodes))
    for before, here in itertools.pairwise(order):
        nodes[here] = map_nodes(f, nodes[before], nodes[here])
    return low.elements(np.moveaxis(nodes, 0, axis), x.type)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window(low: Lowering, eqn: Equation, x: Array) -> Array:
    name, p = eqn.primitive.name.removeprefix("reduce_window_"), eqn.params
    start = low.graph.const(neutral_element(name, x.type), x.type)
    if any(d != 1 for d in p["base_dilation"]):
        raise low.unsupported("a reduce_window with base dilation is not supported")
    padded = np.pad(x.nodes(), p["padding"], constant_values=start)
    shape = eqn.outvars[0].aval.shape
    result = np.full(shape, start)
    for offset in np.ndindex(*p["window_dimensions"]):
        cut = tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offset, p["window_dilation"], shape, p["window_strides"], strict=True)
        )
        result = map_nodes(_combine(low, name), result, padded[cut])
    return low.elements(result, x.type)


@rule("platform_index")
def _platform_index(low: Lowering, eqn: Equation) -> Array:
    platforms = eqn.params["platforms"]
    chosen = next(k for k, names in enumerate(platforms) if names is None or "cpu" in names)
    return low.elements(np.array(low.graph.const(chosen, I32)), I32)
