"""Compiled functions of pytrees, and `compile`, which makes them."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from truesim.native.primitive import bind
from truesim.native.program import Program, program

_ARRAYS = (np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct, bool, int, float)


_compiling = contextvars.ContextVar("compiling", default=False)


def compiling() -> bool:
    """Whether the code that runs now is being traced by `compile`: then it need not make kernels of its own."""
    return _compiling.get()


@contextlib.contextmanager
def _marked() -> Iterator[None]:
    token = _compiling.set(True)
    try:
        yield
    finally:
        _compiling.reset(token)


class Kernel:
    """A function compiled to vector code.

    Calling it on NumPy arrays runs the code directly and returns NumPy arrays. Arrays may have leading
    batch axes, the same for all that have any; arguments without are shared by the whole batch. Called on
    tracers, inside `jax.jit`, `jax.vmap`, `jax.grad` or `jax.jvp`, the kernel is a JAX primitive.
    """

    def __init__(self, program: Program, arguments: "_Leaves", results: "_Leaves", names: list[str], threads: int):
        self.program = program
        self.threads = threads
        self._arguments = arguments
        self._results = results
        self._names = names

    def __call__(self, *args: Any) -> Any:
        """The function's results, with the batch axes of the arguments in front."""
        leaves = self._arguments.arrays_of(args)
        for leaf in leaves:
            if isinstance(leaf, jax.core.Tracer):
                return self._results.rebuilt(bind(self.program, leaves, self.threads))
        return self._results.rebuilt(self.program.run(leaves, self.threads, self._names.__getitem__))


class _Leaves:
    """A pytree taken apart: its arrays, and the leaves that are not arrays, which stay as they are."""

    def __init__(self, tree: Any):
        self.tree: Any
        leaves, self.tree = jax.tree.flatten(tree)
        self.is_array = [isinstance(x, _ARRAYS) for x in leaves]
        self.all_arrays = all(self.is_array)
        self.static = [None if a else x for x, a in zip(leaves, self.is_array, strict=True)]
        self.arrays = [x for x, a in zip(leaves, self.is_array, strict=True) if a]

    def rebuilt(self, arrays: Sequence[Any]) -> Any:
        """The same tree with other arrays."""
        if not self.all_arrays:
            rest = iter(arrays)
            arrays = [next(rest) if a else s for s, a in zip(self.static, self.is_array, strict=True)]
        return jax.tree.unflatten(self.tree, arrays)

    def arrays_of(self, tree: Any) -> Sequence[Any]:
        """The arrays of another tree, which must be built like this one."""
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
        """Where each array of the tree of arguments is, in words."""
        paths = jax.tree_util.tree_flatten_with_path(tree)[0]
        kept = [p for (p, _), a in zip(paths, self.is_array, strict=True) if a]
        return [f"argument {first.idx}{jax.tree_util.keystr(tuple(rest))}" for first, *rest in kept]


def compile(f: Callable[..., Any], *example_args: Any, dtype: Any = None, threads: int = 1) -> Kernel:  # noqa: A001
    """A kernel of `f`: vector machine code for arguments like the examples.

    The function is traced once, without batch axes. Leaves of the arguments that are not arrays or
    numbers are taken as they are; calls must pass the same.

    Args:
        f: Any function that JAX can trace, with small static shapes.
        example_args: Arguments without batch axes; only structure, shapes and types matter.
        dtype: Floating-point type to which the examples' floating-point arrays are converted: `float64` or
            `float32`. By default they keep theirs.
        threads: Number of threads over which a batch is split.

    Raises:
        UnsupportedError: The function uses something that kernels do not have.
    """
    arguments = _Leaves(example_args)
    results: list[_Leaves] = []

    def flat(*arrays: Any) -> list[Any]:
        results.append(_Leaves(f(*arguments.rebuilt(arrays))))
        return results[-1].arrays

    with _marked(), jax.enable_x64(_needs_64_bits(arguments.arrays, dtype)):
        closed = jax.make_jaxpr(flat)(*(_abstract(x, dtype) for x in arguments.arrays))
    compiled = program(closed)
    assert compiled.address, "the code is loaded here, so that errors appear here"
    return Kernel(compiled, arguments, results[-1], arguments.names(example_args), threads)


def _needs_64_bits(arrays: Sequence[Any], dtype: Any) -> bool:
    """Whether to trace in 64-bit mode: as asked, or if any example is of a 64-bit type, or as JAX is set."""
    if dtype is not None:
        return np.dtype(dtype).itemsize == 8
    wide = any(np.dtype(x.dtype).itemsize == 8 for x in arrays if hasattr(x, "dtype"))
    return wide or bool(jax.config.read("jax_enable_x64"))


def _abstract(x: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an example."""
    own = jax.dtypes.canonicalize_dtype(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype)
    wanted = dtype if dtype is not None and np.issubdtype(own, np.floating) else own
    return jax.ShapeDtypeStruct(np.shape(x), wanted)
