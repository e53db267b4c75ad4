"""Scheduling: live nodes in order, cut into chunks, with workspace slots for values that outlive a chunk.

LLVM compiles one huge basic block slowly and badly. Each block (straight-line code of a region) is therefore cut into
chunks of about a thousand operations, each a function of its own. Values needed by another chunk go through slots in
the workspace, which are reused after the last use. Small loops stay inside a chunk, with their carries in registers;
large ones have blocks of their own, with their carries in slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from truesim.native.codegen.liveness import is_free, prune, share_reciprocals
from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.graph import Loop
from truesim.native.lowering.types import MemoryType

CHUNK_OPERATIONS = 1000
"""Maximum number of operations of a chunk; larger chunks compile more slowly."""
_MAX_INLINE_OPERATIONS = 400
"""Maximum number of operations of a loop body, nested loops included, that stays inside a chunk."""
_WEIGHTS = {"gather": 8, "rare": 20}
"""Approximate number of instructions of expensive operations; all others count as one."""


@dataclass(frozen=True)
class Sink:
    """A value to be written to memory: element `index` (a node) of memory node or output `target`."""

    value: int
    target: int
    index: int


@dataclass
class CodeChunk:
    """Straight-line code that becomes one function."""

    time: int
    region: int
    nodes: list[int] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    carries: list[tuple[int, int]] = field(default_factory=list)
    """(value, carry) pairs: carries that take their next value at the end of this chunk."""


@dataclass
class NestedLoop:
    """A loop with code blocks of its own; its times enclose those of its body."""

    loop: Loop
    start: int
    block: "CodeBlock"
    end: int = -1


@dataclass
class CodeBlock:
    """Code of one region, in order."""

    items: list[CodeChunk | NestedLoop] = field(default_factory=list)


@dataclass
class Schedule:
    """Order, slots and memory of the code of a graph."""

    block: CodeBlock
    order: dict[int, list[int]]
    """Live nodes of each region that need code, in order."""
    slots: dict[int, int]
    """Slot number of each value that is stored in the workspace."""
    slot_count: int
    arrays: list[int]
    """Memory nodes that need space in the workspace, including inputs that are read."""
    inlined: set[int]
    """Regions of the loops that stay inside a chunk."""


def schedule(g: Algebra, sinks: list[Sink], memories: list[int]) -> Schedule:
    """Schedule the code that performs all sinks and computes the given memory nodes."""
    roots = [*(s.value for s in sinks), *memories]
    live = prune(g, roots)
    share_reciprocals(g, live)
    return _Scheduler(g, live, roots).run(sinks)


def _depth_first(g: Algebra, roots: list[int]) -> dict[int, list[int]]:
    """Nodes of each region that need code, each as late as its first use allows, to keep lifetimes short."""
    order: dict[int, list[int]] = {}
    seen: set[int] = set()
    stack = [(n, False) for n in reversed(roots)]
    while stack:
        n, ready = stack.pop()
        if ready:
            if not is_free(g, n) and g.ops[n] != "carry":
                order.setdefault(g.regions[n], []).append(n)
            continue
        if n in seen:
            continue
        seen.add(n)
        stack.append((n, True))
        needed = list(g.args[n])
        if g.ops[n] == "loop":
            needed += g.loops[g.attrs[n]].roots()
        stack += [(a, False) for a in reversed(needed) if a not in seen]
    return order


class _Scheduler:
    def __init__(self, g: Algebra, live: set[int], roots: list[int]):
        self.g = g
        self.live = live
        self.order = _depth_first(g, roots)
        self.weights: dict[int, int] = {}
        self.inlined: set[int] = set()
        self.time = 0
        self.chunk_of: dict[int, CodeChunk] = {}
        self.nests: dict[int, NestedLoop] = {}

    def run(self, sinks: list[Sink]) -> Schedule:
        block = self.block(0, sinks)
        arrays = sorted(n for n in self.live if self._needs_space(n))
        slots, count = self.assign_slots(block)
        return Schedule(block, self.order, slots, count, arrays, self.inlined)

    def _needs_space(self, n: int) -> bool:
        return isinstance(self.g.types[n], MemoryType) and self.g.ops[n] in ("input", "array", "stack", "carry")

    # Cutting into chunks

    def weight(self, region: int) -> int:
        """Number of operations of a loop body; records the loops that are small enough for a chunk."""
        g = self.g
        loop = g.loops[region]
        total = 0
        inline = not any(isinstance(g.types[loop.carries[k]], MemoryType) for k in loop.live_carries or ())
        for n in self.order.get(region, ()):
            total += self.node_weight(n)
            if g.ops[n] == "loop" and g.attrs[n] not in self.inlined:
                inline = False
            inline &= g.ops[n] != "array"
        if inline and total <= _MAX_INLINE_OPERATIONS:
            self.inlined.add(region)
        return total + 1

    def node_weight(self, n: int) -> int:
        """Approximate number of instructions of a node."""
        op = self.g.ops[n]
        if op == "loop":
            region = self.g.attrs[n]
            assert isinstance(region, int)
            if region not in self.weights:
                self.weights[region] = self.weight(region)
            return self.weights[region]
        if op == "array":
            return len(self.g.args[n])
        return _WEIGHTS.get(op, 1)

    def tick(self) -> int:
        self.time += 1
        return self.time

    def block(self, region: int, sinks: list[Sink]) -> CodeBlock:
        """Chunks and nested loops of a region; sinks are written as soon as their value is available."""
        g, block = self.g, CodeBlock()
        chunk: CodeChunk | None = None
        size = 0
        for n in self.order.get(region, ()):
            weight = self.node_weight(n)
            if g.ops[n] == "loop" and g.attrs[n] not in self.inlined:
                block.items.append(self.nest(g.loops[g.attrs[n]]))
                chunk = None
                continue
            if g.ops[n] == "result":
                self._place_result(n)
                continue
            if chunk is None or size + weight > CHUNK_OPERATIONS:
                chunk, size = CodeChunk(self.tick(), region), 0
                block.items.append(chunk)
            chunk.nodes.append(n)
            self.chunk_of[n] = chunk
            size += weight
        last: CodeChunk | None = None
        for sink in sinks:
            home = self.chunk_of.get(sink.value)
            if home is None or home.region != region:
                if last is None or len(last.sinks) >= CHUNK_OPERATIONS:
                    last = CodeChunk(self.tick(), region)
                    block.items.append(last)
                home = last
            home.sinks.append(sink)
        return block

    def _place_result(self, n: int) -> None:
        """Put the result of a loop inside a chunk into that chunk; results of nested loops are in slots."""
        home = self.chunk_of.get(self.g.args[n][0])
        if home is not None:
            home.nodes.append(n)
            self.chunk_of[n] = home

    def nest(self, loop: Loop) -> NestedLoop:
        """Build the blocks of a loop that is too large for a chunk."""
        g = self.g
        nested = NestedLoop(loop, self.tick(), CodeBlock())
        self.nests[loop.region] = nested
        sinks = [
            Sink(value, g.stack_memory(loop, k), g.index_add(stack.start, g.index(offset)))
            for k in loop.live_stacks or ()
            for stack in [loop.stacks[k]]
            for offset, value in enumerate(stack.elements)
        ]
        nested.block = self.block(loop.region, sinks)
        nested.end = self.tick()
        return nested

    # Slots

    def last_time(self, value: int, time: int, region: int) -> int:
        """Time at which a use at `time` in `region` ends: the end of the outermost loop without the value."""
        g = self.g
        depth = g.depth[g.regions[value]]
        while region and g.depth[region] > depth:
            if region in self.nests:
                time = max(time, self.nests[region].end)
            region = g.regions[g.loops[region].node]
        return time

    def uses(self, block: CodeBlock) -> Iterator[tuple[int, int, int]]:
        """(value, time, region) of every read of a value by the code of a block."""
        g = self.g
        for item in block.items:
            if isinstance(item, NestedLoop):
                loop = item.loop
                for k in loop.live_carries or ():
                    yield loop.inits[k], item.start, g.regions[loop.node]
                yield from self.uses(item.block)
                for k in loop.live_carries or ():
                    yield loop.nexts[k], item.end, loop.region
                for n in (n for w in loop.live_writes() for n in w.nodes()):
                    yield n, item.end, loop.region
                continue
            for n in item.nodes:
                for a in g.args[n]:
                    yield a, item.time, item.region
            for sink in item.sinks:
                yield sink.value, item.time, item.region

    def assign_slots(self, block: CodeBlock) -> tuple[dict[int, int], int]:
        """Assign slots to all values that outlive their chunk; slots are reused after the last use."""
        g = self.g
        born: dict[int, int] = {}
        dies: dict[int, int] = {}
        for nested in self.nests.values():
            for k in nested.loop.live_carries or ():
                carry = nested.loop.carries[k]
                if not isinstance(g.types[carry], MemoryType):
                    born[carry], dies[carry] = nested.start, nested.end
        for used, time, region in self.uses(block):
            for value in self._kept_values(used):
                owner = self._owner(value)
                home = self.chunk_of.get(owner)
                if home is not None and home.time == time:
                    continue
                born.setdefault(owner, home.time if home is not None else time)
                dies[owner] = max(dies.get(owner, 0), self.last_time(value, time, region))
        return _allocate(born, dies)

    def _kept_values(self, n: int) -> list[int]:
        """Values stored for node `n`: itself, or none if it is recomputed at each use."""
        g = self.g
        if is_free(g, n) or g.ops[n] in ("loop", "array"):
            return []
        return [n]

    def _owner(self, value: int) -> int:
        """Value whose slot this one shares: results of nested loops share the slot of their carry."""
        g = self.g
        if g.ops[value] == "result":
            region = g.attrs[g.args[value][0]]
            if region in self.nests:
                return self.nests[region].loop.carries[g.attrs[value]]
        return value


def _allocate(born: dict[int, int], dies: dict[int, int]) -> tuple[dict[int, int], int]:
    slots: dict[int, int] = {}
    free: list[int] = []
    dying: list[tuple[int, int]] = sorted((t, n) for n, t in dies.items())
    count = position = 0
    for n in sorted(born, key=lambda n: (born[n], n)):
        while position < len(dying) and dying[position][0] < born[n]:
            free.append(slots[dying[position][1]])
            position += 1
        if free:
            slots[n] = free.pop()
        else:
            slots[n] = count
            count += 1
    return slots, count
