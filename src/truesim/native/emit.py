"""LLVM IR of a scheduled graph: one function a chunk, one a large loop, working in a workspace."""

from truesim.native.algebra import Algebra
from truesim.native.function import Function, Layout, Unit
from truesim.native.graph import Loop
from truesim.native.schedule import Block, Chunk, Nested, Schedule
from truesim.native.types import Memory


class Module:
    """The text of an LLVM module under construction."""

    def __init__(self, g: Algebra, plan: Schedule, layout: Layout, has_fma: bool):
        self.g = g
        self.unit = Unit(g, plan.order, layout, has_fma)
        self._names = 0

    def fresh(self, prefix: str) -> str:
        """A new global name."""
        self._names += 1
        return f"@{prefix}{self._names}"

    def text(self) -> str:
        """The whole module."""
        unit = self.unit
        parts = [*unit.globals.values(), *unit.functions, *sorted(unit.code.declarations)]
        return "\n".join(parts)

    def block(self, block: Block, counters: list[int]) -> list[str]:
        """Call instructions that run a block; `counters` are those of the enclosing nested loops."""
        passed = "".join(f", i64 %i{c}" for c in counters)
        calls = []
        for item in block.items:
            if isinstance(item, Chunk):
                name = self._chunk(item, counters)
            else:
                name = self._nested(item, counters)
            calls.append(f"call void {name}(ptr %ws{passed})")
        return calls

    def _chunk(self, chunk: Chunk, counters: list[int]) -> str:
        function = Function(self.unit, counters)
        for n in chunk.nodes:
            function.define(n)
        for sink in chunk.sinks:
            function.sink(sink)
        return self._finish(function, "chunk")

    def _finish(self, function: "Function", prefix: str) -> str:
        name = self.fresh(prefix)
        self.unit.functions.append(function.text(name))
        return name

    def _nested(self, nested: Nested, counters: list[int]) -> str:
        """A loop whose body calls the functions of its block; carries stay in their slots."""
        loop = nested.loop
        start = self._copies(loop, loop.inits, counters)
        inner = [*counters, loop.region]
        body = self.block(nested.block, inner)
        end = self._copies(loop, loop.nexts, inner)
        passed = "".join(f", i64 %i{c}" for c in counters)
        passed_inner = "".join(f", i64 %i{c}" for c in inner)
        header = "".join(f", i64 %i{c}" for c in counters)
        name = self.fresh("loop")
        r = loop.region
        lines = [
            f"define internal void {name}(ptr noalias %ws{header}) nounwind {{",
            "entry:",
            f"call void {start}(ptr %ws{passed})",
            "br label %head",
            "head:",
            f"%i{r} = phi i64 [0, %entry], [%next, %body]",
            *self._continue(loop),
            "br i1 %more, label %body, label %done",
            "body:",
            *body,
            f"call void {end}(ptr %ws{passed_inner})",
            f"%next = add i64 %i{r}, 1",
            "br label %head",
            "done:",
            "ret void",
            "}",
        ]
        self.unit.functions.append("\n".join(lines))
        return name

    def _continue(self, loop: Loop) -> list[str]:
        """Instructions that set %more: whether to run another iteration."""
        if loop.trips is not None:
            return [f"%more = icmp ult i64 %i{loop.region}, {loop.trips}"]
        layout = self.unit.layout
        lanes, offset = layout.lanes, layout.slots[loop.carries[0]]
        self.unit.code.declarations.add(f"declare i8 @llvm.vector.reduce.or.v{lanes}i8(<{lanes} x i8>)")
        return [
            f"%at = getelementptr i8, ptr %ws, i64 {offset}",
            f"%flags = load <{lanes} x i8>, ptr %at",
            f"%any = call i8 @llvm.vector.reduce.or.v{lanes}i8(<{lanes} x i8> %flags)",
            "%more = icmp ne i8 %any, 0",
        ]

    def _copies(self, loop: Loop, values: list[int], counters: list[int]) -> str:
        """Function that moves values to the places of the carries, all reads before all writes."""
        function = Function(self.unit, counters)
        live = loop.live_carries or []
        scalars = [k for k in live if not isinstance(self.g.types[loop.carries[k]], Memory)]
        moved = [(loop.carries[k], function.ref(values[k])) for k in scalars if values[k] != loop.carries[k]]
        for carry, value in moved:
            function.store_slot(carry, value)
        for k in live:
            if k not in scalars:
                function.copy_memory(loop.carries[k], values[k])
        return self._finish(function, "copy")
