"""LLVM IR of a scheduled graph: one function per chunk and per large loop, on a workspace."""

from truesim.native.codegen.function import FunctionBuilder
from truesim.native.codegen.liveness import is_free
from truesim.native.codegen.schedule import CodeBlock, CodeChunk, NestedLoop, Schedule
from truesim.native.codegen.unit import CompilationUnit, SlowKey, WorkspaceLayout
from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.elementary.numbers import Expression, Scope
from truesim.native.lowering.graph import Loop, Write
from truesim.native.lowering.types import F64, MemoryType


class ModuleBuilder:
    """Builder of the text of an LLVM module."""

    def __init__(self, g: Algebra, plan: Schedule, layout: WorkspaceLayout, has_fma: bool):
        self.g = g
        self.unit = CompilationUnit(g, plan.order, layout, has_fma)
        self._names = 0

    def fresh(self, prefix: str) -> str:
        """Return a new global name."""
        self._names += 1
        return f"@{prefix}{self._names}"

    def text(self) -> str:
        """Text of the whole module."""
        unit = self.unit
        for key, name in unit.wanted.items():
            unit.functions.append(self._slow(name, key))
        parts = [*unit.globals.values(), *unit.functions, *sorted(unit.code.declarations)]
        return "\n".join(parts)

    def _slow(self, name: str, key: SlowKey) -> str:
        """Out-of-line version of an elementary function."""
        g, unit = self.g, self.unit
        function, short = key
        x = g.node("argument", F64, (), key)
        scope = Scope(g, unit.has_fma, short)
        result = function(scope, Expression(scope, x)).node
        body = FunctionBuilder(unit, [])
        body.names[x] = "%x"
        for n in g.reachable([result]):
            if n != x and not is_free(g, n):
                body.define(n)
        vector, value = unit.code.vector(F64), body.ref(result)
        lines = "\n".join(body.lines)
        return f"define internal {vector} {name}({vector} %x) nounwind {{\n{lines}\nret {vector} {value}\n}}"

    def block(self, block: CodeBlock, counters: list[int]) -> list[str]:
        """Calls that run a block on all tiles; `counters` are those of the enclosing nested loops."""
        calls = []
        for item in block.items:
            name = self._chunk(item, counters) if isinstance(item, CodeChunk) else self._nested(item, counters)
            calls.append(_call(name, counters))
        return calls

    def _chunk(self, chunk: CodeChunk, counters: list[int]) -> str:
        function = FunctionBuilder(self.unit, counters)
        for n in chunk.nodes:
            function.define(n)
        for sink in chunk.sinks:
            function.sink(sink)
        return self._finish(function, "chunk")

    def _finish(self, function: "FunctionBuilder", prefix: str) -> str:
        name = self.fresh(prefix)
        self.unit.functions.append(function.text(name))
        return name

    def _nested(self, nested: NestedLoop, counters: list[int]) -> str:
        """Function of a loop whose body calls the functions of its block; carries stay in their slots.

        All tiles run through a counted loop together. In a loop with a gate each tile has its own number of iterations.
        """
        loop = nested.loop
        inner = [*counters, loop.region]
        start = _call(self._copies(loop, loop.inits, [], counters), counters)
        body = self.block(nested.block, inner)
        end = _call(self._copies(loop, loop.nexts, loop.live_writes(), inner), inner)
        name = self.fresh("loop")
        iterate = [*body, end, f"%next = add i64 %i{loop.region}, 1"]
        if loop.gate is not None:
            lines = self._gated_loop(loop, loop.gate, start, iterate)
        else:
            assert loop.trips is not None
            lines = _counted_loop(loop.region, loop.trips, start, iterate)
        self.unit.functions.append("\n".join([_header(name, counters), *lines, "}"]))
        return name

    def _gated_loop(self, loop: Loop, gate: int, start: str, iterate: list[str]) -> list[str]:
        layout = self.unit.layout
        lanes, offset = layout.lanes, layout.slots[loop.carries[gate]]
        trips = 2**62 if loop.trips is None else loop.trips
        self.unit.code.declarations.add(f"declare i8 @llvm.vector.reduce.or.v{lanes}i8(<{lanes} x i8>)")
        return [
            "entry:", f"%bytes = mul i64 %tiles, {layout.size}",
            "%end = getelementptr i8, ptr %first, i64 %bytes",
            "br label %tile",
            "tile:", "%ws = phi ptr [%first, %entry], [%ws.next, %done]",
            *_on_one_tile([start]), "br label %head",
            "head:", f"%i{loop.region} = phi i64 [0, %tile], [%next, %body]",
            f"%at = getelementptr i8, ptr %ws, i64 {offset}", f"%flags = load <{lanes} x i8>, ptr %at",
            f"%any = call i8 @llvm.vector.reduce.or.v{lanes}i8(<{lanes} x i8> %flags)",
            "%open = icmp ne i8 %any, 0", f"%left = icmp ult i64 %i{loop.region}, {trips}",
            "%more = and i1 %open, %left",
            "br i1 %more, label %body, label %done",
            "body:", *_on_one_tile(iterate), "br label %head",
            "done:", f"%ws.next = getelementptr i8, ptr %ws, i64 {layout.size}",
            "%finished = icmp eq ptr %ws.next, %end", "br i1 %finished, label %return, label %tile",
            "return:", "ret void",
        ]  # fmt: skip

    def _copies(self, loop: Loop, values: list[int], writes: list[Write], counters: list[int]) -> str:
        """Function that moves values to the carries and writes into them; all reads come first."""
        function = FunctionBuilder(self.unit, counters)
        live = loop.live_carries or []
        scalars = [k for k in live if not isinstance(self.g.types[loop.carries[k]], MemoryType)]
        moved = [(loop.carries[k], function.ref(values[k])) for k in scalars if values[k] != loop.carries[k]]
        for n in (n for w in writes for n in w.nodes()):
            function.ref(n)
        for carry, value in moved:
            function.store_slot(carry, value)
        for k in live:
            if k not in scalars:
                function.copy_memory(loop.carries[k], values[k])
        for write in writes:
            function.write(loop.carries[write.carry], write)
        return self._finish(function, "copy")


def _header(name: str, counters: list[int]) -> str:
    passed = "".join(f", i64 %i{c}" for c in counters)
    return f"define internal void {name}(ptr noalias %first, i64 %tiles{passed}) nounwind {{"


def _call(name: str, counters: list[int]) -> str:
    passed = "".join(f", i64 %i{c}" for c in counters)
    return f"call void {name}(ptr %first, i64 %tiles{passed})"


def _on_one_tile(lines: list[str]) -> list[str]:
    """The same calls for the tile at %ws only."""
    return [line.replace("(ptr %first, i64 %tiles", "(ptr %ws, i64 1") for line in lines]


def _counted_loop(region: int, trips: int, start: str, iterate: list[str]) -> list[str]:
    return [
        "entry:", start, "br label %head",
        "head:", f"%i{region} = phi i64 [0, %entry], [%next, %body]",
        f"%more = icmp ult i64 %i{region}, {trips}",
        "br i1 %more, label %body, label %done",
        "body:", *iterate, "br label %head",
        "done:", "ret void",
    ]  # fmt: skip
