"""Code around the body of a kernel: layout, padding, threads and floating-point mode.

Arrays arrive batch first. A tile has one instance of the batch per vector lane. For every tile, the driver transposes
the inputs to one vector per element, runs the body, and transposes the outputs back. Missing instances of the last tile
are copies of the last real one, so that they neither trap nor loop forever. Inputs without a batch axis are broadcast
once. Unused inputs are not read, and outputs that equal an input are copied. Threads take the tiles in turns, so that a
delayed thread leaves more tiles to the others.
"""

from dataclasses import dataclass

from truesim.native.codegen.tiles import COPY_FUNCTION, gather, scatter
from truesim.native.lowering.types import ScalarType

_MXCSR = 0x1F80
"""Floating-point mode of x86: round to nearest, all exceptions masked, denormals kept."""


@dataclass(frozen=True)
class KernelBuffer:
    """An input or output array of a kernel: its number, elements per instance, type and offset in the workspace."""

    number: int
    size: int
    type: ScalarType
    offset: int


@dataclass(frozen=True)
class CopiedOutput:
    """An output that equals an input, and their size per instance [bytes]."""

    target: int
    source: int
    size: int


@dataclass(frozen=True)
class KernelBuffers:
    """Arrays that a kernel reads, computes and copies."""

    inputs: list[KernelBuffer]
    outputs: list[KernelBuffer]
    copies: list[CopiedOutput]


@dataclass(frozen=True)
class Tiling:
    """Tiles of a kernel: lanes and bytes of workspace per tile, and tiles that run together."""

    lanes: int
    workspace: int
    group: int
    is_x86: bool
    is_windows: bool = False


def driver(buffers: KernelBuffers, body: list[str], tiling: Tiling) -> str:
    """LLVM IR of `kernel(inputs, strides, outputs, batch, threads)`, which returns 1 if it is out of memory."""
    widths = sorted({p.type.bits for p in (*buffers.inputs, *buffers.outputs)})
    helpers = [f(bits, tiling.lanes) for bits in widths for f in (gather, scatter)]
    return "\n".join(
        [
            *helpers,
            COPY_FUNCTION,
            _work(buffers, body, tiling),
            _ENTRY.format(
                call=_CALL, lanes=tiling.lanes, rest=tiling.lanes - 1, group=tiling.group, turns=_TURNS_PER_THREAD
            ),
            _WINDOWS_FUNCTIONS if tiling.is_windows else _POSIX_FUNCTIONS,
            _INTRINSICS,
        ]
    )


_POSIX_FUNCTIONS = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
"""
_WINDOWS_FUNCTIONS = """
declare ptr @_aligned_malloc(i64, i64)
declare void @_aligned_free(ptr)
define internal ptr @aligned_alloc(i64 %alignment, i64 %size) {
  %p = call ptr @_aligned_malloc(i64 %size, i64 %alignment)
  ret ptr %p
}
define internal void @free(ptr %p) {
  call void @_aligned_free(ptr %p)
  ret void
}
define internal i32 @pthread_create(ptr %handle, ptr %options, ptr %work, ptr %argument) {
  ret i32 1
}
define internal i32 @pthread_join(i64 %handle, ptr %result) {
  ret i32 0
}
"""
"""Windows has no POSIX threads: starting one fails, and the calling thread does all the work."""
_INTRINSICS = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""


def _work(buffers: KernelBuffers, body: list[str], tiling: Tiling) -> str:
    """@work: the work of one thread, a group of tiles at a time."""
    load, save = [], []
    used = dict.fromkeys([*(p.number for p in buffers.inputs), *(c.source for c in buffers.copies)])
    made = dict.fromkeys([*(p.number for p in buffers.outputs), *(c.target for c in buffers.copies)])
    setup = [line for k in used for line in _input(k)]
    setup += [line for k in made for line in _array(f"out{k}", "outputs", k)]
    copy = [
        f"call void @pass(ptr %in{c.source}, i64 %in{c.source}.stride, ptr %out{c.target}, i64 {c.size}, "
        "i64 %start, i64 %stop)"
        for c in buffers.copies
    ]
    for buffer in buffers.inputs:
        k = buffer.number
        fill = (
            f"call void @gather{buffer.type.bits}(ptr %in{k}.row, i64 %in{k}.stride, ptr %in{k}.tile, "
            f"i64 {buffer.size}, i64 %last)"
        )
        load += [
            f"%in{k}.done = and i1 %in{k}.shared, %later",
            f"br i1 %in{k}.done, label %after{k}, label %fill{k}",
            f"fill{k}:",
            f"%in{k}.tile = getelementptr i8, ptr %ws, i64 {buffer.offset}",
            f"%in{k}.skip = mul i64 %instance, %in{k}.stride",
            f"%in{k}.row = getelementptr i8, ptr %in{k}, i64 %in{k}.skip",
            fill,
            f"br label %after{k}",
            f"after{k}:",
        ]
    for buffer in buffers.outputs:
        k = buffer.number
        save += [
            f"%out{k}.tile = getelementptr i8, ptr %save.ws, i64 {buffer.offset}",
            f"%out{k}.skip = mul i64 %save.instance, {buffer.size * buffer.type.size}",
            f"%out{k}.row = getelementptr i8, ptr %out{k}, i64 %out{k}.skip",
            f"call void @scatter{buffer.type.bits}(ptr %out{k}.tile, ptr %out{k}.row, "
            f"i64 {buffer.size}, i64 %save.count)",
        ]
    return _WORK.format(
        setup="\n".join(setup), load="\n".join(load), body="\n".join(body), save="\n".join(save),
        copy="\n".join(copy), enter=_ENTER if tiling.is_x86 else "", leave=_LEAVE if tiling.is_x86 else "",
        size=tiling.workspace, lanes=tiling.lanes, call=_CALL,
    )  # fmt: skip


def _input(k: int) -> list[str]:
    """Instructions that load an input's address and stride."""
    return [
        *_array(f"in{k}", "inputs", k),
        f"%in{k}.stride.slot = getelementptr i64, ptr %strides, i64 {k}",
        f"%in{k}.stride = load i64, ptr %in{k}.stride.slot",
        f"%in{k}.shared = icmp eq i64 %in{k}.stride, 0",
    ]


def _array(name: str, table: str, k: int) -> list[str]:
    """Instructions that load an array's address."""
    return [
        f"%{name}.slot = getelementptr ptr, ptr %{table}, i64 {k}",
        f"%{name} = load ptr, ptr %{name}.slot",
    ]


_ENTER = f"""
  %saved = alloca i32
  %wanted = alloca i32
  store i32 {_MXCSR}, ptr %wanted
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  call void @llvm.x86.sse.ldmxcsr(ptr %wanted)"""
_LEAVE = "call void @llvm.x86.sse.ldmxcsr(ptr %saved)"

_CALL = "{ptr, ptr, ptr, i64, i64, i64, i32, i64}"
"""Type shared by the threads: inputs, strides, outputs, batch, tiles per group, next instance, status, turn size."""
_TURNS_PER_THREAD = 4
"""Turns of a thread if none is delayed; more turns balance delays better, fewer cost less."""

_WORK = """
define internal ptr @work(ptr %call) nounwind {{
entry:
  %inputs = load ptr, ptr %call
  %call.strides = getelementptr {call}, ptr %call, i64 0, i32 1
  %strides = load ptr, ptr %call.strides
  %call.outputs = getelementptr {call}, ptr %call, i64 0, i32 2
  %outputs = load ptr, ptr %call.outputs
  %call.batch = getelementptr {call}, ptr %call, i64 0, i32 3
  %batch = load i64, ptr %call.batch
  %call.group = getelementptr {call}, ptr %call, i64 0, i32 4
  %group = load i64, ptr %call.group
  %next = getelementptr {call}, ptr %call, i64 0, i32 5
  %call.turn = getelementptr {call}, ptr %call, i64 0, i32 7
  %turn = load i64, ptr %call.turn
  %instances = mul i64 %group, {lanes}
  %bytes = mul i64 %group, {size}
  %first = call ptr @aligned_alloc(i64 64, i64 %bytes)
  %none = icmp eq ptr %first, null
  br i1 %none, label %failed, label %begin
failed:
  %status = getelementptr {call}, ptr %call, i64 0, i32 6
  store atomic i32 1, ptr %status monotonic, align 4
  ret ptr null
begin:
{enter}
{setup}
  br label %head
head:
  %again = phi i1 [false, %begin], [true, %finish]
  %start = atomicrmw add ptr %next, i64 %turn monotonic
  %more = icmp slt i64 %start, %batch
  br i1 %more, label %range, label %done
range:
  %reached = add i64 %start, %turn
  %over = icmp sgt i64 %reached, %batch
  %stop = select i1 %over, i64 %batch, i64 %reached
{copy}
  br label %group.head
group.head:
  %base = phi i64 [%start, %range], [%base.next, %finish]
  %later = phi i1 [%again, %range], [true, %finish]
  br label %load
load:
  %t = phi i64 [0, %group.head], [%t.next, %loaded]
  %offset = mul i64 %t, {lanes}
  %instance = add i64 %base, %offset
  %rest = sub i64 %stop, %instance
  %partial = icmp slt i64 %rest, {lanes}
  %count = select i1 %partial, i64 %rest, i64 {lanes}
  %last = sub i64 %count, 1
  %place = mul i64 %t, {size}
  %ws = getelementptr i8, ptr %first, i64 %place
{load}
  br label %loaded
loaded:
  %t.next = add i64 %t, 1
  %here = icmp ult i64 %t.next, %group
  %left = icmp sgt i64 %rest, {lanes}
  %unloaded = and i1 %here, %left
  br i1 %unloaded, label %load, label %run
run:
  %tiles = add i64 %t.next, 0
{body}
  br label %save
save:
  %s = phi i64 [0, %run], [%s.next, %save]
  %save.offset = mul i64 %s, {lanes}
  %save.instance = add i64 %base, %save.offset
  %save.rest = sub i64 %stop, %save.instance
  %save.partial = icmp slt i64 %save.rest, {lanes}
  %save.count = select i1 %save.partial, i64 %save.rest, i64 {lanes}
  %save.place = mul i64 %s, {size}
  %save.ws = getelementptr i8, ptr %first, i64 %save.place
{save}
  %s.next = add i64 %s, 1
  %unsaved = icmp ult i64 %s.next, %tiles
  br i1 %unsaved, label %save, label %finish
finish:
  %base.next = add i64 %base, %instances
  %rests = icmp slt i64 %base.next, %stop
  br i1 %rests, label %group.head, label %head
done:
  {leave}
  call void @free(ptr %first)
  ret ptr null
}}"""

_ENTRY = """
define i32 @kernel(ptr %inputs, ptr %strides, ptr %outputs, i64 %batch, i64 %threads) nounwind {{
entry:
  %padded = add i64 %batch, {rest}
  %tiles = udiv i64 %padded, {lanes}
  %fewer = icmp ult i64 %tiles, %threads
  %fewest = select i1 %fewer, i64 %tiles, i64 %threads
  %any = icmp ugt i64 %fewest, 0
  %parts = select i1 %any, i64 %fewest, i64 1
  %alone = icmp eq i64 %parts, 1
  %several = mul i64 %parts, {turns}
  %turns = select i1 %alone, i64 1, i64 %several
  %before = add i64 %tiles, %turns
  %above = sub i64 %before, 1
  %share = udiv i64 %above, %turns
  %small = icmp ult i64 %share, {group}
  %group = select i1 %small, i64 %share, i64 {group}
  %call = alloca {call}
  store ptr %inputs, ptr %call
  %call.strides = getelementptr {call}, ptr %call, i64 0, i32 1
  store ptr %strides, ptr %call.strides
  %call.outputs = getelementptr {call}, ptr %call, i64 0, i32 2
  store ptr %outputs, ptr %call.outputs
  %call.batch = getelementptr {call}, ptr %call, i64 0, i32 3
  store i64 %batch, ptr %call.batch
  %call.group = getelementptr {call}, ptr %call, i64 0, i32 4
  store i64 %group, ptr %call.group
  %call.next = getelementptr {call}, ptr %call, i64 0, i32 5
  store i64 0, ptr %call.next
  %call.status = getelementptr {call}, ptr %call, i64 0, i32 6
  store i32 0, ptr %call.status
  %call.turn = getelementptr {call}, ptr %call, i64 0, i32 7
  %turn = mul i64 %share, {lanes}
  store i64 %turn, ptr %call.turn
  %handles = alloca i64, i64 %parts
  br label %spawn
spawn:
  %t = phi i64 [1, %entry], [%t.next, %spawned]
  %more = icmp ult i64 %t, %parts
  br i1 %more, label %create, label %own
create:
  %handle = getelementptr i64, ptr %handles, i64 %t
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @work, ptr %call)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %spawned, label %own
spawned:
  %t.next = add i64 %t, 1
  br label %spawn
own:
  %done = call ptr @work(ptr %call)
  br label %join
join:
  %j = phi i64 [1, %own], [%j.next, %wait]
  %running = icmp ult i64 %j, %t
  br i1 %running, label %wait, label %end
wait:
  %theirs = getelementptr i64, ptr %handles, i64 %j
  %thread = load i64, ptr %theirs
  %unused = call i32 @pthread_join(i64 %thread, ptr null)
  %j.next = add i64 %j, 1
  br label %join
end:
  %status = load i32, ptr %call.status
  ret i32 %status
}}"""
"""@kernel: starts the other threads, works itself, and waits for them."""
