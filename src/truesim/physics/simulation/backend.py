"""Backends of rollouts: native kernels on a CPU, XLA elsewhere or on request."""

import collections
import contextlib
import contextvars
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import unknown_name
from truesim.core.tracing import is_traced

Backend = Literal["native", "xla"]
"""`native`: one kernel of vector machine code for the CPU. `xla`: whatever device JAX uses."""
BACKENDS = ("native", "xla")
CACHED_KERNELS = 64
"""Number of compiled functions kept for calls with the same structure; larger uses more memory."""


class KernelCache:
    """Least-recently-used cache of compiled functions, safe to use from several threads.

    A function is compiled once, even if several threads ask for it at the same time; other functions are not held up.
    """

    def __init__(self, capacity: int = CACHED_KERNELS):
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kernels: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
        self._pending: dict[Hashable, threading.Lock] = {}

    def __len__(self) -> int:
        return len(self._kernels)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The function kept under `key`, made by `make` if there is none."""
        found, kernel = self._find(key)
        if found:
            return kernel
        with self._lock:
            compiling = self._pending.setdefault(key, threading.Lock())
        try:
            with compiling:
                found, kernel = self._find(key)
                if not found:
                    kernel = make()
                    self._keep(key, kernel)
                return kernel
        finally:
            with self._lock:
                self._pending.pop(key, None)

    def _find(self, key: Hashable) -> tuple[bool, Any]:
        with self._lock:
            if key not in self._kernels:
                return False, None
            self._kernels.move_to_end(key)
            return True, self._kernels[key]

    def _keep(self, key: Hashable, kernel: Any) -> None:
        with self._lock:
            self._kernels[key] = kernel
            while len(self._kernels) > self._capacity:
                self._kernels.popitem(last=False)


_plain = contextvars.ContextVar("plain", default=False)
_kernels = KernelCache()
_jitted = KernelCache()


@contextlib.contextmanager
def plain_jax() -> Iterator[None]:
    """Scope in which rollouts are plain JAX code and make no kernels of their own."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def is_plain() -> bool:
    """True in the scope of `plain_jax`."""
    return _plain.get()


def chosen(backend: str | None) -> str:
    """Backend to use: the one asked for, or native on a CPU."""
    if backend is None:
        return "native" if jax.default_backend() == "cpu" else "xla"
    if backend not in BACKENDS:
        raise unknown_name("backend", backend, BACKENDS)
    return backend


def call_native(f: Callable[..., Any], args: Sequence[Any], *, identity: Hashable, threads: int = 1) -> Any:
    """`f(*args)` by a native kernel, kept for later calls with the same `identity` and structure.

    In a function that is itself being compiled as a whole, it is simply `f(*args)`, and becomes part of that.
    Within any other trace, the traced arrays are the kernel's inputs and concrete arrays are constants, as JAX has it:
    constants such as the axes of joints make kernels several times smaller. Outside of traces all arrays are inputs.
    """
    if native.compiling() or _plain.get():
        return f(*args)
    leaves, tree = jax.tree.flatten(tuple(args))
    traced = any(map(is_traced, leaves))
    is_input = [is_traced(x) if traced else eqx.is_array_like(x) for x in leaves]
    inputs = [x if traced else _concrete(x) for x, take in zip(leaves, is_input, strict=True) if take]
    fixed = [None if take else x for x, take in zip(leaves, is_input, strict=True)]

    def of_inputs(*inputs: Any) -> Any:
        rest = iter(inputs)
        rebuilt = [next(rest) if take else x for x, take in zip(fixed, is_input, strict=True)]
        return f(*jax.tree.unflatten(tree, rebuilt))

    key = (
        identity,
        tree,
        tuple(map(_signature, inputs)),
        tuple(map(_content, fixed)),
        jax.config.read("jax_enable_x64"),
        threads,
    )

    def make() -> native.Kernel:
        examples = [jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in inputs]
        return native.compile(of_inputs, *examples, threads=threads)

    results = _kernels.get(key, make)(*inputs)
    return results if traced else jax.tree.map(jax.device_put, results)  # `jnp.asarray` would compile a copy by shape


def call_xla(f: Callable[..., Any], args: Sequence[Any], *, identity: Hashable) -> Any:
    """`f(*args)` through XLA, compiled once for all calls with the same `identity`, structure and shapes.

    Within a trace it is simply `f(*args)`, and becomes part of the function that is traced.
    """
    leaves, tree = jax.tree.flatten(tuple(args))
    if native.compiling() or _plain.get() or any(map(is_traced, leaves)):
        return f(*args)
    signature = tuple(_signature(x) if eqx.is_array_like(x) else x for x in leaves)
    key = identity, tree, signature, jax.config.read("jax_enable_x64")
    return _jitted.get(key, lambda: jax.jit(lambda *args: f(*args)))(*args)  # a function of its own, dropped as a whole


def _concrete(x: Any) -> np.ndarray:
    """An array in the precision that JAX is set to."""
    array = np.asarray(x)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _signature(x: Any) -> Hashable:
    return jnp.shape(x), jnp.result_type(x)


def _content(x: Any) -> Hashable:
    """Key of a fixed leaf: the value of an array, and anything else itself."""
    if not isinstance(x, np.ndarray | jax.Array):
        return x
    array = np.asarray(x)
    return array.shape, array.dtype.str, array.tobytes()
