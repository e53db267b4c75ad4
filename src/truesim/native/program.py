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

    Made by `program`, which gives equal jaxprs the same object. The code is compiled, or read from the cache, when it
    is first needed.
    """

    def __init__(self, closed: jex.ClosedJaxpr, key: bytes, target: Target):
        self.closed = closed
        self.key = key
        self.target = target
        self.inputs = [(tuple(a.shape), np.dtype(a.dtype)) for a in closed.in_avals]
        self.outputs = [(tuple(a.shape), np.dtype(a.dtype)) for a in closed.out_avals]
        self.derived: dict[Any, Program] = {}
        """Programs of derivatives, by what they differentiate."""
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

    def batch_of(self, shapes: Sequence[Shape], name: Callable[[int], str]) -> Shape:
        """The batch axes shared by arguments of these shapes."""
        batch: Shape = ()
        for k, (given, (shape, _)) in enumerate(zip(shapes, self.inputs, strict=True)):
            if given == shape:
                continue
            extra = len(given) - len(shape)
            if extra <= 0 or given[extra:] != shape:
                raise ValueError(f"{name(k)} must have shape {shape} after any batch axes, not {given}")
            if batch and given[:extra] != batch:
                raise ValueError(f"{name(k)} has batch axes {given[:extra]}, but others have {batch}")
            batch = given[:extra]
        return batch

    def stride(self, k: int, given: Shape) -> int:
        """Bytes between instances of an argument of this shape: zero if it is shared."""
        shape, dtype = self.inputs[k]
        return 0 if given == shape else math.prod(shape) * dtype.itemsize

    def run(self, leaves: Sequence[Any], threads: int, name: Callable[[int], str]) -> list[np.ndarray]:
        """Results on NumPy arrays; `name` describes an argument in error messages."""
        arrays = []
        for k, (leaf, (_, dtype)) in enumerate(zip(leaves, self.inputs, strict=True)):
            array = leaf if type(leaf) is np.ndarray else _as_array(leaf, dtype)
            if array.dtype != dtype:
                raise TypeError(f"{name(k)} must be {dtype}, not {array.dtype}")
            arrays.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        shapes = [a.shape for a in arrays]
        batch = self.batch_of(shapes, name)
        results = [np.empty(batch + shape, dtype) for shape, dtype in self.outputs]
        count = math.prod(batch)
        if count:
            strides = (ctypes.c_int64 * len(arrays))(*map(self.stride, range(len(arrays)), shapes))
            self._execute(_pointers(arrays), strides, _pointers(results), count, threads)
        return results

    def _execute(self, inputs: Any, strides: Any, outputs: Any, batch: int, threads: int) -> None:
        assert self.address
        if self._call(inputs, strides, outputs, batch, threads):
            raise MemoryError("not enough memory for the workspace of a native kernel")


def program(closed: jex.ClosedJaxpr, target: Target | None = None) -> Program:
    """The program of a jaxpr, shared with everyone who uses an equal one."""
    machine = target or host()
    key = cache.key(fingerprint(closed), machine)
    with _lock:
        found = _programs.get(key)
        if found is None:
            found = _programs[key] = Program(closed, key, machine)
        return found


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[a.__array_interface__["data"][0] for a in arrays])


def _as_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """The value as a NumPy array; a Python number takes the expected type if that is of the same kind."""
    if isinstance(value, bool | int | float) and np.can_cast(np.min_scalar_type(value), dtype, "same_kind"):
        return np.asarray(value, dtype)
    return np.asarray(value)
