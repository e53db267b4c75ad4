"""The one XLA FFI handler through which compiled JAX functions call kernels.

A call's attribute lists the kernel's number, the batch size, the threads, and type, element count and
stride of every buffer. The handler checks the buffers it is given against that list, looks up the kernel
in a table filled from Python, and calls it. It is written in LLVM IR: no compiler is needed, and Python
is not involved in a call.
"""

import ctypes
import threading
from functools import cache
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np

from truesim.native.target import host

TARGET_NAME = "truesim_native"

_TYPE_CODES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9, "float32": 11, "float64": 12,
}  # fmt: skip
"""XLA_FFI_DataType of each NumPy type."""


class _Table:
    """Addresses of loaded kernels by number, in memory that the handler reads.

    Layout: the number of entries, then (number, address) pairs. Entries are only appended or emptied; a
    full table is replaced by a larger one, and the old one stays for handlers that may still read it.
    """

    def __init__(self, place: int):
        self._place = ctypes.c_void_p.from_address(place)
        self._lock = threading.Lock()
        self._tables: list[Any] = []
        self._capacity = 0
        self._rows: dict[int, int] = {}
        self._free: list[int] = []

    def add(self, number: int, address: int) -> None:
        """Make a kernel callable."""
        with self._lock:
            if number in self._rows:
                return
            if not self._free and len(self._rows) == self._capacity:
                self._grow()
            table = self._tables[-1]
            row = self._free.pop() if self._free else len(self._rows)
            table[2 + 2 * row] = address
            table[1 + 2 * row] = number
            table[0] = max(table[0], row + 1)
            self._rows[number] = row

    def remove(self, number: int) -> None:
        """Forget a kernel that nobody can call any more."""
        with self._lock:
            row = self._rows.pop(number, None)
            if row is not None:
                self._tables[-1][1 + 2 * row] = 0
                self._free.append(row)

    def _grow(self) -> None:
        self._capacity = max(64, 2 * self._capacity)
        table = (ctypes.c_int64 * (1 + 2 * self._capacity))()
        if self._tables:
            old = self._tables[-1]
            table[: len(old)] = old[:]
        self._tables.append(table)
        self._place.value = ctypes.addressof(table)


@cache
def _handler() -> tuple[Any, _Table]:
    """The handler's code and its table; registers the handler with JAX."""
    target = host()
    context = llvm.create_context()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_HANDLER, context), target.machine())
    engine.finalize_object()
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new_capsule(engine.get_function_address("handler"), None, None)
    jax.ffi.register_ffi_target(TARGET_NAME, capsule, platform="cpu")
    return engine, _Table(engine.get_global_value_address("table"))


def add(number: int, address: int) -> None:
    """Make a kernel callable from XLA under a number."""
    _handler()[1].add(number, address)


def remove(number: int) -> None:
    """Make a kernel's number unknown again."""
    _handler()[1].remove(number)


def description(
    number: int, batch: int, threads: int, inputs: list[tuple[str, int, int]], outputs: list[tuple[str, int]]
) -> np.ndarray:
    """The attribute of a call.

    Inputs are (type, element count, bytes between instances); outputs have no strides.
    """
    words = [number, batch, threads, len(inputs), len(outputs)]
    for dtype, count, stride in inputs:
        words += [_TYPE_CODES[dtype], count, stride]
    for dtype, count in outputs:
        words += [_TYPE_CODES[dtype], count]
    return np.array(words, dtype=np.int64)


_HANDLER = """
@table = global ptr null
@unknown = internal constant [48 x i8] c"truesim: a native kernel is no longer loaded   \\00"
@mismatch = internal constant [48 x i8] c"truesim: a buffer does not fit a native kernel \\00"
@memory = internal constant [48 x i8] c"truesim: no memory for a native kernel         \\00"

define internal ptr @word(ptr %base, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %k
  %v = load ptr, ptr %p
  ret ptr %v
}
define internal i64 @number(ptr %base, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %k
  %v = load i64, ptr %p
  ret i64 %v
}
define internal ptr @error(ptr %frame, ptr %message) {
  %api = call ptr @word(ptr %frame, i64 2)
  %create = call ptr @word(ptr %api, i64 6)
  %args = alloca {i64, ptr, ptr, i32}
  %p1 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 1
  %p2 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 2
  %p3 = getelementptr {i64, ptr, ptr, i32}, ptr %args, i64 0, i32 3
  store i64 28, ptr %args
  store ptr null, ptr %p1
  store ptr %message, ptr %p2
  store i32 3, ptr %p3
  %e = call ptr %create(ptr %args)
  ret ptr %e
}
; True when a buffer has the type and the number of elements that two words say.
define internal i1 @fits(ptr %buffer, ptr %expected) {
entry:
  %tp = getelementptr i64, ptr %buffer, i64 2
  %t = load i32, ptr %tp
  %type = zext i32 %t to i64
  %wanted = load i64, ptr %expected
  %count = call i64 @number(ptr %expected, i64 1)
  %rank = call i64 @number(ptr %buffer, i64 4)
  %dims = call ptr @word(ptr %buffer, i64 5)
  br label %head
head:
  %d = phi i64 [0, %entry], [%d.next, %body]
  %product = phi i64 [1, %entry], [%product.next, %body]
  %more = icmp ult i64 %d, %rank
  br i1 %more, label %body, label %done
body:
  %n = call i64 @number(ptr %dims, i64 %d)
  %product.next = mul i64 %product, %n
  %d.next = add i64 %d, 1
  br label %head
done:
  %same = icmp eq i64 %type, %wanted
  %all = icmp eq i64 %product, %count
  %ok = and i1 %same, %all
  ret i1 %ok
}
; Copies the data pointers of `n` buffers, described by `step` words each; false if one does not fit.
define internal i1 @collect(ptr %buffers, i64 %n, ptr %expected, i64 %step, ptr %pointers) {
entry:
  br label %head
head:
  %k = phi i64 [0, %entry], [%k.next, %good]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %body, label %done
body:
  %buffer = call ptr @word(ptr %buffers, i64 %k)
  %skip = mul i64 %k, %step
  %words = getelementptr i64, ptr %expected, i64 %skip
  %ok = call i1 @fits(ptr %buffer, ptr %words)
  br i1 %ok, label %good, label %bad
good:
  %data = call ptr @word(ptr %buffer, i64 3)
  %slot = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %data, ptr %slot
  %k.next = add i64 %k, 1
  br label %head
bad:
  ret i1 false
done:
  ret i1 true
}
define internal ptr @find(i64 %number) {
entry:
  %table = load ptr, ptr @table
  %none = icmp eq ptr %table, null
  br i1 %none, label %missing, label %start
start:
  %count = load i64, ptr %table
  br label %head
head:
  %k = phi i64 [0, %start], [%k.next, %next]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %look, label %missing
look:
  %row = shl i64 %k, 1
  %here = add i64 %row, 1
  %n = call i64 @number(ptr %table, i64 %here)
  %found = icmp eq i64 %n, %number
  br i1 %found, label %hit, label %next
next:
  %k.next = add i64 %k, 1
  br label %head
hit:
  %at = add i64 %row, 2
  %address = call ptr @word(ptr %table, i64 %at)
  ret ptr %address
missing:
  ret ptr null
}
define ptr @handler(ptr %frame) {
entry:
  %extension = call ptr @word(ptr %frame, i64 1)
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %run, label %metadata
metadata:
  %api = call ptr @word(ptr %frame, i64 2)
  %version = call i64 @number(ptr %api, i64 4)
  %info = call ptr @word(ptr %extension, i64 3)
  %place = getelementptr i64, ptr %info, i64 3
  store i64 %version, ptr %place
  ret ptr null
run:
  %attributes = call ptr @word(ptr %frame, i64 20)
  %attribute = call ptr @word(ptr %attributes, i64 0)
  %words = call ptr @word(ptr %attribute, i64 2)
  %number = call i64 @number(ptr %words, i64 0)
  %batch = call i64 @number(ptr %words, i64 1)
  %threads = call i64 @number(ptr %words, i64 2)
  %n = call i64 @number(ptr %words, i64 3)
  %m = call i64 @number(ptr %words, i64 4)
  %given = call i64 @number(ptr %frame, i64 7)
  %wanted = call i64 @number(ptr %frame, i64 12)
  %same.n = icmp eq i64 %given, %n
  %same.m = icmp eq i64 %wanted, %m
  %same = and i1 %same.n, %same.m
  br i1 %same, label %gather, label %misfit
gather:
  %inputs = alloca ptr, i64 %n
  %outputs = alloca ptr, i64 %m
  %strides = alloca i64, i64 %n
  %args = call ptr @word(ptr %frame, i64 9)
  %rets = call ptr @word(ptr %frame, i64 14)
  %first = getelementptr i64, ptr %words, i64 5
  %used = mul i64 %n, 3
  %second = getelementptr i64, ptr %first, i64 %used
  %in.ok = call i1 @collect(ptr %args, i64 %n, ptr %first, i64 3, ptr %inputs)
  %out.ok = call i1 @collect(ptr %rets, i64 %m, ptr %second, i64 2, ptr %outputs)
  %ok = and i1 %in.ok, %out.ok
  br i1 %ok, label %stride, label %misfit
stride:
  %k = phi i64 [0, %gather], [%k.next, %copy]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %copy, label %search
copy:
  %triple = mul i64 %k, 3
  %where = add i64 %triple, 2
  %bytes = call i64 @number(ptr %first, i64 %where)
  %slot = getelementptr i64, ptr %strides, i64 %k
  store i64 %bytes, ptr %slot
  %k.next = add i64 %k, 1
  br label %stride
search:
  %kernel = call ptr @find(i64 %number)
  %lost = icmp eq ptr %kernel, null
  br i1 %lost, label %gone, label %work
work:
  %empty = icmp eq i64 %batch, 0
  br i1 %empty, label %done, label %call
call:
  %status = call i32 %kernel(ptr %inputs, ptr %strides, ptr %outputs, i64 %batch, i64 %threads)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %full
done:
  ret ptr null
misfit:
  %e1 = call ptr @error(ptr %frame, ptr @mismatch)
  ret ptr %e1
gone:
  %e2 = call ptr @error(ptr %frame, ptr @unknown)
  ret ptr %e2
full:
  %e3 = call ptr @error(ptr %frame, ptr @memory)
  ret ptr %e3
}
"""
