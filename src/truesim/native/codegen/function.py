"""LLVM functions: instructions of nodes, loads, stores and small loops."""

from truesim.native.codegen.instructions import scalar_constant
from truesim.native.codegen.liveness import is_free
from truesim.native.codegen.schedule import Sink
from truesim.native.codegen.unit import CompilationUnit
from truesim.native.lowering.graph import Loop, Write
from truesim.native.lowering.types import INDEX, MemoryType, ScalarType


class FunctionBuilder:
    """Builder of one LLVM function: its instructions, and the names of the values defined so far."""

    def __init__(self, unit: CompilationUnit, counters: list[int]):
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
        """The function as LLVM IR: its instructions in a loop over the workspaces of all tiles."""
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
        """Append an instruction; return the name of its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Start a new basic block."""
        self.lines.append(f"{name}:")
        self.block_name = name

    def ref(self, n: int) -> str:
        """Name of a value: defined before, recomputed, or loaded from its slot."""
        known = self.names.get(n)
        if known is not None:
            return known
        g = self.g
        value = g.values[n]
        if value is not None:
            dtype = g.scalar(n)
            return scalar_constant(value, dtype) if dtype is INDEX else self.unit.code.constant(value, dtype)
        name = self._rebuilt(n) if is_free(g, n) else self.load_slot(n)
        self.names[n] = name
        return name

    def define(self, n: int) -> None:
        """Compute a node, and store it if other functions need it."""
        g = self.g
        op = g.ops[n]
        if op == "loop":
            self._inline_loop(g.loops[g.attrs[n]])
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
        op, dtype = g.ops[n], g.scalar(n)
        if op == "gather":
            return self._gather(n)
        if op == "rare":
            return self._rare(n)
        args = [self.ref(a) for a in g.args[n]]
        if op == "select":
            vector = code.vector(dtype)
            return self.line(f"select <{self.layout.lanes} x i1> {args[0]}, {vector} {args[1]}, {vector} {args[2]}")
        return code.write(op, dtype, g.scalar(g.args[n][0]), args, self.line)

    def _rebuilt(self, n: int) -> str:
        g = self.g
        op, dtype = g.ops[n], g.scalar(n)
        if dtype is INDEX:
            a, b = (self.ref(a) for a in g.args[n])
            if op in ("min", "max"):
                chosen = self.line(f"icmp {'slt' if op == 'min' else 'sgt'} i64 {a}, {b}")
                return self.line(f"select i1 {chosen}, i64 {a}, i64 {b}")
            return self.line(f"{'udiv' if op == 'div' else op} i64 {a}, {b}")
        if op == "splat":
            wide = self.ref(g.args[n][0])
            narrow = wide if dtype.bits == 64 else self.line(f"trunc i64 {wide} to {dtype.llvm}")
            return self._broadcast(narrow, dtype)
        memory, index = g.args[n]
        return self._load_element(memory, self.ref(index), dtype)

    def _broadcast(self, scalar: str, dtype: ScalarType) -> str:
        vector = self.unit.code.vector(dtype)
        first = self.line(f"insertelement {vector} poison, {dtype.llvm} {scalar}, i64 0")
        zeros = f"<{self.layout.lanes} x i32> zeroinitializer"
        return self.line(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    # Memory

    def element_address(self, offset: int, memory: int, index: str) -> str:
        """Address of an element of an array in the workspace."""
        dtype = self.g.memory_type(memory).element
        stride = self.layout.lanes * dtype.size
        if index.lstrip("-").isdigit():
            return self.line(f"getelementptr i8, ptr %ws, i64 {offset + int(index) * stride}")
        base = self.line(f"getelementptr i8, ptr %ws, i64 {offset}")
        return self.line(f"getelementptr {self.unit.code.vector(dtype, stored=True)}, ptr {base}, i64 {index}")

    def address(self, memory: int, index: str) -> str:
        """Address of an element of a memory node."""
        return self.element_address(self.layout.arrays[self.storage(memory)], memory, index)

    def storage(self, memory: int) -> int:
        """Memory node that owns the space: the result of a loop shares the space of its carry."""
        g = self.g
        if g.ops[memory] == "result":
            return g.loops[g.attrs[g.args[memory][0]]].carries[g.attrs[memory]]
        return memory

    def _load_element(self, memory: int, index: str, dtype: ScalarType) -> str:
        if self.g.ops[memory] == "data":
            name = self.unit.data(memory)
            at = self.line(f"getelementptr {dtype.stored}, ptr {name}, i64 {index}")
            return self._broadcast(self._narrow_scalar(self.line(f"load {dtype.stored}, ptr {at}"), dtype), dtype)
        return self.load(dtype, self.address(memory, index))

    def _narrow_scalar(self, value: str, dtype: ScalarType) -> str:
        return self.line(f"trunc i8 {value} to i1") if dtype.kind == "bool" else value

    def load(self, dtype: ScalarType, address: str) -> str:
        """Load a vector from the workspace."""
        code = self.unit.code
        raw = self.line(f"load {code.vector(dtype, stored=True)}, ptr {address}, align {self._alignment(dtype)}")
        if dtype.kind == "bool":
            return self.line(f"trunc {code.vector(dtype, stored=True)} {raw} to {code.vector(dtype)}")
        return raw

    def store(self, value: str, dtype: ScalarType, address: str) -> None:
        """Store a vector to the workspace."""
        code = self.unit.code
        if dtype.kind == "bool":
            value = self.line(f"zext {code.vector(dtype)} {value} to {code.vector(dtype, stored=True)}")
        vector = code.vector(dtype, stored=True)
        self.lines.append(f"store {vector} {value}, ptr {address}, align {self._alignment(dtype)}")

    def _alignment(self, dtype: ScalarType) -> int:
        return min(self.layout.lanes * dtype.size, 64)

    def _slot_address(self, n: int) -> str:
        g = self.g
        owner = n
        if n not in self.layout.slots and g.ops[n] == "result":
            owner = g.loops[g.attrs[g.args[n][0]]].carries[g.attrs[n]]
        return self.line(f"getelementptr i8, ptr %ws, i64 {self.layout.slots[owner]}")

    def load_slot(self, n: int) -> str:
        """Load a value from its slot."""
        return self.load(self.g.scalar(n), self._slot_address(n))

    def store_slot(self, n: int, value: str) -> None:
        """Store a value to its slot."""
        self.store(value, self.g.scalar(n), self._slot_address(n))

    def sink(self, sink: Sink) -> None:
        """Write a value to memory."""
        dtype = self.g.memory_type(sink.target).element
        self.store(self.ref(sink.value), dtype, self.address(sink.target, self.ref(sink.index)))

    def write(self, target: int, write: Write) -> None:
        """Write elements to consecutive positions of an array; the first may differ between lanes."""
        g, lanes = self.g, self.layout.lanes
        dtype, index_type = g.memory_type(target).element, g.scalar(write.start)
        if index_type is INDEX:
            for k, element in enumerate(write.elements):
                self.sink(Sink(element, target, g.index_add(write.start, g.index(k))))
            return
        base, starts = self.address(target, "0"), self.ref(write.start)
        for lane in range(lanes):
            first = self._lane_index(index_type, starts, lane)
            for k, element in enumerate(write.elements):
                at = self._lane_address(base, dtype, self.line(f"add i64 {first}, {k}"), lane)
                value = self.line(f"extractelement {self.unit.code.vector(dtype)} {self.ref(element)}, i64 {lane}")
                if dtype.kind == "bool":
                    value = self.line(f"zext i1 {value} to i8")
                self.lines.append(f"store {dtype.stored} {value}, ptr {at}")

    def _lane_index(self, index_type: ScalarType, indices: str, lane: int) -> str:
        one = self.line(f"extractelement {self.unit.code.vector(index_type)} {indices}, i64 {lane}")
        return one if index_type.bits == 64 else self.line(f"sext {index_type.llvm} {one} to i64")

    def _lane_address(self, base: str, dtype: ScalarType, index: str, lane: int) -> str:
        """Address of one lane's part of an element."""
        scaled = self.line(f"mul i64 {index}, {self.layout.lanes}")
        place = self.line(f"add i64 {scaled}, {lane}")
        return self.line(f"getelementptr {dtype.stored}, ptr {base}, i64 {place}")

    def copy_memory(self, target: int, source: int) -> None:
        """Copy a whole array to the space of another."""
        g = self.g
        if self.storage(source) == target:
            return
        dtype = g.memory_type(target)
        if g.ops[source] == "data":
            self._broadcast_data(target, source)
            return
        size = dtype.length * dtype.element.size * self.layout.lanes
        to, origin = self.address(target, "0"), self.address(source, "0")
        self.unit.code.declarations.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        self.lines.append(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {origin}, i64 {size}, i1 false)")

    def _broadcast_data(self, target: int, source: int) -> None:
        """Copy constant data, which is stored once for all lanes, to an array, which is stored per lane."""
        dtype, before, n = self.g.memory_type(target), self.block_name, target
        self.lines.append(f"br label %broadcast{n}")
        self.label(f"broadcast{n}")
        self.lines.append(f"%at{n} = phi i64 [0, %{before}], [%at{n}.next, %broadcast{n}]")
        value = self._load_element(source, f"%at{n}", dtype.element)
        self.store(value, dtype.element, self.address(target, f"%at{n}"))
        self.lines.append(f"%at{n}.next = add i64 %at{n}, 1")
        self.lines.append(f"%at{n}.more = icmp ult i64 %at{n}.next, {dtype.length}")
        self.lines.append(f"br i1 %at{n}.more, label %broadcast{n}, label %broadcast{n}.end")
        self.label(f"broadcast{n}.end")

    def _gather(self, n: int) -> str:
        """Load one element per lane."""
        g, lanes = self.g, self.layout.lanes
        memory, index = g.args[n]
        offset = g.attrs[n]
        dtype, index_type = g.scalar(n), g.scalar(index)
        indices = self.ref(index)
        vector = self.unit.code.vector(dtype, stored=True)
        shared = g.ops[memory] == "data"
        base = self.unit.data(memory) if shared else self.address(memory, "0")
        result = "poison"
        for lane in range(lanes):
            place = self.line(f"add i64 {self._lane_index(index_type, indices, lane)}, {offset}")
            if shared:
                at = self.line(f"getelementptr {dtype.stored}, ptr {base}, i64 {place}")
            else:
                at = self._lane_address(base, dtype, place, lane)
            element = self.line(f"load {dtype.stored}, ptr {at}")
            result = self.line(f"insertelement {vector} {result}, {dtype.stored} {element}, i64 {lane}")
        if dtype.kind == "bool":
            return self.line(f"trunc {vector} {result} to {self.unit.code.vector(dtype)}")
        return result

    def _rare(self, n: int) -> str:
        """The usual value, or the result of a function call if any lane needs it."""
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
        """Write a loop with its carries in registers."""
        g, code = self.g, self.unit.code
        for n in g.args[loop.node]:
            if not isinstance(g.types[n], MemoryType):
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
            self.names[g.carry_result(loop, k)] = f"%c{r}.{k}"

    def _more(self, loop: Loop) -> str:
        tests = []
        if loop.trips is not None:
            tests.append(self.line(f"icmp ult i64 {self.names[loop.counter]}, {loop.trips}"))
        if loop.gate is not None:
            tests.append(self.unit.any(self.names[loop.carries[loop.gate]], self.line))
        return tests[0] if len(tests) == 1 else self.line(f"and i1 {tests[0]}, {tests[1]}")

    def _stack_stores(self, loop: Loop) -> None:
        g = self.g
        for k in loop.live_stacks or ():
            stack = loop.stacks[k]
            for offset, value in enumerate(stack.elements):
                index = g.index_add(stack.start, g.index(offset))
                self.sink(Sink(value, g.stack_memory(loop, k), index))
