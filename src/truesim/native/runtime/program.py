"""Machine code of one jaxpr, loaded in this process and callable on arrays."""

import ctypes
import functools
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend import core as jex

from truesim.core.timing import part
from truesim.native.codegen import compiler as backend
from truesim.native.codegen.target import CpuTarget, host
from truesim.native.lowering.fingerprint import fingerprint
from truesim.native.runtime import cache, ffi
from truesim.native.runtime.addresses import data_address
from truesim.native.runtime.cache import ArrayType

Shape = tuple[int, ...]
Trace = Callable[[], jex.ClosedJaxpr]
"""Returns a jaxpr, traced when it is called or before."""

program_entry = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_programs: "weakref.WeakValueDictionary[bytes, Program]" = weakref.WeakValueDictionary()
_programs_lock = threading.RLock()
"""Guards `_programs`; each program has a lock of its own for compilation."""


class Program:
    """A jaxpr and its machine code: flat arrays in, flat arrays out, with or without batch axes.

    Made by `program`, which returns the same object for equal jaxprs, or by `stored_program` from the cache. The code
    is compiled, or read from the cache, when it is first needed.
    """

    keeps_results = False
    """True if derivatives also take the results of the program, so that they need not be computed again."""

    def __init__(self, key: bytes, target: CpuTarget, inputs: list[ArrayType], outputs: list[ArrayType], trace: Trace):
        """Make a program of which nothing is traced or compiled yet.

        Args:
            key: Identifies the program and its machine code.
            target: CPU that the code is for.
            inputs: Shape and type of each argument.
            outputs: Shape and type of each result.
            trace: Returns the jaxpr; called for code that is not in the cache, for derivatives, and where XLA cannot
                call machine code.
        """
        self.key = key
        self.target = target
        self.inputs, self.outputs = inputs, outputs
        self.trace = trace
        self._sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in self.inputs]
        self.derived: dict[Any, Program] = {}
        """Programs of derivatives, by what they differentiate."""
        self.name = ""
        """Name in messages."""
        self.lock = threading.RLock()
        self._engine: Any = None
        self._address = 0
        self._call: Any = None
        self._exported = False

    @functools.cached_property
    def closed(self) -> jex.ClosedJaxpr:
        """The jaxpr, kept once something is derived from it."""
        return self.trace()

    @property
    def address(self) -> int:
        """Address of the machine code."""
        self.load()
        return self._address

    def load(self) -> None:
        """Compile or read the machine code, unless that is done; errors of the compiler are raised here."""
        if self._address:
            return
        with self.lock:
            if not self._address:
                self._load()

    def _load(self) -> None:
        code = cache.read(self.key)
        if code is None:
            closed = self.trace()
            with part("lowering", self.name):
                text = backend.listing(closed, self.target).text
            with part("compiling", self.name):
                code = backend.assemble(text, self.target)
            cache.write(self.key, code)
        self.adopt(*backend.load(code, self.target))

    def adopt(self, engine: Any, address: int) -> None:
        """Use machine code at this address, which the engine keeps alive."""
        self._engine, self._call = engine, program_entry(address)
        self._address = address

    @property
    def number(self) -> int:
        """Number by which XLA calls this program; its first use registers the program."""
        number = int.from_bytes(self.key[:7], "little") + 1
        address = self.address
        with self.lock:
            if not self._exported:
                ffi.add(number, address)
                weakref.finalize(self, ffi.remove, number, address).atexit = False
                self._exported = True
        return number

    def run(self, leaves: Sequence[Any], threads: int, name: Callable[[int], str]) -> list[np.ndarray]:
        """Results on NumPy arrays; `name` describes an argument in error messages."""
        arrays = []
        for k, leaf in enumerate(leaves):
            array = leaf if type(leaf) is np.ndarray else _as_array(leaf, self.inputs[k][1])
            arrays.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        return self.prepare(arrays, threads, name)()

    def prepare(
        self,
        arrays: Sequence[np.ndarray],
        threads: int,
        name: Callable[[int], str],
        results: Sequence[np.ndarray] | None = None,
    ) -> "PreparedCall":
        """Call on contiguous arrays, which may be repeated while their numbers change.

        Args:
            arrays: Arguments.
            threads: Number of threads over which a batch is split.
            name: Describes an argument in error messages.
            results: Contiguous arrays for the results; new ones by default.
        """
        count = len(self.inputs)
        pointers, strides = (ctypes.c_void_p * count)(), (ctypes.c_int64 * count)()
        batch: Shape = ()
        for k, array in enumerate(arrays):
            shape, dtype = self.inputs[k]
            if array.dtype != dtype:
                raise TypeError(f"{name(k)} must be {dtype}, not {array.dtype}")
            if array.shape != shape:
                if not batch or array.shape != batch + shape:
                    batch = self.batch(k, array.shape, batch, name)
                strides[k] = self._sizes[k]
            pointers[k] = data_address(array)
        if results is None:
            results = [np.empty(batch + shape, dtype) for shape, dtype in self.outputs]
        else:
            self._check_results(results, batch)
        outputs = (ctypes.c_void_p * len(results))(*map(data_address, results))
        return PreparedCall(self._execute, (pointers, strides, outputs, math.prod(batch), threads), arrays, results)

    def _check_results(self, results: Sequence[np.ndarray], batch: Shape) -> None:
        """Raise an error for arrays that cannot take the results."""
        for k, (array, (shape, dtype)) in enumerate(zip(results, self.outputs, strict=True)):
            wanted = batch + shape
            if array.shape != wanted or array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError(
                    f"result {k} of a prepared call must be a contiguous array of {dtype} and of shape {wanted}, "
                    f"not {array.dtype} {array.shape}"
                )

    def _execute(self, inputs: Any, strides: Any, outputs: Any, batch: int, threads: int) -> None:
        self.load()
        if self._call(inputs, strides, outputs, batch, threads):
            raise MemoryError("not enough memory for the workspace of a native kernel")

    def batch(self, k: int, given: Shape, others: Shape, name: Callable[[int], str]) -> Shape:
        """Batch axes of an argument of shape `given`; they must equal those of the other arguments."""
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


class PreparedCall:
    """A program and the arrays on which it runs, whose addresses are kept: a call takes a microsecond."""

    __slots__ = ("_arguments", "_execute", "_kept", "results")

    def __init__(self, execute: Any, arguments: tuple[Any, ...], arrays: Sequence[np.ndarray], results: Any):
        """Take over what `Program.prepare` has checked; the arrays are kept alive."""
        self._execute, self._arguments, self._kept, self.results = execute, arguments, arrays, results

    def __call__(self) -> Any:
        """Compute the results from what is in the arguments now; returns the same arrays at every call."""
        if self._arguments[3]:
            self._execute(*self._arguments)
        return self.results


def program(closed: jex.ClosedJaxpr, target: CpuTarget | None = None) -> Program:
    """Program of a jaxpr, shared by all equal jaxprs."""
    machine = target or host()
    key = cache.key(fingerprint(closed), machine)
    return shared(Program(key, machine, _types(closed.in_avals), _types(closed.out_avals), lambda: closed))


def stored_program(entry: cache.CacheEntry, target: CpuTarget, trace: Trace) -> Program:
    """Program of an entry of the cache, shared with those of equal jaxprs.

    Args:
        entry: Names the program.
        target: CPU that the code is for.
        trace: Returns the jaxpr, if it is needed.
    """
    return shared(Program(entry.program, target, entry.inputs, entry.outputs, trace))


def _types(avals: Sequence[Any]) -> list[ArrayType]:
    return [(tuple(a.shape), np.dtype(a.dtype)) for a in avals]


def shared(new: Program) -> Program:
    """The program that is in use under the same key, or else the new one."""
    with _programs_lock:
        return _programs.setdefault(new.key, new)


def _as_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """Convert a value to a NumPy array; a Python number takes the expected type if it is of the same kind."""
    if isinstance(value, bool | int | float) and np.can_cast(np.min_scalar_type(value), dtype, "same_kind"):
        return np.asarray(value, dtype)
    return np.asarray(value)
