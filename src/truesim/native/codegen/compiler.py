"""Compilation of a jaxpr to object code: lowering, scheduling, LLVM IR."""

import contextlib
import gc
import math
from collections.abc import Iterator
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
from jax.extend import core as jex

from truesim.native.codegen.driver import CopiedOutput, KernelBuffer, KernelBuffers, Tiling, driver
from truesim.native.codegen.emit import ModuleBuilder
from truesim.native.codegen.schedule import Schedule, Sink, schedule
from truesim.native.codegen.target import CpuTarget
from truesim.native.codegen.unit import WorkspaceLayout
from truesim.native.lowering import Lowering
from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.types import memory
from truesim.native.lowering.values import Array, MemoryArray, RowArray, is_copied

_MAX_GROUP_TILES = 8
"""Maximum number of tiles that run through the code together; more tiles share the cost of a call."""
_MAX_GROUP_BYTES = 2**18
"""Maximum workspace of a group of tiles [bytes]; a larger one does not stay in the processor's cache."""


@dataclass(frozen=True)
class Listing:
    """LLVM IR of a kernel, its number of operations, and its workspace per tile [bytes]."""

    text: str
    operations: int
    workspace: int


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Scope for code that makes millions of tuples and no cycles, through which the collector would search in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def listing(closed: jex.ClosedJaxpr, target: CpuTarget) -> Listing:
    """LLVM IR of the kernel of a jaxpr."""
    with np.errstate(all="ignore"), _without_garbage_collection():
        g = Algebra()
        low = Lowering(g, target.has_fma)
        inputs = []
        for k, aval in enumerate(closed.in_avals):
            dtype = low.type_of(aval)
            node = g.node("input", memory(dtype, math.prod(aval.shape)), (), k)
            inputs.append(MemoryArray(g, node, aval.shape, dtype))
        results = low.run_closed(closed, inputs)
        outputs, sinks, direct = _outputs(g, results)
        plan = schedule(g, sinks, direct)
        lanes = target.vector_bytes // (8 if low.is_double else 4)
        layout = _layout(g, plan, lanes, list(outputs.values()))
        module = ModuleBuilder(g, plan, layout, target.has_fma)
        body = module.block(plan.block, [])
        buffers = KernelBuffers(
            [_buffer(g, layout, k, x.memory()) for k, x in enumerate(inputs) if x.memory() in layout.arrays],
            [_buffer(g, layout, k, n) for k, n in outputs.items()],
            [
                CopiedOutput(k, source, x.size * x.type.size)
                for k, x in enumerate(results)
                if (source := _source(g, x)) is not None
            ],
        )
        tiling = Tiling(lanes, layout.size, _group(layout.size), target.is_x86, target.is_windows)
        around = driver(buffers, body, tiling)
        operations = sum(map(len, plan.order.values()))
        return Listing(module.text() + around, operations, layout.size)


def _buffer(g: Algebra, layout: WorkspaceLayout, number: int, node: int) -> KernelBuffer:
    dtype = g.memory_type(node)
    return KernelBuffer(number, dtype.length, dtype.element, layout.arrays[node])


def _source(g: Algebra, result: Array) -> int | None:
    """Number of the input that an output copies, or None if it is computed."""
    if isinstance(result, RowArray) or not result.size:
        return None
    if isinstance(result, MemoryArray):
        memory = result.memory()
    else:
        nodes = result.nodes().reshape(-1).tolist()
        memory = g.args[nodes[0]][0] if g.ops[nodes[0]] == "load" else nodes[0]
        if g.ops[memory] != "input" or any(n != g.load(memory, g.index(k)) for k, n in enumerate(nodes)):
            return None
    if g.ops[memory] != "input" or g.memory_type(memory).length != result.size:
        return None
    number = g.attrs[memory]
    assert isinstance(number, int)
    return number


def _outputs(g: Algebra, results: list[Array]) -> tuple[dict[int, int], list[Sink], list[int]]:
    """Memory node of each computed output, the writes that fill them, and the outputs that loops fill directly."""
    outputs: dict[int, int] = {}
    sinks: list[Sink] = []
    direct: list[int] = []
    for k, result in enumerate(results):
        if _source(g, result) is not None:
            continue
        if isinstance(result, MemoryArray | RowArray) and is_copied(result.shape):
            node = result.memory()
            if g.ops[node] != "stack" or node in direct:
                node = RowArray(g, result.shape, result.type, result.row).memory() if result.shape else node
            outputs[k] = node
            direct.append(node)
            continue
        node = g.node("output", memory(result.type, result.size), (), k)
        outputs[k] = node
        sinks += [Sink(v, node, g.index(j)) for j, v in enumerate(result.nodes().reshape(-1).tolist())]
    return outputs, sinks, direct


def _layout(g: Algebra, plan: Schedule, lanes: int, outputs: list[int]) -> WorkspaceLayout:
    slot = lanes * max((g.scalar(n).size for n in plan.slots), default=1)
    arrays: dict[int, int] = {}
    offset = -(-plan.slot_count * slot // 64) * 64
    for n in dict.fromkeys([*outputs, *plan.arrays]):
        dtype = g.memory_type(n)
        arrays[n] = offset
        offset += -(-dtype.length * dtype.element.size * lanes // 64) * 64
    slots = {n: k * slot for n, k in plan.slots.items()}
    return WorkspaceLayout(lanes, slots, arrays, max(offset, 64))


def _group(workspace: int) -> int:
    """Number of tiles that run through the code together, limited by the processor's cache."""
    return max(1, min(_MAX_GROUP_TILES, _MAX_GROUP_BYTES // workspace))


def assemble(text: str, target: CpuTarget) -> bytes:
    """Compile LLVM IR to object code."""
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    module.triple = target.triple
    return target.machine().emit_object(module)


def load(code: bytes, target: CpuTarget) -> tuple[object, int]:
    """Load object code; return the engine that holds it and the address of its kernel.

    The engine's empty module belongs to the global context, since a context of its own could be garbage-collected
    before the engine.
    """
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, target.machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address("kernel")
