"""Machine code of one jaxpr, loaded in this process and callable on arrays."""

import ctypes
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend import core as jex

from truesim.native import backend, cache, ffi
from truesim.native.fingerprint import fingerprint
from truesim.native.target import Target, host

Shape = tuple[int, ...]

_Entry = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_programs: "weakref.WeakValueDictionary[bytes, Program]" = weakref.WeakValueDictionary()
_lock = threading.RLock()


class Program:
    """A jaxpr and its machine code: flat arrays in, flat arrays out, with or without batch axes.

    Made by `program`, which gives equal jaxprs the same object. The code is compiled, or read from the
    cache, when it is first needed.
    """

    def __init__(self, closed: jex.ClosedJaxpr, key: bytes, target: Target):
        self.closed = closed
        self.key = key
        self.target = target
        self.inputs = [(tuple(a.shape), np.dtype(a.dtype)) for a in closed.in_avals]
        self.outputs = [(tuple(a.shape), np.dtype(a.dtype)) for a in closed.out_avals]
        self._sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in self.inputs]
        self.derived: dict[Any, Program] = {}
        """Programs of derivatives, by what they differentiate."""
        self.tangent_of: tuple[Program, tuple[bool, ...]] | None = None
        """The program whose change this one computes, and which of its inputs change."""
        self._engine: Any = None
        self._address = 0
        self._call: Any = None
        self._exported = False

    @property
    def address(self) -> int:
        """Address of the machine code."""
        if not self._address:
            with _lock:
                if not self._address:
                    self._load()
        return self._address

    def _load(self) -> None:
        code = cache.read(self.key)
        if code is None:
            code = backend.assemble(backend.listing(self.closed, self.target).text, self.target)
            cache.write(self.key, code)
        self._engine, address = backend.load(code, self.target)
        self._call = _Entry(address)
        self._address = address

    @property
    def number(self) -> int:
        """The number under which XLA calls this program; it is callable from now on."""
        number = int.from_bytes(self.key[:7], "little") + 1
        address = self.address
        with _lock:
            if not self._exported:
                ffi.add(number, address)
                weakref.finalize(self, ffi.remove, number).atexit = False
                self._exported = True
        return number

    def run(self, leaves: Sequence[Any], threads: int, name: Callable[[int], str]) -> list[np.ndarray]:
        """Results on NumPy arrays; `name` describes an argument in error messages."""
        count = len(self.inputs)
        pointers, strides = (ctypes.c_void_p * count)(), (ctypes.c_int64 * count)()
        batch: Shape = ()
        kept = []
        for k, leaf in enumerate(leaves):
            shape, dtype = self.inputs[k]
            array = leaf if type(leaf) is np.ndarray else _as_array(leaf, dtype)
            if array.dtype != dtype:
                raise TypeError(f"{name(k)} must be {dtype}, not {array.dtype}")
            if not array.flags.c_contiguous:
                array = np.ascontiguousarray(array)
            if array.shape != shape:
                if not batch or array.shape != batch + shape:
                    batch = self.batch(k, array.shape, batch, name)
                strides[k] = self._sizes[k]
            pointers[k] = data_address(array)
            kept.append(array)
        results = [np.empty(batch + shape, dtype) for shape, dtype in self.outputs]
        total = math.prod(batch)
        if total:
            outputs = (ctypes.c_void_p * len(results))(*map(data_address, results))
            self._execute(pointers, strides, outputs, total, threads)
        return results

    def _execute(self, inputs: Any, strides: Any, outputs: Any, batch: int, threads: int) -> None:
        assert self.address
        if self._call(inputs, strides, outputs, batch, threads):
            raise MemoryError("not enough memory for the workspace of a native kernel")

    def batch(self, k: int, given: Shape, others: Shape, name: Callable[[int], str]) -> Shape:
        """The batch axes of an argument of shape `given`; they must be those of the others."""
        shape = self.inputs[k][0]
        extra = len(given) - len(shape)
        if extra <= 0 or given[extra:] != shape:
            raise ValueError(f"{name(k)} must have shape {shape} after any batch axes, not {given}")
        if others and given[:extra] != others:
            raise ValueError(f"{name(k)} has batch axes {given[:extra]}, but others have {others}")
        return given[:extra]

    def stride(self, k: int, given: Shape) -> int:
        """Bytes between instances of an argument of this shape: zero if it is shared."""
        return 0 if given == self.inputs[k][0] else self._sizes[k]


def program(closed: jex.ClosedJaxpr, target: Target | None = None) -> Program:
    """The program of a jaxpr, shared with everyone who uses an equal one."""
    machine = target or host()
    key = cache.key(fingerprint(closed), machine)
    with _lock:
        found = _programs.get(key)
        if found is None:
            found = _programs[key] = Program(closed, key, machine)
        return found


def _data_address() -> Callable[[np.ndarray], int]:
    """The fastest way to get an array's address that works here.

    The address is the first field of NumPy's array object; reading it there takes a fifth of the time of
    building `__array_interface__`.
    """
    place = ctypes.c_void_p.from_address
    header = object.__basicsize__

    def from_object(array: np.ndarray) -> int:
        return place(id(array) + header).value or 0

    def from_interface(array: np.ndarray) -> int:
        return array.__array_interface__["data"][0]

    probe = np.zeros(3)
    return from_object if from_object(probe) == from_interface(probe) else from_interface


data_address = _data_address()


def _as_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """The value as a NumPy array; a Python number takes the expected type if that is of the same kind."""
    if isinstance(value, bool | int | float) and np.can_cast(np.min_scalar_type(value), dtype, "same_kind"):
        return np.asarray(value, dtype)
    return np.asarray(value)
