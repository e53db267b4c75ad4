"""Rules that write at computed positions: scatters and dynamic updates."""

from collections.abc import Callable, Sequence

import numpy as np

from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.indexing import Placement, clamped_start, in_bounds
from truesim.native.lowering.types import BOOL, I32
from truesim.native.lowering.values import Array, Nodes, RowArray, UpdatedArray

Combine = Callable[[int, int], int]


@rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub")
def _scatter(low: Lowering, eqn: Equation, x: Array, indices: Array, updates: Array) -> Array:
    """`x` with windows at the positions listed in `indices` combined with `updates`, as in lax.scatter."""
    g, p = low.graph, eqn.params
    dims = p["dimension_numbers"]
    window_dims = [int(d) for d in dims.update_window_dims]
    dropped = {int(d) for d in (*dims.inserted_window_dims, *dims.operand_batching_dims)}
    update_nodes, places = updates.nodes(), indices.nodes()
    batch_axes = [d for d in range(update_nodes.ndim) if d not in window_dims]
    lengths = iter([update_nodes.shape[d] for d in window_dims])
    sizes = tuple(1 if d in dropped else next(lengths) for d in range(len(x.shape)))
    placement = Placement.of(
        len(x.shape),
        dims.scatter_dims_to_operand_dims,
        dims.operand_batching_dims,
        dims.scatter_indices_batching_dims,
    )
    clip = p["mode"] is not None and p["mode"].name == "CLIP"
    combine = _combine(low, eqn.primitive.name)
    if x.in_rows and places.size == 1 and sizes == (1, *x.shape[1:]) and placement.mapped == (0,):
        start = int(places.reshape(-1)[0])
        inside = g.const(True, BOOL) if clip else in_bounds(low, [start], x.shape[:1], (1,))
        place = clamped_start(low, start, x.shape[0], 1)
        return _with_row(low, x, place, update_nodes.reshape(x.shape[1:]), (combine, inside))
    result = x.nodes().copy()
    for batch in np.ndindex(*places.shape[:-1]):
        starts = placement.starts(low, places[batch], batch)
        inside = g.const(True, BOOL) if clip else in_bounds(low, starts, x.shape, sizes)
        fitted = [
            clamped_start(low, s, n, size) if s is not None else g.const(0, I32)
            for s, n, size in zip(starts, x.shape, sizes, strict=True)
        ]
        source: list[int | slice] = [slice(None)] * update_nodes.ndim
        for axis, place in zip(batch_axes, batch, strict=True):
            source[axis] = place
        patch = update_nodes[tuple(source)].reshape(sizes)
        write(low, result, fitted, patch, (combine, inside))
    return low.elements(result, x.type)


def _replace(old: int, new: int) -> int:
    return new


def _combine(low: Lowering, name: str) -> Combine:
    g = low.graph
    return {
        "scatter": _replace,
        "scatter-add": g.add,
        "scatter-sub": g.sub,
        "scatter-mul": g.mul,
        "scatter-min": g.minimum,
        "scatter-max": g.maximum,
    }[name]


def write(low: Lowering, target: Nodes, starts: Sequence[int], patch: Nodes, how: tuple[Combine, int]) -> None:
    """Combine `patch` into `target`, in place, at a window whose start may differ between lanes."""
    g = low.graph
    combine, inside = how
    options: list[list[tuple[int, int]]] = []
    for start, n, size in zip(starts, target.shape, patch.shape, strict=True):
        value = g.values[start]
        fixed = [(int(value), g.const(True, BOOL))] if value is not None else None
        moving = ((k, g.compare("eq", start, g.const(k, I32))) for k in range(n - size + 1))
        options.append(fixed or list(moving))
    for choice in np.ndindex(*(len(o) for o in options)):
        chosen = [o[c] for o, c in zip(options, choice, strict=True)]
        here = inside
        for _, condition in chosen:
            here = g.logical_and(here, condition)
        cut = tuple(slice(k, k + size) for (k, _), size in zip(chosen, patch.shape, strict=True))
        target[cut] = map_nodes(lambda old, new, here=here: g.select(here, combine(old, new), old), target[cut], patch)


@rule("dynamic_update_slice")
def _dynamic_update_slice(low: Lowering, eqn: Equation, x: Array, update: Array, *starts: Array) -> Array:
    g = low.graph
    places = [clamped_start(low, s.scalar(), n, size) for s, n, size in zip(starts, x.shape, update.shape, strict=True)]
    if x.in_rows and update.shape[0] == 1 and all(g.is_const(p, 0) for p in places[1:]):
        return _with_row(low, x, places[0], update.nodes()[0], (_replace, g.const(True, BOOL)))
    result = x.nodes().copy()
    write(low, result, places, update.nodes(), (_replace, g.const(True, BOOL)))
    return low.elements(result, x.type)


def _with_row(low: Lowering, x: Array, place: int, new: Nodes, how: tuple[Combine, int]) -> Array:
    """A large array with one row changed."""
    g = low.graph
    combine, inside = how
    index = g.uniform(place)
    if combine is _replace:
        return UpdatedArray(x, place, new, inside)
    if index is not None:
        return UpdatedArray(x, place, map_nodes(combine, x.row(index), new), inside)

    def row(i: int) -> Nodes:
        here = g.logical_and(inside, g.compare("eq", g.splat(i, I32), place))
        return map_nodes(lambda new, old: g.select(here, combine(old, new), old), new, x.row(i))

    return RowArray(g, x.shape, x.type, row)
