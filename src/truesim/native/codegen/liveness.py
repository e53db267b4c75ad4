"""Dead-code elimination, early exit of loops, and shared reciprocals."""

from collections import defaultdict
from collections.abc import Iterable

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.graph import Loop
from truesim.native.lowering.types import BOOL, MemoryType, ScalarType


def prune(g: Algebra, roots: Iterable[int]) -> set[int]:
    """Find the nodes needed to compute the roots, and remove unused carries and stacks from loops."""
    live: set[int] = set()
    stack = list(roots)
    while stack:
        n = stack.pop()
        if n in live:
            continue
        live.add(n)
        op = g.ops[n]
        if op == "loop":
            loop = g.loops[g.attrs[n]]
            stack += [loop.carries[loop.gate]] if loop.gate is not None else []
        elif op == "carry":
            region, k = g.attrs[n]
            loop = g.loops[region]
            stack += [loop.inits[k], loop.nexts[k], loop.node]
            stack += [m for w in loop.writes if w.carry == k for m in w.nodes()]
        elif op in ("result", "stack"):
            loop = g.loops[g.attrs[g.args[n][0]]]
            k = g.attrs[n]
            if op == "result":
                stack.append(loop.carries[k])
            else:
                stack += [loop.stacks[k].start, *loop.stacks[k].elements]
            stack.append(loop.node)
        else:
            stack += g.args[n]
    for n in sorted(live):
        if g.ops[n] == "loop":
            _prune_loop(g, n, live)
    return live


def _prune_loop(g: Algebra, n: int, live: set[int]) -> None:
    loop = g.loops[g.attrs[n]]
    loop.live_carries = [k for k, c in enumerate(loop.carries) if c in live]
    loop.live_stacks = [k for k in range(len(loop.stacks)) if g.stack_memory(loop, k) in live]
    inits = [loop.inits[k] for k in loop.live_carries]
    g.args[n] = (*inits, *g.free_nodes(loop, loop.roots()))
    if loop.gate is None and not loop.live_stacks and not loop.live_writes():
        loop.gate = next((k for k in loop.live_carries if _is_gate(g, loop, k)), None)


def _is_gate(g: Algebra, loop: Loop, k: int) -> bool:
    """True when carry `k` is a boolean that stays false once it is false, and then no other carry changes.

    Scans whose body is a `cond` between an iteration and the identity have such a gate: they can end when it is false
    in all lanes.
    """
    gate, after = loop.carries[k], loop.nexts[k]
    if g.types[gate] is not BOOL or not (g.ops[after] == "and" and gate in g.args[after]):
        return False
    return all(_is_unchanged(g, gate, loop.carries[j], loop.nexts[j]) for j in loop.live_carries or () if j != k)


def _is_unchanged(g: Algebra, gate: int, carry: int, after: int) -> bool:
    """True when a carry keeps its value where the gate is false."""
    if after == carry:
        return True
    op, args = g.ops[after], g.args[after]
    if op == "select":
        return args[0] == gate and args[2] == carry
    if op == "and":
        return carry in args and any(g.ops[a] == "not" and g.args[a] == (gate,) for a in args)
    return op == "or" and set(args) == {gate, carry}


def share_reciprocals(g: Algebra, live: set[int]) -> None:
    """Replace several divisions by the same number by multiplications with its reciprocal.

    Loops with such a division depend on the reciprocal afterwards, instead of the divisor.
    """
    by_divisor: dict[int, list[int]] = defaultdict(list)
    for n in sorted(live):
        if g.ops[n] == "div" and g.scalar(n).kind == "float" and g.values[g.args[n][1]] is None:
            by_divisor[g.args[n][1]].append(n)
    for divisor, quotients in by_divisor.items():
        if len(quotients) < 2:
            continue
        dtype = g.scalar(divisor)
        reciprocal = g.node("div", dtype, (g.const(1, dtype), divisor))
        live.add(reciprocal)
        for n in quotients:
            if n != reciprocal:
                g.ops[n], g.args[n] = "mul", (g.args[n][0], reciprocal)
    for n in sorted(live):
        if g.ops[n] == "loop":
            _prune_loop(g, n, live)


def is_free(g: Algebra, n: int) -> bool:
    """True when a node is recomputed at each use instead of being stored: constants, indices, loads."""
    dtype = g.types[n]
    if isinstance(dtype, MemoryType):
        return g.ops[n] != "array"
    assert isinstance(dtype, ScalarType)
    return dtype.kind == "index" or g.ops[n] in ("const", "splat", "load")
