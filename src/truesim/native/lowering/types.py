"""Types of graph nodes, with their NumPy and LLVM counterparts."""

from typing import Literal

import numpy as np

Kind = Literal["float", "int", "uint", "bool", "index"]


class ScalarType:
    """Type of one number in every lane (or, for `INDEX`, of one number shared by all lanes).

    Instances are unique: compare them with `is`.
    """

    __slots__ = ("dtype", "kind", "llvm", "name", "size", "stored")

    def __init__(self, name: str, kind: Kind, llvm: str, stored: str | None = None):
        self.name = name
        self.kind = kind
        self.llvm = llvm
        self.stored = stored or llvm
        """LLVM type in memory: booleans take a byte."""
        self.dtype = np.dtype("int64" if kind == "index" else name)
        self.size = self.dtype.itemsize

    def __repr__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        """Width of the type in memory."""
        return 8 * self.size


F64 = ScalarType("float64", "float", "double")
F32 = ScalarType("float32", "float", "float")
BOOL = ScalarType("bool", "bool", "i1", stored="i8")
I8, I16, I32, I64 = (ScalarType(f"int{n}", "int", f"i{n}") for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (ScalarType(f"uint{n}", "uint", f"i{n}") for n in (8, 16, 32, 64))
INDEX = ScalarType("index", "index", "i64")

_BY_DTYPE = {t.dtype: t for t in (F64, F32, BOOL, I8, I16, I32, I64, U8, U16, U32, U64)}


class MemoryType:
    """Type of an array in memory: `length` elements of one scalar type, row-major."""

    __slots__ = ("element", "length")

    def __init__(self, element: ScalarType, length: int):
        self.element = element
        self.length = length

    def __repr__(self) -> str:
        return f"{self.element}[{self.length}]"


_memory_types: dict[tuple[ScalarType, int], MemoryType] = {}


def memory(element: ScalarType, length: int) -> MemoryType:
    """Return the unique memory type of `length` elements."""
    key = element, length
    return _memory_types.get(key) or _memory_types.setdefault(key, MemoryType(element, length))


Type = ScalarType | MemoryType


def scalar_type(dtype: np.dtype) -> ScalarType | None:
    """Scalar type of a NumPy dtype, or None if kernels do not support it."""
    return _BY_DTYPE.get(dtype)
