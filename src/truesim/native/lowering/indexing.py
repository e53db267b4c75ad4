"""Rules that read at computed positions: dynamic slices and gathers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.types import BOOL, I32
from truesim.native.lowering.values import Array, Nodes, RowArray, Shape

_MAX_SELECT_CHAIN = 8
"""Maximum number of candidate positions for a chain of selects; beyond it, one load per lane is faster."""


def clamped_start(low: Lowering, start: int, dim: int, size: int) -> int:
    """Start of a window, clamped so that the window fits."""
    g = low.graph
    wide = g.convert(start, I32) if g.scalar(start).bits < 32 else start
    zero, last = (g.const(v, g.scalar(wide)) for v in (0, dim - size))
    return g.convert(g.minimum(g.maximum(wide, zero), last), I32)


def window(low: Lowering, x: Array, starts: Sequence[int], sizes: Shape) -> Nodes:
    """Elements of `x` in a window; `starts` are I32 nodes already in range."""
    g = low.graph
    known = [g.values[s] for s in starts]
    moving = [d for d, v in enumerate(known) if v is None]
    fixed = [0 if v is None else int(v) for v in known]
    if not moving:
        return window_at(x, fixed, sizes)
    index = g.uniform(starts[0])
    if moving == [0] and index is not None:
        inner = tuple(slice(f, f + s) for f, s in zip(fixed[1:], sizes[1:], strict=True))
        rows = [x.row(g.index_add(index, g.index(k)))[inner] for k in range(sizes[0])]
        return np.stack(rows).reshape(sizes)
    (d, *others) = moving
    if not others and x.shape[d] - sizes[d] < _MAX_SELECT_CHAIN and g.uniform(starts[d]) is None:
        return _chain(low, x, (starts[d], d), fixed, sizes)
    return _loads(low, x, starts, sizes)


def window_at(x: Array, starts: Sequence[int], sizes: Shape) -> Nodes:
    """Elements of `x` in a window at a fixed position."""
    cut = tuple(slice(f, f + s) for f, s in zip(starts, sizes, strict=True))
    if isinstance(x, RowArray):
        g = x.graph
        rows = [x.row(g.index(starts[0] + k))[cut[1:]] for k in range(sizes[0])]
        return np.stack(rows).reshape(sizes)
    return x.nodes()[cut]


def _chain(low: Lowering, x: Array, moving: tuple[int, int], fixed: list[int], sizes: Shape) -> Nodes:
    g = low.graph
    start, d = moving
    last = x.shape[d] - sizes[d]
    result = window_at(x, [*fixed[:d], last, *fixed[d + 1 :]], sizes)
    for k in reversed(range(last)):
        here = g.compare("eq", start, g.const(k, I32))
        candidate = window_at(x, [*fixed[:d], k, *fixed[d + 1 :]], sizes)
        result = map_nodes(lambda a, b, here=here: g.select(here, a, b), candidate, result)
    return result


def _loads(low: Lowering, x: Array, starts: Sequence[int], sizes: Shape) -> Nodes:
    g, source = low.graph, x.memory()
    strides = [math.prod(x.shape[d + 1 :]) for d in range(len(x.shape))]
    base, offset = flat_place(low, starts, strides)
    places = (sum(p * s for p, s in zip(place, strides, strict=True)) for place in np.ndindex(*sizes))
    loads = [g.gather(source, base, offset + p) for p in places]
    return np.array(loads, dtype=np.int64).reshape(sizes)


def flat_place(low: Lowering, starts: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Row-major position of a window's first element: a node plus a fixed offset."""
    g = low.graph
    base, offset = g.const(0, I32), 0
    for start, stride in zip(starts, strides, strict=True):
        value = g.values[start]
        if value is not None:
            offset += int(value) * stride
        else:
            base = g.add(base, g.mul(start, g.const(stride, I32)))
    return base, offset


@rule("dynamic_slice")
def _dynamic_slice(low: Lowering, eqn: Equation, x: Array, *starts: Array) -> Array:
    sizes = tuple(map(int, eqn.params["slice_sizes"]))
    places = [clamped_start(low, s.scalar(), n, size) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
    return low.elements(window(low, x, places, sizes), x.type)


def in_bounds(low: Lowering, starts: Sequence[int | None], shape: Shape, sizes: Shape) -> int:
    """Boolean node: the window lies inside an array of the given shape."""
    g = low.graph
    inside = g.const(True, BOOL)
    for start, n, size in zip(starts, shape, sizes, strict=True):
        if start is None:
            continue
        dtype = g.scalar(start)
        if dtype.kind != "uint":
            inside = g.logical_and(inside, g.compare("ge", start, g.const(0, dtype)))
        inside = g.logical_and(inside, g.compare("le", start, g.const(n - size, dtype)))
    return inside


@dataclass(frozen=True)
class Placement:
    """Mapping of an index vector to the position of a window in the operand."""

    rank: int
    mapped: tuple[int, ...]
    """Operand axis of each entry of the index vector."""
    operand_batch: tuple[int, ...]
    index_batch: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, *axes: Sequence[Any]) -> "Placement":
        """Placement with axes as JAX gives them, which may be NumPy integers."""
        mapped, operand_batch, index_batch = (tuple(map(int, a)) for a in axes)
        return cls(rank, mapped, operand_batch, index_batch)

    def starts(self, low: Lowering, index: Nodes, batch: tuple[int, ...]) -> list[int | None]:
        """Start node along each operand axis; None where the window starts at zero."""
        starts: list[int | None] = [None] * self.rank
        for d, node in zip(self.mapped, index.tolist(), strict=True):
            starts[d] = node
        for d, axis in zip(self.operand_batch, self.index_batch, strict=True):
            starts[d] = low.graph.const(batch[axis], I32)
        return starts


@rule("gather")
def _gather(low: Lowering, eqn: Equation, x: Array, indices: Array) -> Array:
    """Windows of `x` at the positions listed in `indices` (last axis), as in lax.gather."""
    g, p, aval = low.graph, eqn.params, eqn.outvars[0].aval
    dims, sizes = p["dimension_numbers"], tuple(int(s) for s in p["slice_sizes"])
    mode = p["mode"].name if p["mode"] is not None else "CLIP"
    offset_dims = [int(d) for d in dims.offset_dims]
    dropped = {int(d) for d in (*dims.collapsed_slice_dims, *dims.operand_batching_dims)}
    batch_axes = [d for d in range(len(aval.shape)) if d not in offset_dims]
    placement = Placement.of(
        len(x.shape), dims.start_index_map, dims.operand_batching_dims, dims.start_indices_batching_dims
    )
    result = np.zeros(aval.shape, dtype=np.int64)
    places = indices.nodes()
    for batch in np.ndindex(*places.shape[:-1]):
        starts = placement.starts(low, places[batch], batch)
        fitted = [
            clamped_start(low, s, n, size) if s is not None else g.const(0, I32)
            for s, n, size in zip(starts, x.shape, sizes, strict=True)
        ]
        taken = window(low, x, fitted, sizes)
        if mode == "FILL_OR_DROP":
            fill = g.const(fill_value(x, p["fill_value"]), x.type)
            inside = in_bounds(low, starts, x.shape, sizes)
            taken = map_nodes(lambda t, inside=inside, fill=fill: g.select(inside, t, fill), taken)
        target: list[int | slice] = [slice(None)] * len(aval.shape)
        for axis, place in zip(batch_axes, batch, strict=True):
            target[axis] = place
        kept = tuple(n for d, n in enumerate(sizes) if d not in dropped)
        result[tuple(target)] = taken.reshape(kept)
    return low.elements(result, x.type)


def fill_value(x: Array, given: object) -> object:
    """Value of an out-of-range read."""
    if given is not None:
        return given
    if x.type.kind == "float":
        return np.nan
    if x.type.kind == "bool":
        return True
    limits = np.iinfo(x.type.dtype)
    return limits.min if x.type.kind == "int" else limits.max
