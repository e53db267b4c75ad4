"""Compiled functions of pytrees, and `compile`, which makes them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from truesim.native.primitive import bind
from truesim.native.program import Program, program

_ARRAYS = (np.ndarray, np.generic, jax.Array, jax.ShapeDtypeStruct, bool, int, float)


class Kernel:
    """A function compiled to vector code.

    Calling it on NumPy arrays runs the code directly and returns NumPy arrays. Arrays may have leading batch axes,
    the same for all that have any; arguments without are shared by the whole batch. Called on tracers, inside
    `jax.jit`, `jax.vmap`, `jax.grad` or `jax.jvp`, the kernel is a JAX primitive.
    """

    def __init__(self, program: Program, structure: "_Structure", threads: int):
        self.program = program
        self.threads = threads
        self._structure = structure

    def __call__(self, *args: Any) -> Any:
        """The function's results, with the batch axes of the arguments in front."""
        structure = self._structure
        leaves = structure.dynamic(args)
        for leaf in leaves:
            if isinstance(leaf, jax.core.Tracer):
                results = bind(self.program, leaves, self.threads)
                break
        else:
            results = self.program.run(leaves, self.threads, structure.name)
        return jax.tree.unflatten(structure.out_tree, results)


class _Structure:
    """How arguments and results are built from flat lists of arrays."""

    def __init__(self, args: tuple[Any, ...]):
        leaves, self.in_tree = jax.tree.flatten(args)
        self.is_array = [isinstance(x, _ARRAYS) for x in leaves]
        self.static = [None if a else x for x, a in zip(leaves, self.is_array, strict=True)]
        self.all_arrays = all(self.is_array)
        self.arrays = [x for x, a in zip(leaves, self.is_array, strict=True) if a]
        self.out_tree: Any = None
        paths = jax.tree_util.tree_flatten_with_path(args)[0]
        self._paths = [p for (p, _), a in zip(paths, self.is_array, strict=True) if a]

    def name(self, k: int) -> str:
        """The array argument number `k` in words."""
        position, *rest = self._paths[k]
        return f"argument {position.idx}{jax.tree_util.keystr(tuple(rest))}"

    def dynamic(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """The array leaves of some arguments, which must be built like the example."""
        leaves, tree = jax.tree.flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"arguments must have the structure {self.in_tree}, not {tree}")
        if self.all_arrays:
            return leaves
        for leaf, expected, is_array in zip(leaves, self.static, self.is_array, strict=True):
            if not is_array and leaf is not expected and leaf != expected:
                raise TypeError(f"a kernel compiled for {expected!r} was called with {leaf!r}")
        return [x for x, a in zip(leaves, self.is_array, strict=True) if a]

    def call(self, f: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """`f` on arguments rebuilt from arrays and the example's other leaves."""
        rest = iter(arrays)
        leaves = [next(rest) if a else s for s, a in zip(self.static, self.is_array, strict=True)]
        return f(*jax.tree.unflatten(self.in_tree, leaves))


def compile(f: Callable[..., Any], *example_args: Any, dtype: Any = None, threads: int = 1) -> Kernel:  # noqa: A001
    """A kernel of `f`: vector machine code for arguments like the examples.

    The function is traced once, without batch axes. Leaves of the arguments that are not arrays or numbers are
    taken as they are; calls must pass the same.

    Args:
        f: Any function that JAX can trace, with small static shapes.
        example_args: Arguments without batch axes; only structure, shapes and types matter.
        dtype: Floating-point type to which the examples' floating-point arrays are converted: `float64` or
            `float32`. By default they keep theirs.
        threads: Number of threads over which a batch is split.

    Raises:
        UnsupportedError: The function uses something that kernels do not have.
    """
    structure = _Structure(example_args)
    with jax.enable_x64(_needs_64_bits(structure.arrays, dtype)):
        avals = [_abstract(x, dtype) for x in structure.arrays]
        closed, shapes = jax.make_jaxpr(lambda *xs: structure.call(f, xs), return_shape=True)(*avals)
    structure.out_tree = jax.tree.structure(shapes)
    compiled = program(closed)
    assert compiled.address
    return Kernel(compiled, structure, threads)


def _needs_64_bits(arrays: Sequence[Any], dtype: Any) -> bool:
    """Whether to trace in 64-bit mode: as asked, or if any example is of a 64-bit type, or as JAX is set."""
    if dtype is not None:
        return np.dtype(dtype).itemsize == 8
    wide = any(np.dtype(x.dtype).itemsize == 8 for x in arrays if hasattr(x, "dtype"))
    return wide or bool(jax.config.jax_enable_x64)


def _abstract(x: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an example."""
    own = jax.dtypes.canonicalize_dtype(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype)
    wanted = dtype if dtype is not None and np.issubdtype(own, np.floating) else own
    return jax.ShapeDtypeStruct(np.shape(x), wanted)
