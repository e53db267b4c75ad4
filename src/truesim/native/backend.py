"""From a jaxpr to machine code: lowering, scheduling, emission, LLVM."""

import math
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
from jax.extend import core as jex

from truesim.native.algebra import Algebra
from truesim.native.driver import Copy, Frame, Port, Ports, driver
from truesim.native.emit import Module
from truesim.native.lower import Lowering
from truesim.native.lower.values import Array, InMemory, Rows, is_copied
from truesim.native.schedule import Schedule, Sink, schedule
from truesim.native.target import Target
from truesim.native.types import memory
from truesim.native.unit import Layout

_GROUP = 8
"""Most tiles that go through the code together."""
_CACHE_BYTES = 2**18
"""Workspace that a group of tiles may use."""


@dataclass(frozen=True)
class Listing:
    """LLVM IR of a kernel, with some facts about it."""

    text: str
    operations: int
    workspace: int


def listing(closed: jex.ClosedJaxpr, target: Target) -> Listing:
    """LLVM IR of the kernel of a jaxpr."""
    with np.errstate(all="ignore"):
        g = Algebra()
        low = Lowering(g, target.has_fma)
        inputs = []
        for k, aval in enumerate(closed.in_avals):
            dtype = low.type_of(aval)
            node = g.node("input", memory(dtype, math.prod(aval.shape)), (), k)
            inputs.append(InMemory(g, node, aval.shape, dtype))
        results = low.run_closed(closed, inputs)
        outputs, sinks, direct = _outputs(g, results)
        plan = schedule(g, sinks, direct)
        lanes = target.vector_bytes // (8 if low.is_double else 4)
        layout = _layout(g, plan, lanes, list(outputs.values()))
        module = Module(g, plan, layout, target.has_fma)
        body = module.block(plan.block, [])
        ports = Ports(
            [_port(g, layout, k, x.memory()) for k, x in enumerate(inputs) if x.memory() in layout.arrays],
            [_port(g, layout, k, n) for k, n in outputs.items()],
            [
                Copy(k, source, x.size * x.type.size)
                for k, x in enumerate(results)
                if (source := _source(g, x)) is not None
            ],
        )
        frame = Frame(lanes, layout.size, _group(layout.size), target.is_x86)
        around = driver(ports, body, frame)
        operations = sum(map(len, plan.order.values()))
        return Listing(module.text() + around, operations, layout.size)


def _port(g: Algebra, layout: Layout, number: int, node: int) -> Port:
    dtype = g.memory_type(node)
    return Port(number, dtype.length, dtype.element, layout.arrays[node])


def _source(g: Algebra, result: Array) -> int | None:
    """Number of the input that an output repeats, if it does."""
    if isinstance(result, Rows) or not result.size:
        return None
    if isinstance(result, InMemory):
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
    """Memory node of each computed output, the writes that fill them, and those filled by loops themselves."""
    outputs: dict[int, int] = {}
    sinks: list[Sink] = []
    direct: list[int] = []
    for k, result in enumerate(results):
        if _source(g, result) is not None:
            continue
        if isinstance(result, InMemory | Rows) and is_copied(result.shape):
            node = result.memory()
            if g.ops[node] != "stack" or node in direct:
                node = Rows(g, result.shape, result.type, result.row).memory() if result.shape else node
            outputs[k] = node
            direct.append(node)
            continue
        node = g.node("output", memory(result.type, result.size), (), k)
        outputs[k] = node
        sinks += [Sink(v, node, g.index(j)) for j, v in enumerate(result.nodes().reshape(-1).tolist())]
    return outputs, sinks, direct


def _layout(g: Algebra, plan: Schedule, lanes: int, outputs: list[int]) -> Layout:
    slot = lanes * max((g.scalar(n).size for n in plan.slots), default=1)
    arrays: dict[int, int] = {}
    offset = -(-plan.slot_count * slot // 64) * 64
    for n in dict.fromkeys([*outputs, *plan.arrays]):
        dtype = g.memory_type(n)
        arrays[n] = offset
        offset += -(-dtype.length * dtype.element.size * lanes // 64) * 64
    slots = {n: k * slot for n, k in plan.slots.items()}
    return Layout(lanes, slots, arrays, max(offset, 64))


def _group(workspace: int) -> int:
    """Tiles that go through a chunk together: as many as keep their data in the cache."""
    return max(1, min(_GROUP, _CACHE_BYTES // workspace))


def assemble(text: str, target: Target) -> bytes:
    """Object code of LLVM IR."""
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    module.triple = target.triple
    return target.machine().emit_object(module)


def load(code: bytes, target: Target) -> tuple[object, int]:
    """An engine that holds object code in memory, and the address of its kernel.

    Its empty module lies in the global context: one of its own could be collected as garbage before the engine is.
    """
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, target.machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address("kernel")
