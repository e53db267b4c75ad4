"""Routines of the loop language: constants, functions and control flow.

A routine is a Python function that calls methods of `Routine`; each call appends LLVM instructions. Python loops and
conditions run while the code is written; `Routine.loop` and `Routine.when` run in the machine code.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from truesim.native.loops.values import FLAG_TYPE, INDEX_TYPE, Operand, Precision, Value, Variable


class Routine:
    """Writer of one function of a module. `arguments` are the LLVM types of its parameters."""

    def __init__(self, module: ir.Module, precision: Precision, name: str, arguments: Sequence[ir.Type]):
        self.module, self.precision = module, precision
        kind = ir.FunctionType(INDEX_TYPE, list(arguments))
        self.function = ir.Function(module, kind, name)
        self.function.attributes.add("noinline")
        self.function.attributes.add("nounwind")
        entry = self.function.append_basic_block("entry")
        self.builder = ir.IRBuilder(entry)
        body = self.function.append_basic_block("body")
        self.builder.branch(body)
        self.builder.position_at_end(body)
        self.arguments = self.function.args

    # Constants and conversions

    def constant(self, value: float, kind: ir.Type) -> ir.Constant:
        """Python number as a constant of an LLVM type."""
        if isinstance(kind, ir.VectorType):
            return ir.Constant(kind, [value if kind.element == FLAG_TYPE else float(value)] * kind.count)
        return ir.Constant(kind, value)

    def real(self, value: float) -> Value:
        """Constant real in every lane."""
        return Value(self, self.constant(value, self.precision.vector))

    def index(self, value: Operand) -> Value:
        """Constant index, or the index itself."""
        return value if isinstance(value, Value) else Value(self, ir.Constant(INDEX_TYPE, int(value)))

    def mask(self, value: bool) -> Value:
        """Constant mask."""
        return Value(self, self.constant(value, self.precision.mask))

    def like(self, operand: Operand, other: Value) -> Value:
        """Operand as a value of the type of another."""
        return operand if isinstance(operand, Value) else Value(self, self.constant(operand, other.value.type))

    def broadcast(self, scalar: Any) -> Value:
        """A scalar in every lane."""
        vector = self.precision.vector
        one = self.builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.precision.lanes), [0] * self.precision.lanes)
        return Value(self, self.builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros))

    def to_real(self, index: Value) -> Value:
        """Index as a real in every lane."""
        return self.broadcast(self.builder.sitofp(index.value, self.precision.scalar))

    def lane(self, value: Value, lane: int) -> Any:
        """Scalar of one lane, as an LLVM value."""
        return self.builder.extract_element(value.value, ir.Constant(ir.IntType(32), lane))

    def from_lanes(self, scalars: Sequence[Any], kind: ir.Type | None = None) -> Value:
        """Vector of one LLVM scalar per lane."""
        vector = ir.Constant(kind or self.precision.vector, ir.Undefined)
        for i, x in enumerate(scalars):
            vector = self.builder.insert_element(vector, x, ir.Constant(ir.IntType(32), i))
        return Value(self, vector)

    # Functions

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call of an LLVM intrinsic on vectors of reals."""
        p = self.precision
        full = f"llvm.{name}.v{p.lanes}f{p.bits}"
        callee = self.module.globals.get(full)
        if callee is None:
            callee = ir.Function(self.module, ir.FunctionType(p.vector, [p.vector] * len(operands)), full)
        return Value(self, self.builder.call(callee, [x.value for x in operands]))

    def sqrt(self, x: Value) -> Value:
        """Square root."""
        return self.intrinsic("sqrt", x)

    def abs(self, x: Value) -> Value:
        """Absolute value."""
        return self.intrinsic("fabs", x)

    def where(self, mask: Value, a: Operand, b: Operand) -> Value:
        """`a` in the lanes of a mask (or for a flag), `b` elsewhere."""
        kind = a if isinstance(a, Value) else b if isinstance(b, Value) else self.real(0.0)
        return Value(self, self.builder.select(mask.value, self.like(a, kind).value, self.like(b, kind).value))

    def maximum(self, a: Value, b: Operand) -> Value:
        """Larger of two values."""
        return self.where(a > b, a, b)

    def minimum(self, a: Value, b: Operand) -> Value:
        """Smaller of two values."""
        return self.where(a < b, a, b)

    def clip(self, x: Value, low: Operand, high: Operand) -> Value:
        """Value limited to a range."""
        return self.minimum(self.maximum(x, low), high)

    def any(self, mask: Value) -> Value:
        """Flag: true where the mask is true in some lane."""
        bits = ir.IntType(self.precision.lanes)
        return Value(
            self, self.builder.icmp_unsigned("!=", self.builder.bitcast(mask.value, bits), ir.Constant(bits, 0))
        )

    # Control flow

    def variable(self, initial: Operand) -> Variable:
        """Variable with a first value; Python numbers are reals."""
        return Variable(initial if isinstance(initial, Value) else self.real(initial))

    @contextlib.contextmanager
    def loop(self, start: Operand, stop: Operand, step: int = 1) -> Iterator[Value]:
        """`for i in range(start, stop, step)`."""
        with self.breakable_loop(start, stop, step) as (i, _):
            yield i

    @contextlib.contextmanager
    def breakable_loop(
        self, start: Operand, stop: Operand, step: int = 1
    ) -> Iterator[tuple[Value, Callable[[Value], None]]]:
        """`for i in range(start, stop, step)`; the second value leaves the loop where a flag is set."""
        i = Variable(self.index(start))
        head, body, leave = (self.function.append_basic_block(n) for n in ("head", "loop", "leave"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        now = i.get()
        self.builder.cbranch((now < stop if step > 0 else now > stop).value, body, leave)
        self.builder.position_at_end(body)

        def leave_if(flag: Value) -> None:
            go = self.function.append_basic_block("go")
            self.builder.cbranch(flag.value, leave, go)
            self.builder.position_at_end(go)

        yield now, leave_if
        i.set(now + step)
        self.builder.branch(head)
        self.builder.position_at_end(leave)

    @contextlib.contextmanager
    def repeat(self) -> Iterator[Callable[[Value], None]]:
        """Endless loop; yields the function that leaves it where a flag is set."""
        with self.breakable_loop(0, 1 << 40) as (_, leave_if):
            yield leave_if

    @contextlib.contextmanager
    def when(self, flag: Value) -> Iterator[None]:
        """Run a block where a flag is set."""
        then, after = self.function.append_basic_block("then"), self.function.append_basic_block("after")
        self.builder.cbranch(flag.value, then, after)
        self.builder.position_at_end(then)
        yield
        self.builder.branch(after)
        self.builder.position_at_end(after)

    def choose(self, value: Value, cases: dict[int, Callable[[], None]]) -> None:
        """Run the case of an index; nothing for other values."""
        after = self.function.append_basic_block("chosen")
        switch = self.builder.switch(value.value, after)
        for number, write in cases.items():
            block = self.function.append_basic_block(f"case{number}")
            switch.add_case(ir.Constant(INDEX_TYPE, number), block)
            self.builder.position_at_end(block)
            write()
            self.builder.branch(after)
        self.builder.position_at_end(after)

    def sum(self, count: Operand, term: Callable[[Value], Value], start: Operand = 0.0) -> Value:
        """Sum of terms over a range."""
        total = self.variable(start)
        with self.loop(0, count) as i:
            total.add(term(i))
        return total.get()

    def returns(self, value: Operand = 0) -> None:
        """End of the function."""
        self.builder.ret(self.index(value).value)

    def return_if(self, flag: Value, value: Operand) -> None:
        """Return early where a flag is set."""
        out, go = self.function.append_basic_block("out"), self.function.append_basic_block("go")
        self.builder.cbranch(flag.value, out, go)
        self.builder.position_at_end(out)
        self.builder.ret(self.index(value).value)
        self.builder.position_at_end(go)
