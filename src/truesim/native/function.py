"""One LLVM function at a time: instructions for nodes, loads, stores and small loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truesim.native.algebra import Algebra
from truesim.native.elementary.numbers import Number, Scope
from truesim.native.graph import Loop
from truesim.native.instructions import Instructions, Line, scalar_constant
from truesim.native.liveness import is_free
from truesim.native.schedule import Sink
from truesim.native.types import F64, INDEX, Memory, Scalar


@dataclass
class Layout:
    """Byte offsets in the workspace."""

    lanes: int
    slots: dict[int, int]
    """Offset of the slot of each value."""
    arrays: dict[int, int]
    """Offset of each memory node."""
    size: int


class Unit:
    """What the functions of one module share: the graph, the layout, global data and helper functions."""

    def __init__(self, g: Algebra, order: dict[int, list[int]], layout: Layout, has_fma: bool):
        self.g = g
        self.order = order
        self.layout = layout
        self.has_fma = has_fma
        self.code = Instructions(layout.lanes)
        self.functions: list[str] = []
        self.globals: dict[int, str] = {}
        self._slow: dict[Any, str] = {}

    def data(self, node: int) -> str:
        """Name of the global that holds a node's read-only data."""
        number = self.g.attrs[node]
        assert isinstance(number, int)
        if number not in self.globals:
            type, array = self.g.memory_type(node).element, self.g.data[number]
            values = ", ".join(f"{type.stored} {_stored_constant(v, type)}" for v in array)
            kind = f"[{len(array)} x {type.stored}]"
            self.globals[number] = f"@data{number} = internal constant {kind} [{values}], align 64"
        return f"@data{number}"

    def any(self, flags: str, line: Line) -> str:
        """Whether a boolean holds in any lane."""
        lanes = self.layout.lanes
        self.code.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
        return line(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {flags})")

    def slow(self, key: Any) -> str:
        """Name of the out-of-line version of an elementary function."""
        if key not in self._slow:
            function, short = key
            name = self._slow[key] = f"@slow{len(self._slow)}"
            g = self.g
            x = g.node("argument", F64, (), key)
            result = function(Scope(g, self.has_fma, short), Number(Scope(g, self.has_fma), x)).node
            body = Function(self, [])
            body.names[x] = "%x"
            for n in g.reachable([result]):
                if n != x and not is_free(g, n):
                    body.define(n)
            vector = self.code.vector(F64)
            lines = "\n".join(body.lines)
            self.functions.append(
                f"define internal {vector} {name}({vector} %x) nounwind noinline {{\nentry:\n{lines}\n"
                f"ret {vector} {body.ref(result)}\n}}"
            )
        return self._slow[key]


class Function:
    """One LLVM function: instructions, and the names of the values it already has."""

    def __init__(self, unit: Unit, counters: list[int]):
        self.unit = unit
        self.g = unit.g
        self.layout = unit.layout
        self.counters = counters
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.block_name = "entry"
        self._count = 0
        for region in counters:
            self.names[self.g.loops[region].counter] = f"%i{region}"

    def text(self, name: str) -> str:
        """The function as LLVM IR: its instructions in a loop over tiles, one workspace after the other."""
        header = "".join(f", i64 %i{c}" for c in self.counters)
        body = "\n".join(self.lines)
        return f"""define internal void {name}(ptr noalias %first, i64 %tiles{header}) nounwind {{
start:
%bytes = mul i64 %tiles, {self.layout.size}
%end = getelementptr i8, ptr %first, i64 %bytes
br label %entry
entry:
%ws = phi ptr [%first, %start], [%ws.next, %{self.block_name}]
{body}
%ws.next = getelementptr i8, ptr %ws, i64 {self.layout.size}
%finished = icmp eq ptr %ws.next, %end
br i1 %finished, label %return, label %entry
return:
ret void
}}"""

    # Writing instructions

    def line(self, instruction: str) -> str:
        """Append an instruction; its result's name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Start a new basic block."""
        self.lines.append(f"{name}:")
        self.block_name = name

    def ref(self, n: int) -> str:
        """Name of a value: known here, rebuilt, or loaded from its slot."""
        known = self.names.get(n)
        if known is not None:
            return known
        g = self.g
        value = g.values[n]
        if value is not None:
            type = g.scalar(n)
            return scalar_constant(value, type) if type is INDEX else self.unit.code.constant(value, type)
        name = self._rebuilt(n) if is_free(g, n) else self.load_slot(n)
        self.names[n] = name
        return name

    def define(self, n: int) -> None:
        """Compute a node, and store it if others need it."""
        g = self.g
        op = g.ops[n]
        if op == "loop":
            self._inline_loop(g.loops[g.attrs[n]])  # type: ignore[index]
        elif op == "array":
            base = self.layout.arrays[n]
            for k, element in enumerate(g.args[n]):
                self.store(self.ref(element), g.memory_type(n).element, self.element_address(base, n, str(k)))
        else:
            if op != "result":
                self.names[n] = self._computed(n)
            if n in self.layout.slots:
                self.store_slot(n, self.names[n])

    def _computed(self, n: int) -> str:
        g, code = self.g, self.unit.code
        op, type = g.ops[n], g.scalar(n)
        if op == "gather":
            return self._gather(n)
        if op == "rare":
            return self._rare(n)
        args = [self.ref(a) for a in g.args[n]]
        if op == "select":
            vector = code.vector(type)
            return self.line(
                f"select <{self.layout.lanes} x i1> {args[0]}, {vector} {args[1]}, {vector} {args[2]}"
            )
        return code.write(op, type, g.scalar(g.args[n][0]), args, self.line)

    def _rebuilt(self, n: int) -> str:
        g = self.g
        op, type = g.ops[n], g.scalar(n)
        if type is INDEX:
            a, b = (self.ref(a) for a in g.args[n])
            if op in ("min", "max"):
                chosen = self.line(f"icmp {'slt' if op == 'min' else 'sgt'} i64 {a}, {b}")
                return self.line(f"select i1 {chosen}, i64 {a}, i64 {b}")
            return self.line(f"{'udiv' if op == 'div' else op} i64 {a}, {b}")
        if op == "splat":
            index = self.ref(g.args[n][0])
            narrow = index if type.bits == 64 else self.line(f"trunc i64 {index} to {type.llvm}")
            return self._broadcast(narrow, type)
        memory, index = g.args[n]
        return self._load_element(memory, self.ref(index), type)

    def _broadcast(self, scalar: str, type: Scalar) -> str:
        vector = self.unit.code.vector(type)
        first = self.line(f"insertelement {vector} poison, {type.llvm} {scalar}, i64 0")
        zeros = f"<{self.layout.lanes} x i32> zeroinitializer"
        return self.line(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    # Memory

    def element_address(self, offset: int, memory: int, index: str) -> str:
        """Address of an element of an array in the workspace."""
        type = self.g.memory_type(memory).element
        stride = self.layout.lanes * type.size
        if index.lstrip("-").isdigit():
            return self.line(f"getelementptr i8, ptr %ws, i64 {offset + int(index) * stride}")
        base = self.line(f"getelementptr i8, ptr %ws, i64 {offset}")
        return self.line(f"getelementptr {self.unit.code.vector(type, stored=True)}, ptr {base}, i64 {index}")

    def address(self, memory: int, index: str) -> str:
        """Address of an element of a memory node."""
        return self.element_address(self.layout.arrays[self.storage(memory)], memory, index)

    def storage(self, memory: int) -> int:
        """The memory node that owns the space: the result of a loop stays where its carry was."""
        g = self.g
        if g.ops[memory] == "result":
            return g.loops[g.attrs[g.args[memory][0]]].carries[g.attrs[memory]]  # type: ignore[index]
        return memory

    def _load_element(self, memory: int, index: str, type: Scalar) -> str:
        if self.g.ops[memory] == "data":
            name = self.unit.data(memory)
            at = self.line(f"getelementptr {type.stored}, ptr {name}, i64 {index}")
            return self._broadcast(
                self._narrow_scalar(self.line(f"load {type.stored}, ptr {at}"), type), type
            )
        return self.load(type, self.address(memory, index))

    def _narrow_scalar(self, value: str, type: Scalar) -> str:
        return self.line(f"trunc i8 {value} to i1") if type.kind == "bool" else value

    def load(self, type: Scalar, address: str) -> str:
        """A vector loaded from the workspace."""
        code = self.unit.code
        raw = self.line(
            f"load {code.vector(type, stored=True)}, ptr {address}, align {self._alignment(type)}"
        )
        if type.kind == "bool":
            return self.line(f"trunc {code.vector(type, stored=True)} {raw} to {code.vector(type)}")
        return raw

    def store(self, value: str, type: Scalar, address: str) -> None:
        """Store a vector to the workspace."""
        code = self.unit.code
        if type.kind == "bool":
            value = self.line(f"zext {code.vector(type)} {value} to {code.vector(type, stored=True)}")
        vector = code.vector(type, stored=True)
        self.lines.append(f"store {vector} {value}, ptr {address}, align {self._alignment(type)}")

    def _alignment(self, type: Scalar) -> int:
        return min(self.layout.lanes * type.size, 64)

    def _slot_address(self, n: int) -> str:
        g = self.g
        owner = n
        if n not in self.layout.slots and g.ops[n] == "result":
            owner = g.loops[g.attrs[g.args[n][0]]].carries[g.attrs[n]]  # type: ignore[index]
        return self.line(f"getelementptr i8, ptr %ws, i64 {self.layout.slots[owner]}")

    def load_slot(self, n: int) -> str:
        """A value loaded from its slot."""
        return self.load(self.g.scalar(n), self._slot_address(n))

    def store_slot(self, n: int, value: str) -> None:
        """Store a value to its slot."""
        self.store(value, self.g.scalar(n), self._slot_address(n))

    def sink(self, sink: Sink) -> None:
        """Write a value to memory."""
        type = self.g.memory_type(sink.target).element
        self.store(self.ref(sink.value), type, self.address(sink.target, self.ref(sink.index)))

    def copy_memory(self, target: int, source: int) -> None:
        """Copy a whole array to the place of another."""
        g = self.g
        if self.storage(source) == target:
            return
        type = g.memory_type(target)
        size = type.length * type.element.size * self.layout.lanes
        to, origin = self.address(target, "0"), self.address(source, "0")
        self.unit.code.declarations.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        self.lines.append(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {origin}, i64 {size}, i1 false)")

    def _gather(self, n: int) -> str:
        """One load a lane."""
        g, lanes = self.g, self.layout.lanes
        memory, index = g.args[n]
        offset = g.attrs[n]
        type, index_type = g.scalar(n), g.scalar(index)
        indices = self.ref(index)
        vector = self.unit.code.vector(type, stored=True)
        shared = g.ops[memory] == "data"
        base = self.unit.data(memory) if shared else self.address(memory, "0")
        result = "poison"
        for lane in range(lanes):
            one = self.line(f"extractelement {self.unit.code.vector(index_type)} {indices}, i64 {lane}")
            wide = one if index_type.bits == 64 else self.line(f"sext {index_type.llvm} {one} to i64")
            place = self.line(f"add i64 {wide}, {offset}")
            if not shared:
                scaled = self.line(f"mul i64 {place}, {lanes}")
                place = self.line(f"add i64 {scaled}, {lane}")
            at = self.line(f"getelementptr {type.stored}, ptr {base}, i64 {place}")
            element = self.line(f"load {type.stored}, ptr {at}")
            result = self.line(f"insertelement {vector} {result}, {type.stored} {element}, i64 {lane}")
        if type.kind == "bool":
            return self.line(f"trunc {vector} {result} to {self.unit.code.vector(type)}")
        return result

    def _rare(self, n: int) -> str:
        """The usual value, or a call if any lane needs one."""
        lanes, vector = self.layout.lanes, self.unit.code.vector(self.g.scalar(n))
        condition, usual, x = (self.ref(a) for a in self.g.args[n])
        name = self.unit.slow(self.g.attrs[n])
        before = self.block_name
        any_lane = self.unit.any(condition, self.line)
        self.lines.append(f"br i1 {any_lane}, label %slow{n}, label %usual{n}")
        self.label(f"slow{n}")
        value = self.line(f"call {vector} {name}({vector} {x})")
        chosen = self.line(f"select <{lanes} x i1> {condition}, {vector} {value}, {vector} {usual}")
        self.lines.append(f"br label %usual{n}")
        self.label(f"usual{n}")
        return self.line(f"phi {vector} [{usual}, %{before}], [{chosen}, %slow{n}]")

    # Loops inside a chunk

    def _inline_loop(self, loop: Loop) -> None:
        """A loop with its carries in registers."""
        g, code = self.g, self.unit.code
        for n in g.args[loop.node]:
            if not isinstance(g.types[n], Memory):
                self.ref(n)
        live = loop.live_carries or []
        inits = [self.ref(loop.inits[k]) for k in live]
        before, r = self.block_name, loop.region
        self.lines.append(f"br label %head{r}")
        self.label(f"head{r}")
        place = len(self.lines)
        counter = f"%i{r}"
        self.names[loop.counter] = counter
        for k in live:
            self.names[loop.carries[k]] = f"%c{r}.{k}"
        more = self._more(loop)
        outside = dict(self.names)
        self.lines.append(f"br i1 {more}, label %body{r}, label %done{r}")
        self.label(f"body{r}")
        for n in self.unit.order.get(r, ()):
            self.define(n)
        self._stack_stores(loop)
        nexts = [self.ref(loop.nexts[k]) for k in live]
        following = self.line(f"add i64 {counter}, 1")
        phis = [f"{counter} = phi i64 [0, %{before}], [{following}, %{self.block_name}]"]
        for k, first, after in zip(live, inits, nexts, strict=True):
            vector = code.vector(g.scalar(loop.carries[k]))
            name = self.names[loop.carries[k]]
            phis.append(f"{name} = phi {vector} [{first}, %{before}], [{after}, %{self.block_name}]")
        self.lines[place:place] = phis
        self.lines.append(f"br label %head{r}")
        self.label(f"done{r}")
        self.names = outside
        for k in live:
            self.names[g.carried(loop, k)] = f"%c{r}.{k}"

    def _more(self, loop: Loop) -> str:
        if loop.trips is not None:
            return self.line(f"icmp ult i64 {self.names[loop.counter]}, {loop.trips}")
        return self.unit.any(self.names[loop.carries[0]], self.line)

    def _stack_stores(self, loop: Loop) -> None:
        g = self.g
        for k in loop.live_stacks or ():
            stack = loop.stacks[k]
            for offset, value in enumerate(stack.elements):
                index = g.index_add(stack.start, g.index(offset))
                self.sink(Sink(value, g.stacked(loop, k), index))


def _stored_constant(value: np.generic, type: Scalar) -> str:
    return str(int(value)) if type.kind == "bool" else scalar_constant(value, type)
