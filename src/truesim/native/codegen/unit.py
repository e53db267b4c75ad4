"""State shared by the functions of one LLVM module."""

from dataclasses import dataclass
from typing import Any

from truesim.native.codegen.instructions import Instructions, Line
from truesim.native.lowering.algebra import Algebra

SlowKey = tuple[Any, bool]
"""An elementary function, and whether it is for float32."""


@dataclass
class WorkspaceLayout:
    """Byte offsets in the workspace."""

    lanes: int
    slots: dict[int, int]
    """Offset of the slot of each value."""
    arrays: dict[int, int]
    """Offset of each memory node."""
    size: int


class CompilationUnit:
    """State shared by the functions of one module: graph, workspace layout, global data and helper functions."""

    def __init__(self, g: Algebra, order: dict[int, list[int]], layout: WorkspaceLayout, has_fma: bool):
        self.g = g
        self.order = order
        self.layout = layout
        self.has_fma = has_fma
        self.code = Instructions(layout.lanes)
        self.functions: list[str] = []
        self.globals: dict[int, str] = {}
        self.wanted: dict[SlowKey, str] = {}
        """Out-of-line functions that are called, by function and precision."""

    def data(self, node: int) -> str:
        """Name of the global that holds a node's read-only data."""
        number = self.g.attrs[node]
        assert isinstance(number, int)
        if number not in self.globals:
            content = self.g.data[number].tobytes()
            text = "\\" + content.hex("\\").upper()
            self.globals[number] = f'@data{number} = internal constant [{len(content)} x i8] c"{text}", align 64'
        return f"@data{number}"

    def any(self, flags: str, line: Line) -> str:
        """Name of a flag that is true when a boolean holds in any lane."""
        lanes = self.layout.lanes
        self.code.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
        return line(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {flags})")

    def slow(self, key: SlowKey) -> str:
        """Name of the out-of-line version of an elementary function, which is written with the module."""
        return self.wanted.setdefault(key, f"@slow{len(self.wanted)}")
