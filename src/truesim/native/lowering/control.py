"""Rules of control flow: calls are inlined, loops become native loops, branches become selects."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend import core as jex

from truesim.native.lowering.context import Equation, Lowering, map_nodes, rule
from truesim.native.lowering.graph import Loop
from truesim.native.lowering.types import BOOL, I32, ScalarType
from truesim.native.lowering.values import (
    Array,
    MemoryArray,
    Nodes,
    RearrangedArray,
    RowArray,
    UpdatedArray,
    is_large,
    store_row,
)

_MAX_UNROLLED_OPERATIONS = 256
"""Maximum number of scalar operations of an unrolled loop, over all iterations."""


@rule(
    "jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "remat", "custom_jvp_call",
    "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin", "xla_call",
)  # fmt: skip
def _call(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    inner = next(eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params)
    if isinstance(inner, jex.ClosedJaxpr):
        return low.run_closed(inner, operands)
    return low.run(inner, [], operands)


@rule("custom_linear_solve")
def _custom_linear_solve(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    lengths = eqn.params["const_lengths"]
    skipped = lengths.matvec + lengths.vecmat
    consts = operands[skipped : skipped + lengths.solve]
    right = operands[sum(lengths) :]
    return low.run_closed(eqn.params["jaxprs"].solve, (*consts, *right))


@rule("cond")
def _cond(low: Lowering, eqn: Equation, which: Array, *operands: Array) -> list[Array]:
    g, branches = low.graph, eqn.params["branches"]
    index = g.convert(which.scalar(), I32)
    value = g.values[index]
    if value is not None:
        return low.run_closed(branches[min(max(int(value), 0), len(branches) - 1)], operands)
    results: list[Array] | None = None
    for k in reversed(range(len(branches))):
        op = "eq" if 0 < k < len(branches) - 1 else ("le" if k == 0 else "ge")
        here = g.compare(op, index, g.const(k, I32))
        with low.active_where(here):
            values = low.run_closed(branches[k], operands)
        results = values if results is None else [
            blend_arrays(low, here, a, b) for a, b in zip(values, results, strict=True)
        ]  # fmt: skip
    assert results is not None
    return results


def blend_arrays(low: Lowering, condition: int, a: Array, b: Array) -> Array:
    """`a` in the lanes where the condition holds, else `b`."""
    if isinstance(a, UpdatedArray) and isinstance(b, MemoryArray) and _is_in(a.root(), b.memory()):
        return a.where(condition)
    if isinstance(b, UpdatedArray) and isinstance(a, MemoryArray) and _is_in(b.root(), a.memory()):
        return b.where(low.graph.logical_not(condition))
    select = lambda x, y: map_nodes(lambda p, q: low.graph.select(condition, p, q), x, y)  # noqa: E731
    return low.rowwise(a.shape, a.type, select, a, b)


@dataclass
class LoopCarries:
    """Carries of a loop under construction: the elements that vary, and the nodes that represent them."""

    low: Lowering
    initial: list[Array]
    known: dict[tuple[int, int], int | tuple[int, int]]
    """Elements (array, position) without a carry: a fixed node, or an integer (start, step) that grows by a step."""

    def begin(self, loop: Loop) -> list[Array]:
        """Arrays that the loop body reads."""
        g = self.low.graph
        arrays: list[Array] = []
        for k, array in enumerate(self.initial):
            if is_large(array.shape):
                node = g.add_carry(loop, array.memory())
                arrays.append(MemoryArray(g, node, array.shape, array.type))
                continue
            flat = [self._element(loop, k, j, n) for j, n in enumerate(array.nodes().reshape(-1).tolist())]
            nodes = np.array(flat, dtype=np.int64).reshape(array.shape)
            arrays.append(self.low.elements(nodes, array.type))
        return arrays

    def _element(self, loop: Loop, k: int, j: int, initial: int) -> int:
        g = self.low.graph
        known = self.known.get((k, j))
        if known is None:
            return g.add_carry(loop, initial)
        if isinstance(known, tuple):
            start, step = known
            grown = g.index_add(g.index_mul(loop.counter, g.index(step)), g.index(start))
            return g.splat(grown, g.scalar(initial))
        return known

    def end(self, loop: Loop, nexts: Sequence[Array]) -> None:
        """Set the next value of every carry."""
        for k, (array, following) in enumerate(zip(self.initial, nexts, strict=True)):
            if is_large(array.shape):
                loop.nexts.append(_next_memory(loop, following))
            else:
                flat = following.nodes().reshape(-1).tolist()
                loop.nexts += [n for j, n in enumerate(flat) if (k, j) not in self.known]

    def learn(self, current: Sequence[Array], nexts: Sequence[Array], counted: bool) -> bool:
        """Record the elements that need no carry; return True if there are new ones."""
        g, before = self.low.graph, len(self.known)
        for k, array in enumerate(self.initial):
            if is_large(array.shape):
                continue
            columns = (x.nodes().reshape(-1).tolist() for x in (array, current[k], nexts[k]))
            for j, (first, here, after) in enumerate(zip(*columns, strict=True)):
                if (k, j) in self.known:
                    continue
                if after in (here, first) and (after == here or g.values[first] is not None):
                    self.known[k, j] = first
                elif counted and (step := self._step(first, here, after)) is not None:
                    self.known[k, j] = step
        return len(self.known) > before

    def _step(self, first: int, here: int, after: int) -> tuple[int, int] | None:
        """(start, step) of an integer carry that grows by a constant."""
        g = self.low.graph
        start = g.values[first]
        if start is None or g.scalar(first).kind != "int" or g.ops[after] != "add" or here not in g.args[after]:
            return None
        (other,) = [a for a in g.args[after] if a != here] or [here]
        step = g.values[other]
        return None if step is None else (int(start), int(step))

    def results(self, loop: Loop, first: int = 0) -> list[Array]:
        """Arrays after the loop; `first` is the number of the first carry."""
        g = self.low.graph
        position = iter(range(first, len(loop.carries)))
        arrays: list[Array] = []
        for k, array in enumerate(self.initial):
            if is_large(array.shape):
                arrays.append(MemoryArray(g, g.carry_result(loop, next(position)), array.shape, array.type))
                continue
            nodes = [
                self._final(loop, k, j) if (k, j) in self.known else g.carry_result(loop, next(position))
                for j in range(array.size)
            ]
            arrays.append(self.low.elements(np.array(nodes, np.int64).reshape(array.shape), array.type))
        return arrays

    def _final(self, loop: Loop, k: int, j: int) -> int:
        known = self.known[k, j]
        if isinstance(known, int):
            return known
        assert loop.trips is not None
        start, step = known
        return self.low.graph.const(start + step * loop.trips, self.initial[k].type)


def _next_memory(loop: Loop, following: Array) -> int:
    """Next value of the large array whose carry comes next: the carry itself if rows are only written to it."""
    number = len(loop.nexts)
    if isinstance(following, UpdatedArray) and _is_in(following.root(), loop.carries[number]):
        writes = following.writes(number)
        if writes is not None:
            loop.writes += writes
            return loop.carries[number]
    memory = following.memory()
    if memory in loop.carries and memory != loop.carries[number]:  # two arrays that are swapped need a copy
        return RowArray(following.graph, following.shape, following.type, following.row).memory()
    return memory


def _is_in(x: Array, memory: int) -> bool:
    return isinstance(x, MemoryArray) and x.memory() == memory


@rule("scan")
def _scan(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    p = eqn.params
    consts, carry, xs = _split(operands, p["num_consts"], p["num_carry"])
    length, body = p["length"], p["jaxpr"]
    if length <= 1 or length * scalar_work(body.jaxpr) <= _MAX_UNROLLED_OPERATIONS:
        return _unrolled_scan(low, eqn, consts, carry, xs)
    g = low.graph
    carried = LoopCarries(low, list(carry), {})
    while True:
        loop = g.begin_loop(length)
        index = g.index_sub(g.index(length - 1), loop.counter) if p["reverse"] else loop.counter
        current = carried.begin(loop)
        slices = [low.elements(x.row(index), x.type) for x in xs]
        results = low.run_closed(body, (*consts, *current, *slices))
        nexts, ys = results[: len(carry)], results[len(carry) :]
        if not carried.learn(current, nexts, counted=True):
            break
        g.abandon_loop(loop)
    carried.end(loop, nexts)
    rows = [y.nodes() for y in ys]
    types = [y.type for y in ys]
    stacks = [stack_rows(low, loop, index, row, dtype) for row, dtype in zip(rows, types, strict=True)]
    g.end_loop(loop)
    return [*carried.results(loop), *(finish() for finish in stacks)]


def _split(operands: Sequence[Array], *counts: int) -> list[Sequence[Array]]:
    bounds = np.cumsum([0, *counts])
    parts = [operands[a:b] for a, b in itertools.pairwise(bounds)]
    return [*parts, operands[bounds[-1] :]]


def stack_rows(low: Lowering, loop: Loop, index: int, row: Nodes, dtype: ScalarType) -> Callable[[], Array]:
    """Function that returns the stacked array once the loop is closed."""
    g = low.graph
    assert loop.trips is not None
    shape = (loop.trips, *row.shape)
    if all(g.depth[g.regions[n]] < g.depth[loop.region] for n in row.reshape(-1).tolist()):
        return lambda: RearrangedArray(g, shape, dtype, lambda _: row)
    k = store_row(g, loop, index, row, shape, dtype)
    return lambda: MemoryArray(g, g.stack_memory(loop, k), shape, dtype)


def _unrolled_scan(
    low: Lowering, eqn: Equation, consts: Sequence[Array], carry: Sequence[Array], xs: Sequence[Array]
) -> list[Array]:
    p, g = eqn.params, low.graph
    order = range(p["length"])[::-1] if p["reverse"] else range(p["length"])
    ys: dict[int, Sequence[Array]] = {}
    for t in order:
        slices = [low.elements(x.row(g.index(t)), x.type) for x in xs]
        results = low.run_closed(p["jaxpr"], (*consts, *carry, *slices))
        carry, ys[t] = results[: len(carry)], results[len(carry) :]
    stacked: list[Array] = []
    for k, var in enumerate(eqn.outvars[len(carry) :]):
        rows = [ys[t][k].nodes() for t in range(p["length"])]
        nodes = np.stack(rows) if rows else np.zeros(var.aval.shape, np.int64)
        stacked.append(low.elements(nodes.reshape(var.aval.shape), low.type_of(var.aval)))
    return [*carry, *stacked]


def scalar_work(jaxpr: Any) -> int:
    """Approximate number of scalar operations of a jaxpr, nested ones included."""
    total = 0
    for eqn in jaxpr.eqns:
        parameters = [j for p in eqn.params.values() for j in (p if isinstance(p, tuple) else (p,))]
        nested = [getattr(j, "jaxpr", j) for j in parameters if isinstance(j, jex.ClosedJaxpr | jex.Jaxpr)]
        length = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        length *= 1 + eqn.params["count"] if eqn.primitive.name == "columns" else 1
        total += length * sum(map(scalar_work, nested))
        if not nested:
            total += sum(math.prod(v.aval.shape) for v in eqn.outvars)
        if eqn.primitive.name == "while":
            total += _MAX_UNROLLED_OPERATIONS
    return total


@rule("while")
def _while(low: Lowering, eqn: Equation, *operands: Array) -> list[Array]:
    """Loop that runs while any lane is active; inactive lanes keep their values.

    Under `vmap` the predicate has axes; each entry along them stops separately.
    """
    p, g = eqn.params, low.graph
    cond_consts, body_consts, initial = _split(operands, p["cond_nconsts"], p["body_nconsts"])

    def predicate(values: Sequence[Array]) -> Nodes:
        return low.run_closed(p["cond_jaxpr"], (*cond_consts, *values))[0].nodes()

    alive = predicate(initial)
    if low.mask is not None:
        outer = low.mask
        alive = map_nodes(lambda a: g.logical_and(a, outer), alive)
    carried = LoopCarries(low, [low.elements(alive, BOOL), *initial], {})
    while True:
        loop = g.begin_loop(None)
        running = g.add_carry(loop, _any(low, alive))
        current = carried.begin(loop)
        active = current[0].nodes()
        with low.active_where(running):
            body = low.run_closed(p["body_jaxpr"], (*body_consts, *current[1:]))
        nexts = [_keep_inactive(low, active, b, c) for b, c in zip(body, current[1:], strict=True)]
        still = map_nodes(g.logical_and, active, predicate(nexts))
        following = [low.elements(still, BOOL), *nexts]
        if not carried.learn(current, following, counted=False):
            break
        g.abandon_loop(loop)
    loop.nexts.append(_any(low, still))
    carried.end(loop, following)
    g.end_loop(loop)
    return carried.results(loop, first=1)[1:]


def _any(low: Lowering, flags: Nodes) -> int:
    result = low.graph.const(False, BOOL)
    for flag in flags.reshape(-1).tolist():
        result = low.graph.logical_or(result, flag)
    return result


def _keep_inactive(low: Lowering, active: Nodes, new: Array, old: Array) -> Array:
    """New value where active, else the old one; `active` covers leading axes."""
    if active.ndim == 0:
        return blend_arrays(low, int(active), new, old)
    select = low.graph.select

    def blend(a: Nodes, b: Nodes, flags: Nodes = active) -> Nodes:
        aligned = flags.reshape(flags.shape + (1,) * (a.ndim - flags.ndim))
        return map_nodes(select, np.broadcast_to(aligned, a.shape), a, b)

    if not (new.in_rows or old.in_rows):
        return low.elements(blend(new.nodes(), old.nodes()), new.type)
    flags = low.elements(active, BOOL)
    return RowArray(low.graph, new.shape, new.type, lambda i: blend(new.row(i), old.row(i), flags.row(i)))
