"""Values, variables and arrays of the loop language.

`Value` carries one of four types: a vector of reals (one per lane), a mask (one bit per lane), an index (64-bit
integer), or a flag (one bit).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir

if TYPE_CHECKING:
    from truesim.native.loops.language import Routine

INDEX_TYPE = ir.IntType(64)
FLAG_TYPE = ir.IntType(1)
POINTER_TYPE = ir.PointerType()
_CONTRACT = ("contract",)
"""Allows a product and a sum to become one fused instruction, and nothing else: NaN and infinity survive."""


@dataclass(frozen=True)
class Precision:
    """Scalar type and number of lanes of a vector."""

    bits: int
    lanes: int

    @property
    def scalar(self) -> ir.Type:
        """LLVM type of one number."""
        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def vector(self) -> ir.Type:
        """LLVM type of one number per lane."""
        return ir.VectorType(self.scalar, self.lanes)

    @property
    def mask(self) -> ir.Type:
        """LLVM type of one bit per lane."""
        return ir.VectorType(FLAG_TYPE, self.lanes)

    @property
    def bytes(self) -> int:
        """Size of a vector [bytes]."""
        return self.bits // 8 * self.lanes


Operand = Any
"""A `Value`, or a Python number of the type of the other operand."""


class Value:
    """A result of an instruction, with the operators of Python."""

    def __init__(self, routine: "Routine", value: Any):
        self.routine, self.value = routine, value

    @property
    def is_real(self) -> bool:
        """True for a vector of reals."""
        return self.value.type == self.routine.precision.vector

    def _arithmetic(self, real: str, integer: str, a: Operand, b: Operand) -> "Value":
        k = self.routine
        left, right = k.like(a, self), k.like(b, self)
        if self.is_real:
            return Value(k, getattr(k.builder, real)(left.value, right.value, flags=_CONTRACT))
        return Value(k, getattr(k.builder, integer)(left.value, right.value))

    def __add__(self, other: Operand) -> "Value":
        return self._arithmetic("fadd", "add", self, other)

    def __radd__(self, other: Operand) -> "Value":
        return self._arithmetic("fadd", "add", other, self)

    def __sub__(self, other: Operand) -> "Value":
        return self._arithmetic("fsub", "sub", self, other)

    def __rsub__(self, other: Operand) -> "Value":
        return self._arithmetic("fsub", "sub", other, self)

    def __mul__(self, other: Operand) -> "Value":
        return self._arithmetic("fmul", "mul", self, other)

    def __rmul__(self, other: Operand) -> "Value":
        return self._arithmetic("fmul", "mul", other, self)

    def __truediv__(self, other: Operand) -> "Value":
        return self._arithmetic("fdiv", "sdiv", self, other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self._arithmetic("fdiv", "sdiv", other, self)

    def __mod__(self, other: Operand) -> "Value":
        return self._arithmetic("frem", "srem", self, other)

    def __lshift__(self, other: Operand) -> "Value":
        return Value(self.routine, self.routine.builder.shl(self.value, self.routine.like(other, self).value))

    def __rshift__(self, other: Operand) -> "Value":
        return Value(self.routine, self.routine.builder.lshr(self.value, self.routine.like(other, self).value))

    def __neg__(self) -> "Value":
        b = self.routine.builder
        return Value(self.routine, b.fneg(self.value) if self.is_real else b.neg(self.value))

    def compare(self, operator: str, other: Operand) -> "Value":
        """Mask or flag of a comparison; false where an operand is NaN."""
        k = self.routine
        right = k.like(other, self).value
        if self.is_real:
            return Value(k, k.builder.fcmp_ordered(operator, self.value, right))
        return Value(k, k.builder.icmp_signed(operator, self.value, right))

    def __lt__(self, other: Operand) -> "Value":
        return self.compare("<", other)

    def __le__(self, other: Operand) -> "Value":
        return self.compare("<=", other)

    def __gt__(self, other: Operand) -> "Value":
        return self.compare(">", other)

    def __ge__(self, other: Operand) -> "Value":
        return self.compare(">=", other)

    def equals(self, other: Operand) -> "Value":
        """Mask or flag of equality."""
        return self.compare("==", other)

    def differs(self, other: Operand) -> "Value":
        """Mask or flag of inequality."""
        return self.compare("!=", other)

    def __and__(self, other: Operand) -> "Value":
        return Value(self.routine, self.routine.builder.and_(self.value, self.routine.like(other, self).value))

    def __or__(self, other: Operand) -> "Value":
        return Value(self.routine, self.routine.builder.or_(self.value, self.routine.like(other, self).value))

    def __invert__(self) -> "Value":
        return Value(self.routine, self.routine.builder.not_(self.value))


class Variable:
    """A value that changes: a stack place that LLVM turns into a register."""

    def __init__(self, initial: Value):
        self.routine, self.type = initial.routine, initial.value.type
        with self.routine.builder.goto_entry_block():
            self._place = self.routine.builder.alloca(self.type)
        self.set(initial)

    def get(self) -> Value:
        """Present value."""
        return Value(self.routine, self.routine.builder.load(self._place, typ=self.type))

    def set(self, value: Operand) -> None:
        """Assign a value."""
        k = self.routine
        k.builder.store(value.value if isinstance(value, Value) else k.constant(value, self.type), self._place)

    def add(self, value: Operand) -> None:
        """Add to the value."""
        self.set(self.get() + value)


class LoopArray:
    """Values at an address. `stored` is their type in memory: a scalar is broadcast to all lanes on loading."""

    def __init__(self, routine: "Routine", pointer: Any, stored: ir.Type):
        self.routine, self.pointer, self.stored = routine, pointer, stored
        self._align = routine.precision.bytes if stored == routine.precision.vector else None

    def address(self, index: Operand) -> Any:
        """Address of an element."""
        k = self.routine
        return k.builder.gep(self.pointer, [k.index(index).value], source_etype=self.stored)

    def __getitem__(self, index: Operand) -> Value:
        k = self.routine
        loaded = k.builder.load(self.address(index), typ=self.stored, align=self._align)
        return k.broadcast(loaded) if self.stored == k.precision.scalar else Value(k, loaded)

    def __setitem__(self, index: Operand, value: Operand) -> None:
        k = self.routine
        x = value.value if isinstance(value, Value) else k.constant(value, self.stored)
        k.builder.store(x, self.address(index), align=self._align)

    def rows(self, index: Operand, width: int) -> list[Value]:
        """Elements `index * width` up to the next row."""
        return self.block(self.routine.index(index) * width, width)

    def block(self, start: Operand, width: int) -> list[Value]:
        """`width` elements from `start` on."""
        k = self.routine
        first = LoopArray(k, self.address(start), self.stored)
        return [first[i] for i in range(width)]

    def put(self, index: Operand, values: Sequence[Operand]) -> None:
        """Store a row of `len(values)` elements."""
        self.put_block(self.routine.index(index) * len(values), values)

    def put_block(self, start: Operand, values: Sequence[Operand]) -> None:
        """Store consecutive elements from `start` on."""
        first = LoopArray(self.routine, self.address(start), self.stored)
        for i, x in enumerate(values):
            first[i] = x

    def at(self, start: Operand) -> "LoopArray":
        """The same array from an element on."""
        return LoopArray(self.routine, self.address(start), self.stored)
