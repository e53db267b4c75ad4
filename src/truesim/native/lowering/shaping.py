"""Rules of primitives that only move elements; most cost nothing at run time."""

from functools import partial

import numpy as np

from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.types import I32
from truesim.native.lowering.values import (
    Array,
    MemoryArray,
    Nodes,
    RearrangedArray,
    RowArray,
    Shape,
    is_copied,
    is_huge,
    is_large,
)


def reshape_array(low: Lowering, x: Array, shape: Shape) -> Array:
    """Reshape an array."""
    if not x.in_rows:
        return low.elements(x.nodes().reshape(shape), x.type)
    if isinstance(x, RowArray) and shape and shape[0] == x.shape[0]:
        return RowArray(low.graph, shape, x.type, lambda i: x.row(i).reshape(shape[1:]))
    return MemoryArray(low.graph, x.memory(), shape, x.type)


@rule("reshape", "squeeze", "expand_dims")
def _reshape(low: Lowering, eqn: Equation, x: Array) -> Array:
    return reshape_array(low, x, eqn.outvars[0].aval.shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(low: Lowering, eqn: Equation, x: Array) -> Array:
    shape, dims = tuple(eqn.params["shape"]), [int(d) for d in eqn.params["broadcast_dimensions"]]

    def broadcast(nodes: Nodes, keep: list[int], target: Shape) -> Nodes:
        aligned = [1] * len(target)
        for size, d in zip(nodes.shape, keep, strict=True):
            aligned[d] = size
        return np.broadcast_to(nodes.reshape(aligned), target)

    if not (x.in_rows or is_huge(shape)):
        return low.elements(broadcast(x.nodes(), dims, shape), x.type)
    if dims and dims[0] == 0 and x.shape[0] == shape[0]:
        inner = [d - 1 for d in dims[1:]]
        return RowArray(low.graph, shape, x.type, lambda i: broadcast(x.row(i), inner, shape[1:]))
    if dims and dims[0] == 0:
        first = low.graph.index(0)
        inner = [d - 1 for d in dims[1:]]
        return RowArray(low.graph, shape, x.type, lambda i: broadcast(x.row(first), inner, shape[1:]))
    row = broadcast(x.nodes(), [d - 1 for d in dims], shape[1:])
    return RowArray(low.graph, shape, x.type, lambda i: row)


@rule("transpose")
def _transpose(low: Lowering, eqn: Equation, x: Array) -> Array:
    permutation = tuple(map(int, eqn.params["permutation"]))
    if x.in_rows and permutation[0] == 0:
        inner = [p - 1 for p in permutation[1:]]
        return RowArray(low.graph, eqn.outvars[0].aval.shape, x.type, lambda i: np.transpose(x.row(i), inner))
    if x.in_rows:
        return _transpose_in_memory(low, x, permutation)
    return low.elements(np.transpose(x.nodes(), permutation), x.type)


def _transpose_in_memory(low: Lowering, x: Array, permutation: tuple[int, ...]) -> Array:
    """Rows that load elements of `x` at permuted positions."""
    g, source = low.graph, x.memory()
    shape = tuple(x.shape[p] for p in permutation)
    places = np.transpose(np.arange(x.size).reshape(x.shape), permutation)
    stride = int(places[1].flat[0] - places[0].flat[0]) if shape[0] > 1 else 0

    def row(i: int) -> Nodes:
        start = g.index_mul(i, g.index(stride))
        loads = [g.load(source, g.index_add(start, g.index(int(k)))) for k in places[0].flat]
        return np.array(loads, dtype=np.int64).reshape(shape[1:])

    return RowArray(g, shape, x.type, row)


@rule("slice")
def _slice(low: Lowering, eqn: Equation, x: Array) -> Array:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    cut = tuple(slice(a, b, s) for a, b, s in zip(starts, limits, strides, strict=True))
    shape = eqn.outvars[0].aval.shape
    g = low.graph

    def row(i: int) -> Nodes:
        return x.row(g.index_add(g.index_mul(i, g.index(strides[0])), g.index(starts[0])))[cut[1:]]

    if not x.in_rows:
        if isinstance(x, MemoryArray | RearrangedArray) and is_copied(shape):
            return RearrangedArray(g, shape, x.type, row)
        return low.elements(x.nodes()[cut], x.type)
    if is_large(shape):
        return RowArray(g, shape, x.type, row)
    rows = [row(g.index(k)) for k in range(shape[0])]
    return low.elements(np.stack(rows).reshape(shape) if rows else np.zeros(shape, np.int64), x.type)


@rule("rev")
def _reverse(low: Lowering, eqn: Equation, x: Array) -> Array:
    dims, g = eqn.params["dimensions"], low.graph
    if not x.in_rows:
        return low.elements(np.flip(x.nodes(), dims), x.type)
    inner = tuple(d - 1 for d in dims if d)
    last = g.index(x.shape[0] - 1)

    def row(i: int) -> Nodes:
        return np.flip(x.row(g.index_sub(last, i) if 0 in dims else i), inner)

    return RowArray(g, x.shape, x.type, row)


@rule("concatenate")
def _concatenate(low: Lowering, eqn: Equation, *parts: Array) -> Array:
    axis, aval = eqn.params["dimension"], eqn.outvars[0].aval
    parts = tuple(p for p in parts if p.size)
    if len(parts) == 1:
        return parts[0]
    from_memory = any(isinstance(p, MemoryArray | RearrangedArray) and is_copied(p.shape) for p in parts)
    if axis == 0 and (from_memory or any(p.in_rows for p in parts)):
        return _concatenate_rows(low, parts, aval.shape)
    if any(p.in_rows for p in parts):
        return RowArray(
            low.graph, aval.shape, parts[0].type, lambda i: np.concatenate([p.row(i) for p in parts], axis - 1)
        )
    nodes = [p.nodes() for p in parts] or [np.zeros(aval.shape, np.int64)]
    return low.elements(np.concatenate(nodes, axis), low.type_of(aval))


def _concatenate_rows(low: Lowering, parts: tuple[Array, ...], shape: Shape) -> Array:
    """Concatenate arrays along the first axis; each row is selected by its index."""
    g = low.graph
    starts = np.cumsum([0, *(p.shape[0] for p in parts)])

    def row(i: int) -> Nodes:
        result: Nodes | None = None
        for part, start in zip(parts, starts.tolist(), strict=False):
            inner = g.index_sub(i, g.index(start))
            inner = g.index_extremum("min", inner, g.index(part.shape[0] - 1))
            here = part.row(g.index_extremum("max", inner, g.index(0)))
            is_later = g.compare("ge", g.splat(i, I32), g.const(start, I32))
            result = here if result is None else map_nodes(partial(g.select, is_later), here, result)
        assert result is not None
        return result

    return (RowArray if any(p.in_rows for p in parts) else RearrangedArray)(g, shape, parts[0].type, row)


@rule("pad")
def _pad(low: Lowering, eqn: Equation, x: Array, fill: Array) -> Array:
    shape = eqn.outvars[0].aval.shape
    config = tuple((int(before), int(after), int(interior)) for before, after, interior in eqn.params["padding_config"])
    if x.in_rows and config[0] == (0, 0, 0):
        return RowArray(low.graph, shape, x.type, lambda i: _pad_nodes(x.row(i), fill.scalar(), config[1:], shape[1:]))
    return low.elements(_pad_nodes(x.nodes(), fill.scalar(), config, shape), x.type)


def _pad_nodes(nodes: Nodes, fill: int, config: tuple[tuple[int, int, int], ...], shape: Shape) -> Nodes:
    result = np.full(shape, fill, dtype=np.int64)
    source, target = [], []
    for (before, _, interior), size, total in zip(config, nodes.shape, shape, strict=True):
        places = before + np.arange(size) * (interior + 1)
        inside = (places >= 0) & (places < total)
        source.append(np.flatnonzero(inside))
        target.append(places[inside])
    result[np.ix_(*target)] = nodes[np.ix_(*source)]
    return result


@rule("iota")
def _iota(low: Lowering, eqn: Equation) -> Array:
    shape, d = eqn.params["shape"], eqn.params["dimension"]
    dtype = low.type_of(eqn.outvars[0].aval)
    if is_huge(shape) and d == 0:
        g = low.graph
        return RowArray(g, shape, dtype, lambda i: np.full(shape[1:], g.convert(g.splat(i, I32), dtype)))
    aligned = np.arange(shape[d]).reshape([-1 if k == d else 1 for k in range(len(shape))])
    return low.literal(np.broadcast_to(aligned, shape).astype(dtype.dtype))


@rule("split")
def _split(low: Lowering, eqn: Equation, x: Array) -> list[Array]:
    cuts = np.cumsum(eqn.params["sizes"])[:-1]
    return [low.elements(part, x.type) for part in np.split(x.nodes(), cuts, axis=eqn.params["axis"])]


@rule("stack")
def _stack(low: Lowering, eqn: Equation, *parts: Array) -> Array:
    return low.elements(np.stack([p.nodes() for p in parts], axis=eqn.params["axis"]), parts[0].type)


@rule("unstack")
def _unstack(low: Lowering, eqn: Equation, x: Array) -> list[Array]:
    nodes = np.moveaxis(x.nodes(), eqn.params["axis"], 0)
    return [low.elements(part, x.type) for part in nodes]


@rule("tile")
def _tile(low: Lowering, eqn: Equation, x: Array) -> Array:
    return low.elements(np.tile(x.nodes(), eqn.params["reps"]), x.type)


@rule("empty", "empty2")
def _empty(low: Lowering, eqn: Equation) -> Array:
    aval = eqn.outvars[0].aval
    dtype = low.type_of(aval)
    zero = low.graph.const(0, dtype)
    if is_huge(aval.shape):
        return RowArray(low.graph, aval.shape, dtype, lambda i: np.full(aval.shape[1:], zero))
    return low.elements(np.full(aval.shape, zero), dtype)
