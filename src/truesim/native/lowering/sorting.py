"""Rules of sorting, by networks of compare-exchange steps."""

import numpy as np

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.context import Equation, Lowering, rule
from truesim.native.lowering.elementwise import total_key
from truesim.native.lowering.types import BOOL, I32
from truesim.native.lowering.values import Array


def comparators(n: int) -> list[tuple[int, int]]:
    """Batcher's odd-even merge sort of n entries: pairs to be put in order, one after the other."""
    pairs = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (p * 2) == (i + j + k) // (p * 2):
                        pairs.append((i + j, i + j + k))
            k //= 2
        p *= 2
    return pairs


def sort_columns(g: Algebra, columns: list[list[int]], num_keys: int, descending: bool = False) -> None:
    """Sort parallel lists of nodes in place by the first `num_keys` lists; equal keys keep their order."""
    n = len(columns[0])
    order = [g.const(k, I32) for k in range(n)]
    keys = [[_sort_key(g, x) for x in column] for column in columns[:num_keys]]
    everything = [*keys, order, *columns]
    for a, b in comparators(n):
        swap = g.const(False, BOOL)
        for key in reversed([*keys, order]):
            greater = ("lt" if descending else "gt") if key is not order else "gt"
            equal = g.compare("eq", key[a], key[b])
            swap = g.logical_or(g.compare(greater, key[a], key[b]), g.logical_and(equal, swap))
        for column in everything:
            low, high = column[a], column[b]
            column[a], column[b] = g.select(swap, high, low), g.select(swap, low, high)


def _sort_key(g: Algebra, x: int) -> int:
    """Node to compare: floats by value, with -0 equal to 0 and NaN last."""
    dtype = g.scalar(x)
    if dtype.kind == "float":
        zero = g.const(0, dtype)
        plain = g.select(g.compare("eq", x, zero), zero, x)
        return total_key(g, g.select(g.compare("ne", x, x), g.const(np.nan, dtype), plain))
    return total_key(g, x)


@rule("sort")
def _sort(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    axis, num_keys = eqn.params["dimension"], eqn.params["num_keys"]
    moved = [np.moveaxis(x.nodes(), axis, -1).copy() for x in operands]
    for place in np.ndindex(*moved[0].shape[:-1]):
        columns = [m[place].tolist() for m in moved]
        sort_columns(low.graph, columns, num_keys)
        for m, column in zip(moved, columns, strict=True):
            m[place] = column
    return [low.elements(np.moveaxis(m, -1, axis), x.type) for m, x in zip(moved, operands, strict=True)]


@rule("top_k")
def _top_k(low: Lowering, eqn: Equation, x: Array) -> list[Array]:
    k, axis = eqn.params["k"], eqn.params.get("axis", len(x.shape) - 1)
    values = np.moveaxis(x.nodes(), axis, -1).copy()
    index_type = low.type_of(eqn.outvars[1].aval)
    places = low.graph.constants(np.broadcast_to(np.arange(values.shape[-1]), values.shape), index_type).copy()
    for row in np.ndindex(*values.shape[:-1]):
        columns = [values[row].tolist(), places[row].tolist()]
        sort_columns(low.graph, columns, 1, descending=True)
        values[row], places[row] = columns
    return [
        low.elements(np.moveaxis(nodes[..., :k], -1, axis), dtype)
        for nodes, dtype in ((values, x.type), (places, index_type))
    ]
