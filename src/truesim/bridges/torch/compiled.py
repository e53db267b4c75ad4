"""Kernels of JAX functions for given shapes: values, pullbacks, and the shapes of results."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from truesim import native
from truesim.core.typing import Array
from truesim.physics.simulation.backend import KernelCache, plain_jax
from truesim.physics.simulation.kernels import Compiled, compile, compile_pullback  # noqa: A004

FlatFunction = Callable[..., tuple[Array, ...]]
"""From arrays to a tuple of arrays, all of floating-point numbers."""
Shapes = tuple[tuple[int, ...], ...]
Arrays = Sequence[np.ndarray]


class Specialized:
    """Kernels of a function for arguments of given shapes without batch axes, in one precision.

    Each kernel is compiled at its first use.
    """

    def __init__(self, f: FlatFunction, shapes: Shapes, dtype: np.dtype, threads: int):
        self._f, self._shapes, self._dtype, self._threads = f, shapes, dtype, threads
        self._kernels = KernelCache()
        self._value: Compiled | None = None

    def values(self, inputs: Arrays) -> list[np.ndarray]:
        """Results with the batch axes of the arguments in front."""
        if self._value is None:
            self._value = self._kernels.get((), self._compile)
        return list(self._value(*inputs))

    def pullback(self, by: tuple[int, ...], inputs: Arrays, cotangents: Arrays) -> list[np.ndarray]:
        """Gradients of `sum(cotangents * f(*inputs))` by the arguments at the positions `by`."""
        kernel = self._kernels.get(by, lambda: self._compile(by))
        gradients = kernel(*inputs, tuple(cotangents))
        return [_summed(g, inputs[k]) for g, k in zip(gradients, by, strict=True)]

    @functools.cached_property
    def result_shapes(self) -> Shapes:
        """Shapes of the results without batch axes."""
        with jax.enable_x64(self._dtype == np.float64), plain_jax():
            results = jax.eval_shape(self._f, *self._examples())
        return tuple(x.shape for x in results)

    def _compile(self, by: tuple[int, ...] | None = None) -> Compiled:
        with jax.enable_x64(self._dtype == np.float64), native.use_threads(self._threads):
            if by is None:
                return compile(self._f, *self._examples())
            return compile_pullback(self._f, *self._examples(), by=by)

    def _examples(self) -> list[jax.ShapeDtypeStruct]:
        return [jax.ShapeDtypeStruct(shape, self._dtype) for shape in self._shapes]


class CompiledFunction:
    """A JAX function that is compiled for every precision and all shapes that it is called with."""

    def __init__(self, f: FlatFunction, ranks: tuple[int, ...], threads: int = 1):
        """Prepare it; nothing is compiled yet.

        Args:
            f: The function.
            ranks: Number of axes of each argument without batch axes.
            threads: Number of threads over which a batch is split.
        """
        self.ranks = ranks
        self._f, self._threads = f, threads
        self._specialized = KernelCache()

    def at(self, shapes: Sequence[Sequence[int]], dtype: np.dtype) -> Specialized:
        """Kernels for arguments of these shapes, whose batch axes do not matter."""
        own = tuple(tuple(map(int, s[len(s) - rank :])) for s, rank in zip(shapes, self.ranks, strict=True))
        return self._specialized.get((own, dtype), lambda: Specialized(self._f, own, dtype, self._threads))


def as_constants(tree: Any, dtype: Any) -> Any:
    """The tree with its floating-point arrays as NumPy arrays of one precision."""
    return jax.tree.map(functools.partial(_constant, dtype), tree)


def as_numpy(tree: Any) -> Any:
    """The tree with its JAX arrays as NumPy arrays of the same precision."""
    return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, tree)


def _constant(dtype: Any, x: Any) -> Any:
    is_number = isinstance(x, np.ndarray | jax.Array) and np.issubdtype(x.dtype, np.floating)
    return np.asarray(x, dtype) if is_number else x


def _summed(gradient: np.ndarray, argument: np.ndarray) -> np.ndarray:
    """Gradient by an argument that the whole batch shares: the sum over the batch."""
    extra = gradient.ndim - argument.ndim
    return gradient.sum(axis=tuple(range(extra))) if extra else gradient
