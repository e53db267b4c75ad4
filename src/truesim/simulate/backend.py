"""Where rollouts run: as native kernels on a CPU, through XLA elsewhere or on request."""

import collections
import contextlib
import contextvars
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import unknown_name

Backend = Literal["native", "xla"]
"""`native`: one kernel of vector machine code for the CPU. `xla`: whatever device JAX uses."""
BACKENDS = ("native", "xla")
KEPT = 64
"""Kernels that are kept for calls with the same structure."""

_plain = contextvars.ContextVar("plain", default=False)
_kernels: "collections.OrderedDict[Hashable, native.Kernel]" = collections.OrderedDict()


@contextlib.contextmanager
def plain_jax() -> Iterator[None]:
    """Scope in which rollouts are plain JAX code and make no kernels of their own."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def chosen(backend: str | None) -> str:
    """The backend to use: the one asked for, or native on a CPU."""
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
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    is_input = [isinstance(x, jax.core.Tracer) if traced else eqx.is_array_like(x) for x in leaves]
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
    if key not in _kernels:
        examples = [jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in inputs]
        _kernels[key] = native.compile(of_inputs, *examples, threads=threads)
        while len(_kernels) > KEPT:
            _kernels.popitem(last=False)
    _kernels.move_to_end(key)
    results = _kernels[key](*inputs)
    return results if traced else jax.tree.map(jnp.asarray, results)


def _concrete(x: Any) -> np.ndarray:
    """An array in the precision that JAX is set to."""
    array = np.asarray(x)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _signature(x: Any) -> Hashable:
    return jnp.shape(x), jnp.result_type(x)


def _content(x: Any) -> Hashable:
    """What tells two fixed leaves apart: the value of an array, and anything else itself."""
    if not isinstance(x, np.ndarray | jax.Array):
        return x
    array = np.asarray(x)
    return array.shape, array.dtype.str, array.tobytes()
