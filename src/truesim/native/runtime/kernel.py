"""Compiled functions of pytrees, and `compile`, which makes them."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from truesim.core.timing import part
from truesim.native.codegen.target import CpuTarget, host
from truesim.native.runtime import cache
from truesim.native.runtime.primitive import bind
from truesim.native.runtime.program import PreparedCall, Program, Trace, program, stored_program
from truesim.native.runtime.structure import KernelStructure
from truesim.native.runtime.threads import scoped_threads

_ARRAY_TYPES = (np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct, bool, int, float)


_compiling = contextvars.ContextVar("compiling", default=False)


def compiling() -> bool:
    """True while `compile` traces a function: code that runs then need not compile kernels of its own."""
    return _compiling.get()


@contextlib.contextmanager
def _tracing_scope() -> Iterator[None]:
    token = _compiling.set(True)
    try:
        yield
    finally:
        _compiling.reset(token)


class Kernel:
    """A function compiled to vector machine code.

    On NumPy arrays a call runs the code directly and returns NumPy arrays. Arrays may have leading batch axes, the
    same for all that have any; arguments without batch axes are shared by the whole batch. On tracers, inside
    `jax.jit`, `jax.vmap`, `jax.grad` or `jax.jvp`, the kernel is a JAX primitive. Several threads may call a kernel
    at the same time.
    """

    def __init__(self, program: Program, arguments: "_Leaves", results: "_Leaves", names: list[str], threads: int):
        self.program = program
        self.threads = max(threads, scoped_threads())
        self._arguments = arguments
        self._results = results
        self._names = names

    def __call__(self, *args: Any) -> Any:
        """Results of the function, with the batch axes of the arguments in front."""
        leaves = self._arguments.arrays_of(args)
        for leaf in leaves:
            if isinstance(leaf, jax.core.Tracer):
                return self._results.rebuild(bind(self.program, leaves, self.threads))
        return self._results.rebuild(self.program.run(leaves, self.threads, self._names.__getitem__))

    def prepare(self, *args: Any, results: Any = None) -> PreparedCall:
        """Call on fixed NumPy arrays, to be repeated while their numbers change; it writes into the same results.

        Args:
            args: Arguments as of a call, as contiguous arrays of the right types.
            results: Arrays for the results, as contiguous arrays; new ones by default.

        Raises:
            TypeError: An array would have to be copied, so that later changes would be missed.
        """
        name = self._names.__getitem__
        leaves = self._arguments.arrays_of(args)
        given = None if results is None else self._results.arrays_of(results)
        for k, leaf in enumerate(leaves):
            if type(leaf) is not np.ndarray or not leaf.flags.c_contiguous:
                raise TypeError(f"{name(k)} of a prepared call must be a contiguous NumPy array")
        call = self.program.prepare(leaves, self.threads, name, given)
        call.results = self._results.rebuild(call.results)
        return call


class _Leaves:
    """Leaves of a pytree: arrays, and static leaves, which must not change."""

    def __init__(self, tree: Any):
        self.tree: Any
        leaves, self.tree = jax.tree.flatten(tree)
        self.is_array = [isinstance(x, _ARRAY_TYPES) for x in leaves]
        self.all_arrays = all(self.is_array)
        self.static = [None if a else x for x, a in zip(leaves, self.is_array, strict=True)]
        self.arrays = [x for x, a in zip(leaves, self.is_array, strict=True) if a]

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        """The same tree with other arrays."""
        if not self.all_arrays:
            rest = iter(arrays)
            arrays = [next(rest) if a else s for s, a in zip(self.static, self.is_array, strict=True)]
        return jax.tree.unflatten(self.tree, arrays)

    def arrays_of(self, tree: Any) -> Sequence[Any]:
        """Arrays of another tree, which must have the same structure and static leaves."""
        leaves, structure = jax.tree.flatten(tree)
        if structure != self.tree:
            raise TypeError(f"arguments must have the structure {self.tree}, not {structure}")
        if self.all_arrays:
            return leaves
        for leaf, expected, is_array in zip(leaves, self.static, self.is_array, strict=True):
            if not is_array and leaf is not expected and leaf != expected:
                raise TypeError(f"a kernel compiled for {expected!r} was called with {leaf!r}")
        return [x for x, a in zip(leaves, self.is_array, strict=True) if a]

    def names(self, tree: Any) -> list[str]:
        """Names of the arrays of the tree of arguments, for error messages."""
        paths = jax.tree_util.tree_flatten_with_path(tree)[0]
        kept = [p for (p, _), a in zip(paths, self.is_array, strict=True) if a]
        return [f"argument {first.idx}{jax.tree_util.keystr(tuple(rest))}" for first, *rest in kept]


def compile(  # noqa: A001
    f: Callable[..., Any],
    *example_args: Any,
    dtype: Any = None,
    threads: int = 1,
    structure: KernelStructure | None = None,
    level: int = 1,
) -> Kernel:
    """Compile `f` to vector machine code for arguments like the examples.

    The function is traced once, without batch axes. Leaves of the arguments that are not arrays or numbers are static;
    calls must pass equal ones.

    Args:
        f: Any function that JAX can trace, with small static shapes.
        example_args: Arguments without batch axes; only structure, shapes and types matter.
        dtype: Floating-point type to which the examples' floating-point arrays are converted: `float64` or
            `float32`. By default they keep theirs.
        threads: Number of threads over which a batch is split.
        structure: Everything that `f` is made from. A kernel of the same structure in the cache is used without
            tracing `f`, which then happens only if derivatives of the kernel are taken.
        level: Optimization level of LLVM: 0 for kernels that run a few hundred times, 1 for all others. Derivatives of
            the kernel inside JAX have the same.

    Raises:
        UnsupportedError: The function uses a primitive or type that kernels do not support.
    """
    arguments = _Leaves(example_args)
    wide = _needs_64_bits(arguments.arrays, dtype)
    name = getattr(f, "__name__", "kernel") if structure is None else structure.name
    results: list[_Leaves] = []

    def flat(*arrays: Any) -> list[Any]:
        results.append(_Leaves(f(*arguments.rebuild(arrays))))
        return results[-1].arrays

    def trace() -> jex.ClosedJaxpr:
        with part("tracing", name), _tracing_scope(), jax.enable_x64(wide):
            return jax.make_jaxpr(flat)(*(_abstract(x, dtype) for x in arguments.arrays))

    key = None if structure is None else structure.key(example_args, wide, str(dtype))
    if structure is None or key is None:
        compiled, leaves = program(trace(), host(level)), None
    else:
        compiled, leaves = _keyed_program(key, host(level), trace), _Leaves(structure.results)
    compiled.name = compiled.name or name
    compiled.load()
    if leaves is not None and results and results[-1].tree != leaves.tree:
        raise TypeError(f"results must have the structure {leaves.tree}, not {results[-1].tree}")
    return Kernel(compiled, arguments, leaves or results[-1], arguments.names(example_args), threads)


def _keyed_program(structure: bytes, target: CpuTarget, trace: Trace) -> Program:
    """Program of a structure: named by the cache, or traced and then entered there; its jaxpr is not kept."""
    key = cache.key(structure, target)
    entry = cache.read_entry(key)
    if entry is not None:
        return stored_program(entry, target, trace)
    traced = program(trace(), target)
    traced.load()  # only what can be compiled is entered in the cache
    traced.trace = trace
    cache.write_entry(key, cache.CacheEntry(traced.key, traced.inputs, traced.outputs))
    return traced


def _needs_64_bits(arrays: Sequence[Any], dtype: Any) -> bool:
    """True when to trace in 64-bit mode: as asked, or if any example has a 64-bit type, or as JAX is set."""
    if dtype is not None:
        return np.dtype(dtype).itemsize == 8
    wide = any(np.dtype(x.dtype).itemsize == 8 for x in arrays if hasattr(x, "dtype"))
    return wide or bool(jax.config.read("jax_enable_x64"))


def _abstract(x: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an example."""
    own = jax.dtypes.canonicalize_dtype(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype)
    wanted = dtype if dtype is not None and np.issubdtype(own, np.floating) else own
    return jax.ShapeDtypeStruct(np.shape(x), wanted)
