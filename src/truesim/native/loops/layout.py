"""Named arrays within flat buffers, whose offsets are read at run time.

A table-driven routine has four buffers: `tables` (int64: sizes and structure), `parameters` (reals, shared by all
instances or one per lane), `integers` (int64 workspace) and `work` (workspace of vectors). `tables` begins with a
header that holds the sizes and, for every named array, its first element within its buffer. The position of a name in
the header is fixed when the routine is compiled; the offset is not, so that one routine serves models of any size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir

from truesim.native.loops.language import Routine
from truesim.native.loops.values import INDEX_TYPE, POINTER_TYPE, LoopArray, Operand, Precision, Value


@dataclass(frozen=True)
class Layout:
    """Names of the sizes, and of the arrays in each of the four buffers."""

    sizes: tuple[str, ...]
    tables: tuple[str, ...]
    parameters: tuple[str, ...]
    integers: tuple[str, ...]
    work: tuple[str, ...]

    @cached_property
    def header(self) -> dict[str, int]:
        """Position of every name in the header."""
        names = [*self.sizes, *self.tables, *self.parameters, *self.integers, *self.work]
        assert len(set(names)) == len(names), "a name is used twice"
        return {name: k for k, name in enumerate(names)}

    def offsets(self, names: Sequence[str], lengths: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """First element of every array of a buffer, and the length of the buffer."""
        total, first = 0, {}
        for name in names:
            first[name] = total
            total += lengths[name]
        return first, total

    def pack(self, sizes: Mapping[str, int], tables: Mapping[str, np.ndarray], first: Mapping[str, int]) -> np.ndarray:
        """Buffer `tables`: a header of sizes and offsets (`first`: of the other buffers), and the int64 arrays."""
        header = np.zeros(len(self.header), np.int64)
        for name in self.sizes:
            header[self.header[name]] = sizes[name]
        arrays = {name: np.asarray(tables[name], np.int64).ravel() for name in self.tables}
        lengths = {name: len(a) for name, a in arrays.items()}
        own, _ = self.offsets(self.tables, lengths)
        for name, at in own.items():
            header[self.header[name]] = len(header) + at
        for name, at in first.items():
            header[self.header[name]] = at
        return np.concatenate([header, *arrays.values()])


class Namespace:
    """Arrays of one buffer, by name; the offset is loaded once, at the start of the routine."""

    def __init__(self, routine: "TableRoutine", base: Any, stored: ir.Type, names: Sequence[str]):
        self._routine, self._base, self._stored, self._names = routine, base, stored, frozenset(names)

    def __getattr__(self, name: str) -> LoopArray:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"no array is called {name}")
        k = self._routine
        with k.builder.goto_block(k.function.entry_basic_block):
            offset = k.header(name)
            pointer = k.builder.gep(self._base, [offset], source_etype=self._stored)
        array = LoopArray(k, pointer, self._stored)
        setattr(self, name, array)
        return array


class TableRoutine(Routine):
    """Routine on the four buffers of a layout, and further arguments (pointers and indices)."""

    def __init__(self, library: "RoutineModule", name: str, extra: Sequence[ir.Type] = ()):
        super().__init__(library.module, library.precision, name, [POINTER_TYPE] * 4 + list(extra))
        for argument in self.arguments[:4]:
            argument.add_attribute("noalias")
        self.layout, p = library.layout, library.precision
        self.parameters_per_lane = library.parameters_per_lane
        self._tables, parameters, integers, work = self.arguments[:4]
        self.extra = self.arguments[4:]
        self.table = Namespace(self, self._tables, INDEX_TYPE, self.layout.tables)
        stored = p.vector if library.parameters_per_lane else p.scalar
        self.parameter = Namespace(self, parameters, stored, self.layout.parameters)
        self.integer = Namespace(self, integers, INDEX_TYPE, self.layout.integers)
        self.work = Namespace(self, work, p.vector, self.layout.work)
        self._sizes: dict[str, Value] = {}

    def header(self, name: str) -> Any:
        """Entry of the header, as an LLVM value."""
        place = self.builder.gep(self._tables, [self.index(self.layout.header[name]).value], source_etype=INDEX_TYPE)
        return self.builder.load(place, typ=INDEX_TYPE)

    def size(self, name: str) -> Value:
        """A size, loaded at the start of the routine."""
        if name not in self._sizes:
            with self.builder.goto_block(self.function.entry_basic_block):
                self._sizes[name] = Value(self, self.header(name))
        return self._sizes[name]

    def call(self, name: str, *extra: Operand) -> Value:
        """Call of another routine on the same buffers."""
        callee = self.module.globals[name]
        values = [x.value if isinstance(x, Value) else x for x in extra]
        return Value(self, self.builder.call(callee, [*self.arguments[:4], *values]))


@dataclass
class RoutineModule:
    """LLVM module in which routines are written."""

    layout: Layout
    precision: Precision
    parameters_per_lane: bool
    module: ir.Module

    @classmethod
    def empty(cls, layout: Layout, precision: Precision, parameters_per_lane: bool) -> "RoutineModule":
        """A module without routines."""
        return cls(layout, precision, parameters_per_lane, ir.Module("routines"))

    def names(self) -> Iterator[str]:
        """Names of the routines that have been written."""
        return (f.name for f in self.module.functions if not f.is_declaration)
