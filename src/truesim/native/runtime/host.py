"""Functions on NumPy arrays that JAX calls as it calls kernels: routines with run-time sizes, and what drives them.

XLA calls machine code. For such a function it is a small entry that hands the buffers to Python, so that a call needs
the interpreter's lock for some ten microseconds; the routines themselves run without it.
"""

import ctypes
import functools
import hashlib
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from truesim.native.codegen.target import host
from truesim.native.runtime.cache import ArrayType
from truesim.native.runtime.program import Program, program_entry, shared

HostFunction = Callable[[list[np.ndarray], int, int], Sequence[np.ndarray]]
"""From the arguments (each with or without a batch axis), the batch size and the threads to results with that axis."""
_FAILED = 2
_KEPT_VIEWS = 1024
"""Arrays at addresses that are kept for later calls; to make one takes longer than some calls of routines."""


class HostProgram(Program):
    """A function on NumPy arrays with the interface of a kernel's program, and derivatives of its own.

    Args:
        identity: Names the function and everything it was made from; equal in every process.
        function: The function.
        inputs: Shape and type of each argument, without batch axes.
        outputs: Shape and type of each result.
        tangent: From which inputs move to the program of tangents. Its inputs are those of this program, its results,
            and the moving tangents; its outputs the tangents of all floating-point results.
        pullback: From which inputs move and which floating-point results have cotangents to the program of
            cotangents. Its inputs are those of this program, its results, and the given cotangents; its outputs the
            cotangents of the moving inputs.
    """

    keeps_results = True

    def __init__(
        self,
        identity: str,
        function: HostFunction,
        inputs: list[ArrayType],
        outputs: list[ArrayType],
        tangent: Callable[[tuple[bool, ...]], Program] | None = None,
        pullback: Callable[[tuple[bool, ...], tuple[bool, ...]], Program] | None = None,
    ):
        key = hashlib.sha256(b"host\0" + identity.encode()).digest()
        super().__init__(key, host(), inputs, outputs, self._as_callback)
        self.name = identity.split("\0", 1)[0]
        self._function, self._tangent, self._pullback = function, tangent, pullback
        entry = program_entry(self._enter)
        self.adopt(entry, ctypes.cast(entry, ctypes.c_void_p).value or 0)

    def _enter(self, inputs: int, strides: int, outputs: int, batch: int, threads: int) -> int:
        """Entry with the arguments of a kernel."""
        try:
            arrays = _views(inputs, self.inputs, batch, strides)
            for view, result in zip(
                _views(outputs, self.outputs, batch), self._function(arrays, batch, threads), strict=True
            ):
                view[...] = result
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return _FAILED
        return 0

    def _execute(self, inputs: Any, strides: Any, outputs: Any, batch: int, threads: int) -> None:
        """Run the function directly, so that its errors are raised here."""
        at, steps, to = (ctypes.addressof(x) for x in (inputs, strides, outputs))
        results = self._function(_views(at, self.inputs, batch, steps), batch, threads)
        for view, result in zip(_views(to, self.outputs, batch), results, strict=True):
            view[...] = result

    def tangent(self, moving: tuple[bool, ...]) -> Program:
        """Program of the tangents of all floating-point results."""
        if self._tangent is None:
            raise NotImplementedError(f"{self.name} has no derivatives in forward mode")
        return self._tangent(moving)

    def pullback(self, moving: tuple[bool, ...], given: tuple[bool, ...]) -> Program:
        """Program of the cotangents of the moving inputs."""
        if self._pullback is None:
            raise NotImplementedError(f"{self.name} has no derivatives in reverse mode")
        return self._pullback(moving, given)

    def _as_callback(self) -> jex.ClosedJaxpr:
        """The function as a callback of JAX, for an XLA that cannot call kernels."""
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.outputs]

        def call(*arrays: Any) -> Any:
            return jax.pure_callback(self._one, shapes, *arrays, vmap_method="sequential")

        return jax.make_jaxpr(call)(*(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.inputs))

    def _one(self, *arrays: Any) -> list[np.ndarray]:
        return [np.asarray(x)[0] for x in self._function([np.asarray(x) for x in arrays], 1, 1)]


def share(new: HostProgram) -> HostProgram:
    """The program of the same identity that is in use, or else the new one: XLA knows programs by their identity."""
    found = shared(new)
    assert isinstance(found, HostProgram), "identities of host programs are their own"
    return found


def _views(addresses: int, types: list[ArrayType], batch: int, strides: int | None = None) -> list[np.ndarray]:
    """Arrays at addresses, with a batch axis unless their stride is zero."""
    pointers = (ctypes.c_void_p * len(types)).from_address(addresses) if types else ()
    if not strides or not types:
        return [_view(pointer, (batch, *shape), dtype) for (shape, dtype), pointer in zip(types, pointers, strict=True)]
    steps = (ctypes.c_int64 * len(types)).from_address(strides)
    return [
        _view(pointer, (batch, *shape) if step else shape, dtype)
        for (shape, dtype), pointer, step in zip(types, pointers, steps, strict=True)
    ]


@functools.lru_cache(_KEPT_VIEWS)
def _view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Array at an address, valid during a call. XLA mostly gives the same buffers to the next one."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
