"""Registration of kernels with XLA's foreign function interface (FFI), so that compiled JAX functions call them.

There is one handler for all kernels. The attribute of a call lists the kernel's number, the batch size, the threads,
and type, element count and stride of every buffer. The handler checks the buffers against that list, looks up the
kernel in a table that is filled from Python, and calls it. Python is not involved in a call.
"""

import ctypes
import threading
from collections import deque
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np

from truesim.native.codegen.target import host
from truesim.native.runtime.handler import handler_ir
from truesim.native.runtime.versions import xla_ffi_refusal, xla_ffi_version

TARGET_NAME = "truesim_native"

_TYPE_CODES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9, "float32": 11, "float64": 12,
}  # fmt: skip
"""XLA_FFI_DataType of each NumPy type."""


class KernelTable:
    """Addresses of loaded kernels by number, in memory that the handler reads.

    Memory: the number of rows, then (number, address) pairs. A full table is replaced by a larger one, and the old one
    stays for handlers that may still read it.

    Kernels are removed by finalizers, which the garbage collector may run at any time, also while this thread holds
    the lock. `remove` therefore never waits: it puts the kernel in a queue, which is emptied by the holder of the lock.
    """

    def __init__(self, place: int):
        self._place = ctypes.c_void_p.from_address(place)
        self._lock = threading.Lock()
        self._tables: list[Any] = []
        self._capacity = 0
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._removed: deque[tuple[int, int]] = deque()

    def add(self, number: int, address: int) -> None:
        """Make a kernel callable; one with the same number is replaced."""
        with self._lock:
            self._empty_queue()  # the address may be that of a removed kernel
            row = self._rows.get(number)
            if row is None:
                if not self._free and len(self._rows) == self._capacity:
                    self._grow()
                row = self._free.pop() if self._free else len(self._rows)
                self._rows[number] = row
            table = self._tables[-1]
            table[2 + 2 * row] = address
            table[1 + 2 * row] = number
            table[0] = max(table[0], row + 1)
        self._try_to_empty_queue()

    def remove(self, number: int, address: int) -> None:
        """Remove a kernel that is no longer in use, unless another has replaced it."""
        self._removed.append((number, address))
        self._try_to_empty_queue()

    def _try_to_empty_queue(self) -> None:
        """Remove the queued kernels, unless another holder of the lock is going to."""
        while self._removed and self._lock.acquire(blocking=False):
            try:
                self._empty_queue()
            finally:
                self._lock.release()

    def _empty_queue(self) -> None:
        """Remove the queued kernels; the caller holds the lock."""
        while self._removed:
            number, address = self._removed.popleft()
            row = self._rows.get(number)
            if row is not None and self._tables[-1][2 + 2 * row] == address:
                self._tables[-1][1 + 2 * row] = 0
                del self._rows[number]
                self._free.append(row)

    def _grow(self) -> None:
        self._capacity = max(64, 2 * self._capacity)
        table = (ctypes.c_int64 * (1 + 2 * self._capacity))()
        if self._tables:
            old = self._tables[-1]
            table[: len(old)] = old[:]
        self._tables.append(table)
        self._place.value = ctypes.addressof(table)


class Handler:
    """Machine code of the handler, and its table of kernels."""

    def __init__(self, version: tuple[int, int]):
        context = llvm.create_context()
        module = llvm.parse_assembly(handler_ir(version), context)
        self._engine = llvm.create_mcjit_compiler(module, host().machine())
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address("handler")
        self.table = KernelTable(self._engine.get_global_value_address("table"))


_registered: list[Handler] = []
_registration = threading.Lock()


def registered_handler() -> Handler:
    """The handler of this process, registered with JAX at the first call.

    Raises:
        RuntimeError: XLA's FFI has a version with which the handler has not been tested.
    """
    if not _registered:
        with _registration:
            if not _registered:
                _registered.append(_register())
    return _registered[0]


def _register() -> Handler:
    version, refusal = xla_ffi_version(), xla_ffi_refusal()
    if refusal is not None or version is None:
        raise RuntimeError(refusal)
    handler = Handler(version)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    jax.ffi.register_ffi_target(TARGET_NAME, new_capsule(handler.address, None, None), platform="cpu")
    return handler


def add(number: int, address: int) -> None:
    """Make a kernel callable from XLA under a number."""
    registered_handler().table.add(number, address)


def remove(number: int, address: int) -> None:
    """Remove a kernel that no compiled function calls any more."""
    registered_handler().table.remove(number, address)


def describe_call(
    number: int, batch: int, threads: int, inputs: list[tuple[str, int, int]], outputs: list[tuple[str, int]]
) -> np.ndarray:
    """Attribute of a call.

    Inputs are (type, element count, bytes between instances); outputs have no strides.
    """
    words = [number, batch, threads, len(inputs), len(outputs)]
    for dtype, count, stride in inputs:
        words += [_TYPE_CODES[dtype], count, stride]
    for dtype, count in outputs:
        words += [_TYPE_CODES[dtype], count]
    return np.array(words, dtype=np.int64)
