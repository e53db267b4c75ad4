"""Rule of `columns`: values of a function and their derivatives along several directions, from one tangent.

The jaxpr has one tangent for every number that moves. It is lowered once, with a *seed* in place of each tangent. Every
node that depends on seeds is then computed for each direction (column) in which it is not literally zero: sums merge
the columns of their operands, products scale them. Sparsity between columns is exact and costs nothing to find. Where
this would be too long, the same jaxpr is lowered as the body of a loop over the columns; operations that are not scalar
(such as loops that carry a tangent) are lowered from the jaxpr of `vmap`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from truesim.native.lowering.context import Equation, Lowering, rule
from truesim.native.lowering.control import stack_rows
from truesim.native.lowering.types import MemoryType
from truesim.native.lowering.values import Array, is_huge

MAX_UNROLLED_COLUMNS = 150_000
"""Maximum number of operations of all columns; larger gives faster code that takes longer to compile."""
_NOT_SCALAR = frozenset({"loop", "carry", "result", "stack", "array", "load", "gather", "rare", "counter"})

Column = dict[int, int]
"""Node of each column in which a number is not literally zero."""


class _NotScalarError(Exception):
    """Raised when a tangent passes through memory or a loop."""


class _TooLongError(Exception):
    """Raised when the columns have too many operations."""


def expand(jaxpr: jex.Jaxpr, count: int, moving: int, values: int, *operands: Any) -> list[Any]:
    """The primitive in terms of `vmap`.

    Args:
        jaxpr: From constants, arguments and tangents of the last `moving` arguments to values and their tangents.
        count: Number of columns.
        moving: Number of arguments that move.
        values: Number of values.
        operands: Constants, arguments, and the tangents with `count` columns in front.
    """
    given, tangents = operands[: len(operands) - moving], operands[len(operands) - moving :]
    constants = len(jaxpr.constvars)
    f = jex.jaxpr_as_fun(jex.ClosedJaxpr(jaxpr, list(given[:constants])))
    along = jax.vmap(lambda *tangents: f(*given[constants:], *tangents), axis_size=max(count, 1))
    results = along(*(t if count else np.zeros((1, *t.shape[1:]), t.dtype) for t in tangents))
    return [*(x[0] for x in results[:values]), *(x[:count] for x in results[values:])]


@rule("columns")
def _columns(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    jaxpr, count, moving, values = (eqn.params[k] for k in ("jaxpr", "count", "moving", "values"))
    given, tangents = operands[: len(operands) - moving], operands[len(operands) - moving :]
    shapes = [*(x.shape for x in tangents), *(v.aval.shape for v in eqn.outvars[values:])]
    if count and any(map(is_huge, shapes)):
        return _looped(low, jaxpr, given, tangents, values)
    if count:
        try:
            return _unrolled(low, jaxpr, given, tangents, (count, values))
        except _TooLongError:
            return _looped(low, jaxpr, given, tangents, values)
        except _NotScalarError:
            pass
    avals = [v.aval for v in eqn.invars]
    closed = jax.make_jaxpr(lambda *args: expand(jaxpr, count, moving, values, *args))(*avals)
    return low.run_closed(closed, operands)


def _evaluate(low: Lowering, jaxpr: jex.Jaxpr, given: Sequence[Array], tangents: Sequence[Array]) -> list[Array]:
    constants = len(jaxpr.constvars)
    return low.run(jaxpr, given[:constants], [*given[constants:], *tangents])


def _unrolled(
    low: Lowering, jaxpr: jex.Jaxpr, given: Sequence[Array], tangents: Sequence[Array], sizes: tuple[int, int]
) -> list[Array]:
    """All columns as straight-line code; `sizes` are the numbers of columns and of values."""
    g = low.graph
    count, values = sizes
    table = _ColumnTable(low, count)
    seeds = [table.seed(t) for t in tangents]
    results = _evaluate(low, jaxpr, given, seeds)
    table.over([n for t in results[values:] for n in t.nodes().reshape(-1).tolist()])
    columns = []
    for tangent in results[values:]:
        nodes = tangent.nodes().reshape(-1).tolist()
        block = np.full((count, len(nodes)), g.small(0, tangent.type), np.int64)
        for j, n in enumerate(nodes):
            own = table.columns.get(n)
            if own is None:
                block[:, j] = n
            else:
                for c, v in own.items():
                    block[c, j] = v
        columns.append(low.elements(block.reshape(count, *tangent.shape), tangent.type))
    return [*results[:values], *columns]


class _ColumnTable:
    """Columns of the nodes that depend on seeds. A node without an entry is the same in all columns."""

    def __init__(self, low: Lowering, count: int):
        self.g = low.graph
        self.low = low
        self.count = count
        self.columns: dict[int, Column] = {}

    def seed(self, tangent: Array) -> Array:
        """One tangent in place of its columns."""
        g = self.g
        nodes = tangent.nodes().reshape(self.count, -1)
        seeds = []
        for entries in nodes.T.tolist():
            own = {c: n for c, n in enumerate(entries) if not g.is_const(n, 0)}
            if own:
                seeds.append(g.node("seed", tangent.type, (), len(g.ops)))
                self.columns[seeds[-1]] = own
            else:
                seeds.append(g.small(0, tangent.type))
        return self.low.elements(np.array(seeds, np.int64).reshape(tangent.shape[1:]), tangent.type)

    def over(self, roots: list[int]) -> None:
        """Compute the columns of all nodes between the seeds and the roots."""
        order = self._dependent(roots)
        self._check(order)
        for n in order:
            self.columns[n] = self._of(n)

    def _dependent(self, roots: list[int]) -> list[int]:
        """Nodes that depend on seeds, in order of creation."""
        if not self.columns:
            return []
        args, first = self.g.args, min(self.columns)
        seen: set[int] = set()
        stack = [n for n in roots if n >= first]
        while stack:
            n = stack.pop()
            if n not in seen:
                seen.add(n)
                stack += [a for a in args[n] if a >= first and a not in seen]
        moves = set(self.columns)
        for n in sorted(seen):
            if not moves.isdisjoint(args[n]):
                moves.add(n)
        return sorted(moves - self.columns.keys())

    def _check(self, order: list[int]) -> None:
        """Raise an error if the columns are not straight-line code, or too long."""
        g = self.g
        masks = {n: sum(1 << c for c in own) for n, own in self.columns.items()}
        total = 0
        for n in order:
            if g.ops[n] in _NOT_SCALAR or isinstance(g.types[n], MemoryType):
                raise _NotScalarError
            mask = 0
            for a in g.args[n]:
                mask |= masks.get(a, 0)
            masks[n] = mask
            total += mask.bit_count()
        if total > MAX_UNROLLED_COLUMNS:
            raise _TooLongError

    def _of(self, n: int) -> Column:
        """Columns of a node from those of its operands."""
        g = self.g
        op, args = g.ops[n], g.args[n]
        own = [self.columns.get(a) for a in args]
        if op == "neg" and own[0] is not None:
            return {c: g.neg(v) for c, v in own[0].items()}
        if op in ("add", "sub") and own[0] is not None and own[1] is not None:
            return self._sum(op == "sub", own[0], own[1])
        if op == "mul" and (own[0] is None or own[1] is None):
            moving, factor = (own[0], args[1]) if own[0] is not None else (own[1], args[0])
            return {c: g.mul(v, factor) for c, v in (moving or {}).items()}
        if op == "div" and own[0] is not None and own[1] is None:
            return {c: g.div(v, args[1]) for c, v in own[0].items()}
        if op == "convert" and own[0] is not None:
            return {c: g.convert(v, g.scalar(n)) for c, v in own[0].items()}
        if op == "select" and own[0] is None and all(x is not None or g.is_const(a, 0) for a, x in _cases(args, own)):
            zero, (x, y) = g.small(0, g.scalar(n)), [x or {} for x in own[1:]]
            return {c: g.select(args[0], x.get(c, zero), y.get(c, zero)) for c in {**x, **y}}
        return {c: self._rebuilt(n, [self._at(a, c) for a in args]) for c in range(self.count)}

    def _sum(self, minus: bool, x: Column, y: Column) -> Column:
        g = self.g
        total = dict(x)
        for c, v in y.items():
            before = total.get(c)
            if before is None:
                total[c] = g.neg(v) if minus else v
            else:
                total[c] = g.sub(before, v) if minus else g.add(before, v)
        return total

    def _at(self, n: int, column: int) -> int:
        own = self.columns.get(n)
        return n if own is None else own.get(column, self.g.small(0, self.g.scalar(n)))

    def _rebuilt(self, n: int, args: list[int]) -> int:
        """Any scalar operation on other operands."""
        g = self.g
        simplified: dict[str, Callable[..., int]] = {
            "add": g.add, "sub": g.sub, "mul": g.mul, "div": g.div, "select": g.select,
        }  # fmt: skip
        if g.ops[n] in simplified:
            return simplified[g.ops[n]](*args)
        dtype = g.scalar(n)
        return g.convert(args[0], dtype) if g.ops[n] == "convert" else g.apply(g.ops[n], *args, dtype=dtype)


def _cases(args: tuple[int, ...], own: list[Column | None]) -> list[tuple[int, Column | None]]:
    """Both cases of a select with their columns."""
    return list(zip(args[1:], own[1:], strict=True))


def _looped(
    low: Lowering, jaxpr: jex.Jaxpr, given: Sequence[Array], tangents: Sequence[Array], values: int
) -> list[Array]:
    """A loop over the columns; what does not depend on tangents is computed once, outside of it."""
    g = low.graph
    count = tangents[0].shape[0]
    loop = g.begin_loop(count)
    rows = [low.elements(t.row(loop.counter), t.type) for t in tangents]
    results = _evaluate(low, jaxpr, given, rows)
    finishes = [stack_rows(low, loop, loop.counter, x.nodes(), x.type) for x in results[values:]]
    g.end_loop(loop)
    return [*results[:values], *(finish() for finish in finishes)]
