"""Scheduling: live nodes in order, cut into chunks, with memory places for what outlives a chunk.

LLVM compiles one huge basic block slowly and badly. So each block (straight-line code of a region) is cut
into chunks of about a thousand operations, each its own function; values needed by another chunk go
through slots in the workspace, reused after their last use. Small loops stay inside a chunk, with their
carries in registers; large ones get blocks of their own, with their carries in slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from truesim.native.algebra import Algebra
from truesim.native.graph import Loop
from truesim.native.liveness import is_free, prune, share_reciprocals
from truesim.native.types import Memory

CHUNK = 1000
"""Operations in a chunk."""
_INLINE = 400
"""Largest loop body, nested loops included, that stays inside a chunk."""
_WEIGHTS = {"gather": 8, "rare": 20}


@dataclass(frozen=True)
class Sink:
    """A value to be written to memory: element `index` (a node) of memory node or output `target`."""

    value: int
    target: int
    index: int


@dataclass
class Chunk:
    """Straight-line code that becomes one function."""

    time: int
    region: int
    nodes: list[int] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    carries: list[tuple[int, int]] = field(default_factory=list)
    """(value, carry) pairs: carries that take their next value at the end of this chunk."""


@dataclass
class Nested:
    """A loop with blocks of its own; its times enclose those of its body."""

    loop: Loop
    start: int
    block: "Block"
    end: int = -1


@dataclass
class Block:
    """The code of one region, in order."""

    items: list[Chunk | Nested] = field(default_factory=list)


@dataclass
class Schedule:
    """Everything the emitter needs to know besides the graph."""

    block: Block
    order: dict[int, list[int]]
    """Live nodes of each region that need code, in order."""
    slots: dict[int, int]
    """Slot number of each value that lives in the workspace."""
    slot_count: int
    arrays: list[int]
    """Memory nodes that need space in the workspace, inputs that are read among them."""
    inlined: set[int]
    """Regions of the loops that stay inside a chunk."""


def schedule(g: Algebra, sinks: list[Sink], memories: list[int]) -> Schedule:
    """A schedule that performs all sinks and computes the given memory nodes."""
    roots = [*(s.value for s in sinks), *memories]
    live = prune(g, roots)
    share_reciprocals(g, live)
    return _Scheduler(g, live, roots).run(sinks)


def _depth_first(g: Algebra, roots: list[int]) -> dict[int, list[int]]:
    """Nodes of each region that need code, each as late as its first use allows, so that values live briefly."""
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
        self.chunk_of: dict[int, Chunk] = {}
        self.nests: dict[int, Nested] = {}

    def run(self, sinks: list[Sink]) -> Schedule:
        block = self.block(0, sinks)
        arrays = sorted(n for n in self.live if self._needs_space(n))
        slots, count = self.assign_slots(block)
        return Schedule(block, self.order, slots, count, arrays, self.inlined)

    def _needs_space(self, n: int) -> bool:
        return isinstance(self.g.types[n], Memory) and self.g.ops[n] in ("input", "array", "stack", "carry")

    # Cutting into chunks

    def weight(self, region: int) -> int:
        """Operations of a loop body; remembers the loops small enough to stay inside a chunk."""
        g = self.g
        loop = g.loops[region]
        total = 0
        inline = not any(isinstance(g.types[loop.carries[k]], Memory) for k in loop.live_carries or ())
        for n in self.order.get(region, ()):
            total += self.node_weight(n)
            if g.ops[n] == "loop" and g.attrs[n] not in self.inlined:
                inline = False
            inline &= g.ops[n] != "array"
        if inline and total <= _INLINE:
            self.inlined.add(region)
        return total + 1

    def node_weight(self, n: int) -> int:
        """Rough number of instructions of a node."""
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

    def block(self, region: int, sinks: list[Sink]) -> Block:
        """The chunks and nested loops of a region; sinks are written as soon as their value is there."""
        g, block = self.g, Block()
        chunk: Chunk | None = None
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
            if chunk is None or size + weight > CHUNK:
                chunk, size = Chunk(self.tick(), region), 0
                block.items.append(chunk)
            chunk.nodes.append(n)
            self.chunk_of[n] = chunk
            size += weight
        last: Chunk | None = None
        for sink in sinks:
            home = self.chunk_of.get(sink.value)
            if home is None or home.region != region:
                if last is None or len(last.sinks) >= CHUNK:
                    last = Chunk(self.tick(), region)
                    block.items.append(last)
                home = last
            home.sinks.append(sink)
        return block

    def _place_result(self, n: int) -> None:
        """Results of a loop inside a chunk belong to that chunk; those of a nested loop are in its slots."""
        home = self.chunk_of.get(self.g.args[n][0])
        if home is not None:
            home.nodes.append(n)
            self.chunk_of[n] = home

    def nest(self, loop: Loop) -> Nested:
        """Blocks of a loop too large for a chunk."""
        g = self.g
        nested = Nested(loop, self.tick(), Block())
        self.nests[loop.region] = nested
        sinks = [
            Sink(value, g.stacked(loop, k), g.index_add(stack.start, g.index(offset)))
            for k in loop.live_stacks or ()
            for stack in [loop.stacks[k]]
            for offset, value in enumerate(stack.elements)
        ]
        nested.block = self.block(loop.region, sinks)
        nested.end = self.tick()
        return nested

    # Slots

    def last_time(self, value: int, time: int, region: int) -> int:
        """When a use at `time` in `region` ends: with the outermost loop that does not contain the value."""
        g = self.g
        depth = g.depth[g.regions[value]]
        while region and g.depth[region] > depth:
            if region in self.nests:
                time = max(time, self.nests[region].end)
            region = g.regions[g.loops[region].node]
        return time

    def uses(self, block: Block) -> Iterator[tuple[int, int, int]]:
        """(value, time, region) of every read of a value by the code of a block."""
        g = self.g
        for item in block.items:
            if isinstance(item, Nested):
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

    def assign_slots(self, block: Block) -> tuple[dict[int, int], int]:
        """Slots of all values that outlive their chunk, reused after the last use."""
        g = self.g
        born: dict[int, int] = {}
        dies: dict[int, int] = {}
        for nested in self.nests.values():
            for k in nested.loop.live_carries or ():
                carry = nested.loop.carries[k]
                if not isinstance(g.types[carry], Memory):
                    born[carry], dies[carry] = nested.start, nested.end
        for used, time, region in self.uses(block):
            for value in self._kept(used):
                owner = self._owner(value)
                home = self.chunk_of.get(owner)
                if home is not None and home.time == time:
                    continue
                born.setdefault(owner, home.time if home is not None else time)
                dies[owner] = max(dies.get(owner, 0), self.last_time(value, time, region))
        return _allocate(born, dies)

    def _kept(self, n: int) -> list[int]:
        """The values needed to have node `n`: itself, or, if it is rebuilt at each use, none."""
        g = self.g
        if is_free(g, n) or g.ops[n] in ("loop", "array"):
            return []
        return [n]

    def _owner(self, value: int) -> int:
        """The value whose slot this one shares: results of nested loops stay where the carry was."""
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
