"""Types of graph nodes, with their NumPy and LLVM counterparts."""

from functools import cache
from typing import Literal

import numpy as np

Kind = Literal["float", "int", "uint", "bool", "index"]


class Scalar:
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


F64 = Scalar("float64", "float", "double")
F32 = Scalar("float32", "float", "float")
BOOL = Scalar("bool", "bool", "i1", stored="i8")
I8, I16, I32, I64 = (Scalar(f"int{n}", "int", f"i{n}") for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (Scalar(f"uint{n}", "uint", f"i{n}") for n in (8, 16, 32, 64))
INDEX = Scalar("index", "index", "i64")

_BY_DTYPE = {t.dtype: t for t in (F64, F32, BOOL, I8, I16, I32, I64, U8, U16, U32, U64)}


class Memory:
    """Type of an array that lives in memory: `length` elements of one scalar type, row-major."""

    __slots__ = ("element", "length")

    def __init__(self, element: Scalar, length: int):
        self.element = element
        self.length = length

    def __repr__(self) -> str:
        return f"{self.element}[{self.length}]"


@cache
def memory(element: Scalar, length: int) -> Memory:
    """The unique memory type of `length` elements."""
    return Memory(element, length)


Type = Scalar | Memory


def scalar_type(dtype: np.dtype) -> Scalar | None:
    """The scalar type of a NumPy dtype, or None when kernels do not handle it."""
    return _BY_DTYPE.get(dtype)
