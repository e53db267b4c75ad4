"""LLVM instructions of scalar operations, on vectors of lanes."""

from collections.abc import Callable

import numpy as np

from truesim.native.lowering.types import F32, F64, ScalarType

_FLOAT = {
    "add": "fadd contract",
    "sub": "fsub contract",
    "mul": "fmul contract",
    "exact_add": "fadd",
    "exact_sub": "fsub",
    "exact_mul": "fmul",
    "div": "fdiv",
    "rem": "frem",
    "neg": "fneg",
}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_INTRINSIC = {
    "abs": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "roundeven",
    "round_away": "round",
    "fma": "fma",
}
_COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole"}

Line = Callable[[str], str]
"""Function that appends an instruction and returns the name of its result."""


class Instructions:
    """Writer of the instructions of scalar operations for a given number of lanes."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.declarations: set[str] = set()

    def vector(self, dtype: ScalarType, stored: bool = False) -> str:
        """LLVM vector type of a scalar type."""
        return f"<{self.lanes} x {dtype.stored if stored else dtype.llvm}>"

    def constant(self, value: np.generic, dtype: ScalarType) -> str:
        """Vector with a constant in every lane."""
        return f"splat ({dtype.llvm} {scalar_constant(value, dtype)})"

    def intrinsic(self, name: str, vector: str, operands: list[str], result: str | None = None) -> str:
        """Call of an LLVM intrinsic on vectors of one type, declared at its first use."""
        mangled = [_suffix(vector)] if result is None else [_suffix(result), _suffix(vector)]
        full = ".".join(["@llvm", name, *mangled])
        self.declarations.add(f"declare {result or vector} {full}({', '.join([vector] * len(operands))})")
        return f"call {result or vector} {full}({', '.join(f'{vector} {o}' for o in operands)})"

    def write(self, op: str, dtype: ScalarType, source: ScalarType, args: list[str], line: Line) -> str:
        """Write the instructions of one operation; `source` is the type of its first operand."""
        vector = self.vector(dtype)
        if op in ("eq", "ne", "lt", "le"):
            return self._compare(op, source, args, line)
        if op in ("min", "max"):
            return self._extremum(op, dtype, args, line)
        if op == "convert":
            return self._convert(dtype, source, args[0], line)
        if op == "bitcast":
            return line(f"bitcast {self.vector(source)} {args[0]} to {vector}")
        if op == "not":
            return line(f"xor {vector} {args[0]}, splat ({dtype.llvm} -1)")
        if dtype.kind == "float":
            if op in _FLOAT:
                return line(f"{_FLOAT[op]} {vector} {', '.join(args)}")
            return line(self.intrinsic(_INTRINSIC[op], vector, args))
        if op in _INTEGER:
            return line(f"{_INTEGER[op]} {vector} {', '.join(args)}")
        return self._integer(op, dtype, args, line)

    def _compare(self, op: str, source: ScalarType, args: list[str], line: Line) -> str:
        vector = self.vector(source)
        if source.kind == "float":
            return line(f"fcmp {_COMPARE_FLOAT[op]} {vector} {args[0]}, {args[1]}")
        signed = "s" if source.kind in ("int", "index") else "u"
        code = op if op in ("eq", "ne") else signed + op
        return line(f"icmp {code} {vector} {args[0]}, {args[1]}")

    def _select(self, condition: str, dtype: ScalarType, a: str, b: str, line: Line) -> str:
        vector = self.vector(dtype)
        return line(f"select <{self.lanes} x i1> {condition}, {vector} {a}, {vector} {b}")

    def _extremum(self, op: str, dtype: ScalarType, args: list[str], line: Line) -> str:
        a, b = args
        if dtype.kind != "float":
            signed = "s" if dtype.kind == "int" else "u"
            order = {"min": "lt", "max": "gt"}[op]
            chosen = line(f"icmp {signed}{order} {self.vector(dtype)} {a}, {b}")
            return self._select(chosen, dtype, a, b, line)
        chosen = line(f"fcmp {'olt' if op == 'min' else 'ogt'} {self.vector(dtype)} {a}, {b}")
        ordered = self._select(chosen, dtype, a, b, line)
        nan = line(f"fcmp uno {self.vector(dtype)} {a}, {a}")
        return self._select(nan, dtype, a, ordered, line)

    def _convert(self, dtype: ScalarType, source: ScalarType, a: str, line: Line) -> str:
        before, after = self.vector(source), self.vector(dtype)
        unsigned = source.kind in ("uint", "bool")
        if source.kind == "float":
            if dtype.kind == "float":
                return line(f"{'fpext' if dtype is F64 else 'fptrunc'} {before} {a} to {after}")
            name = "fptosi.sat" if dtype.kind == "int" else "fptoui.sat"
            return line(self.intrinsic(name, before, [a], result=after))
        if dtype.kind == "float":
            return line(f"{'uitofp' if unsigned else 'sitofp'} {before} {a} to {after}")
        source_bits = 1 if source.kind == "bool" else source.bits
        if source_bits == dtype.bits:
            return a
        widen = "zext" if unsigned else "sext"
        return line(f"{'trunc' if source_bits > dtype.bits else widen} {before} {a} to {after}")

    def _integer(self, op: str, dtype: ScalarType, args: list[str], line: Line) -> str:
        vector = self.vector(dtype)
        if op == "neg":
            return line(f"sub {vector} zeroinitializer, {args[0]}")
        if op == "abs":
            negated = line(f"sub {vector} zeroinitializer, {args[0]}")
            negative = line(f"icmp slt {vector} {args[0]}, zeroinitializer")
            return self._select(negative, dtype, negated, args[0], line)
        if op in ("popcount", "clz"):
            if op == "popcount":
                return line(self.intrinsic("ctpop", vector, args))
            name = f"@llvm.ctlz.{_suffix(vector)}"
            self.declarations.add(f"declare {vector} {name}({vector}, i1)")
            return line(f"call {vector} {name}({vector} {args[0]}, i1 false)")
        if op in ("shl", "shr", "shr_logical"):
            return self._shift(op, dtype, args, line)
        return self._divide(op, dtype, args, line)

    def _shift(self, op: str, dtype: ScalarType, args: list[str], line: Line) -> str:
        """Shift; by the width or more, the result equals that of shifting bit by bit."""
        vector, bits = self.vector(dtype), dtype.bits
        fits = line(f"icmp ult {vector} {args[1]}, splat ({dtype.llvm} {bits})")
        top = f"splat ({dtype.llvm} {bits - 1})"
        amount = self._select(fits, dtype, args[1], top, line)
        name = {"shl": "shl", "shr": "ashr", "shr_logical": "lshr"}[op]
        shifted = line(f"{name} {vector} {args[0]}, {amount}")
        return shifted if op == "shr" else self._select(fits, dtype, shifted, "zeroinitializer", line)

    def _divide(self, op: str, dtype: ScalarType, args: list[str], line: Line) -> str:
        """Integer quotient or remainder that never traps: x / 0 = -1, x % 0 = x, min / -1 = min."""
        vector = self.vector(dtype)
        a, b = args
        signed = dtype.kind == "int"
        zero = line(f"icmp eq {vector} {b}, zeroinitializer")
        unsafe = zero
        if signed:
            smallest = line(f"icmp eq {vector} {a}, splat ({dtype.llvm} {np.iinfo(dtype.dtype).min})")
            minus_one = line(f"icmp eq {vector} {b}, splat ({dtype.llvm} -1)")
            both = line(f"and <{self.lanes} x i1> {smallest}, {minus_one}")
            unsafe = line(f"or <{self.lanes} x i1> {zero}, {both}")
        safe = self._select(unsafe, dtype, f"splat ({dtype.llvm} 1)", b, line)
        name = ("s" if signed else "u") + op
        result = line(f"{name} {vector} {a}, {safe}")
        return self._select(zero, dtype, a if op == "rem" else f"splat ({dtype.llvm} -1)", result, line)


def scalar_constant(value: np.generic, dtype: ScalarType) -> str:
    """LLVM literal of a constant."""
    if dtype.kind == "float":
        wide = np.float64(np.float32(value)) if dtype is F32 else np.float64(value)
        return f"0x{wide.view(np.uint64):016X}"
    if dtype.kind == "bool":
        return "true" if value else "false"
    return str(int(value))


def _suffix(vector: str) -> str:
    """LLVM's mangling of a vector type: <4 x double> is v4f64."""
    count, _, element = vector[1:-1].split(" ")
    return f"v{count}" + {"double": "f64", "float": "f32"}.get(element, element)
