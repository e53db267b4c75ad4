"""Functions compiled by XLA that are called like native kernels: any argument may have batch axes."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from truesim.physics.simulation.backend import KernelCache, plain_jax


class Xla:
    """A function compiled by XLA for any batch axes of its arguments."""

    def __init__(self, f: Callable[..., Any], example_args: tuple[Any, ...]):
        self._f = f
        self._ranks = [np.ndim(x) if is_array(x) else None for x in jax.tree.leaves(example_args)]
        self._wide = any(is_array(x) and x.dtype.itemsize == 8 for x in jax.tree.leaves(example_args))
        self._jitted = KernelCache()

    def __call__(self, *args: Any) -> Any:
        """The results as NumPy arrays."""
        leaves, structure = jax.tree.flatten(args)
        is_input = tuple(is_array(x) or isinstance(x, float | complex) for x in leaves)
        inputs = [x for x, take in zip(leaves, is_input, strict=True) if take]
        fixed = tuple(None if take else x for x, take in zip(leaves, is_input, strict=True))
        ranks = [r or 0 for r, take in zip(self._ranks, is_input, strict=True) if take]
        extra = tuple(np.ndim(x) - r for x, r in zip(inputs, ranks, strict=True))
        with jax.enable_x64(self._wide or jax.config.read("jax_enable_x64")):
            key = structure, extra, is_input, tuple((type(x), x) for x in fixed)
            run = self._jitted.get(key, lambda: jax.jit(self._batched(structure, fixed, is_input, extra)))
            return jax.tree.map(np.asarray, run(*inputs))

    def _batched(
        self, structure: Any, fixed: tuple[Any, ...], is_input: tuple[bool, ...], extra: tuple[int, ...]
    ) -> Callable[..., Any]:
        """The function of the inputs alone, mapped over their batch axes."""

        def flat(*inputs: Any) -> Any:
            given = iter(inputs)
            leaves = [next(given) if take else x for take, x in zip(is_input, fixed, strict=True)]
            with plain_jax():
                return self._f(*jax.tree.unflatten(structure, leaves))

        mapped: Callable[..., Any] = flat
        for level in range(max(extra, default=0)):
            mapped = jax.vmap(mapped, in_axes=[0 if count > level else None for count in extra])
        return mapped


class BatchedXla:
    """A function of a whole batch, compiled by XLA for one batch size, that takes a batch of any length."""

    def __init__(
        self,
        f: Callable[..., Any],
        example_args: tuple[Any, ...],
        shared: tuple[int, ...],
        size: int,
        weighted: tuple[int, ...] = (),
    ):
        """Compile it.

        Args:
            f: Takes `size` batch elements in all its arguments but the shared ones; its results have a leading axis.
            example_args: Arguments of one batch element.
            shared: Positions of arguments without a batch axis.
            size: Batch elements that are computed at once.
            weighted: Positions of arguments that are zero where there is no batch element.
        """
        self._shared, self._size, self._weighted = shared, size, weighted
        self._ranks = [jax.tree.map(_rank, part) for part in example_args]

        def wide(x: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((size, *np.shape(x)), jax.dtypes.canonicalize_dtype(_dtype(x)))

        parts = enumerate(example_args)
        shapes = [part if k in shared else jax.tree.map(wide, part) for k, part in parts]
        self._x64 = jax.config.read("jax_enable_x64")
        with plain_jax():
            self._run = jax.jit(f).lower(*shapes).compile()

    def __call__(self, *args: Any) -> Any:
        """The results as NumPy arrays, stacked over the batch."""
        own = [k for k in range(len(args)) if k not in self._shared]
        ranked = [pair for k in own for pair in zip(*map(jax.tree.leaves, (args[k], self._ranks[k])), strict=True)]
        count = next((len(x) for x, rank in ranked if np.ndim(x) > rank), 1)
        done = [self._part(args, first, count) for first in range(0, count, self._size)]
        return jax.tree.map(lambda *x: np.concatenate(x), *done)

    def _part(self, args: tuple[Any, ...], first: int, count: int) -> Any:
        """Results of the batch elements from `first` on; places beyond the last one repeat it, with zero weight."""
        element = np.arange(first, first + self._size)
        at, inside = np.minimum(element, count - 1), element < count

        def taken(x: Any, rank: int) -> np.ndarray:
            x = np.asarray(x)
            return x[at] if np.ndim(x) > rank else np.broadcast_to(x, (self._size, *np.shape(x)))

        def weigh(x: np.ndarray) -> np.ndarray:
            return x * inside.reshape(-1, *[1] * (x.ndim - 1))

        parts = [p if k in self._shared else jax.tree.map(taken, p, self._ranks[k]) for k, p in enumerate(args)]
        parts = [jax.tree.map(weigh, p) if k in self._weighted else p for k, p in enumerate(parts)]
        with jax.enable_x64(self._x64):
            return jax.tree.map(lambda x: np.asarray(x)[: inside.sum()], self._run(*parts))


def is_array(x: Any) -> bool:
    """True if a leaf is an array, of NumPy or of JAX."""
    return isinstance(x, np.ndarray | np.generic | jax.Array)


def _rank(x: Any) -> int:
    return len(x.shape) if hasattr(x, "shape") else np.ndim(x)


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)
