"""Shots and their gradients as compiled functions, by the backend that suits the size of their networks.

Up to some hundred weights each stretch is a lane of a native kernel. Products with thousands of weights, the same for
all stretches, are products of matrices: XLA does them for many stretches at once, and adds up gradients as it goes.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.dynamics import difference
from truesim.identify.shooting import Shooting, Stretch
from truesim.simulate.backend import plain_jax

NATIVE = 1000
"""Weights up to which native kernels are the faster ones."""
LANES = 128
"""Stretches that XLA simulates side by side: it compiles for one number of them."""
OWN = 3
"""Arguments of a shot that every stretch has of its own: parameters, known numbers, the stretch."""

Shots = Callable[[Array | None], Shooting]
"""From many weights, or none, to how stretches are simulated."""


class Pulled(NamedTuple):
    """A gradient, to be summed over the first axes."""

    theta: Float[Array, "stretches slots"]
    """By the parameters of each stretch's log."""
    weights: Float[Array, "parts weights"]
    """By the weights that all share."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A compiled function, and how long it took to compile."""

    run: Callable[..., Any]
    seconds: float
    """[s]"""

    def __call__(self, *args: Any) -> Any:
        """Runs it."""
        return self.run(*args)


def compiled_shots(shots: Callable[[Array | None], Callable[..., Any]], example: tuple[Any, ...]) -> Kernel:
    """A function of parameters, known numbers and a stretch, compiled for many stretches.

    Args:
        shots: Makes the function from weights that all stretches share.
        example: Its arguments for one stretch; then those weights, if there are any.
    """

    def run(theta: Array, known: Array, stretch: Stretch, *weights: Array) -> Any:
        return shots(weights[0] if weights else None)(theta, known, stretch)

    if _for_xla(example):
        return _timed(lambda: _InLanes(jax.vmap(run, (0, 0, 0, None)), example))
    return _timed(lambda: native.compile(run, *example))


def compiled_pull(shots: Shots, example: tuple[Any, ...]) -> Kernel:
    """The gradient of a weighted sum of residuals and end states, in reverse mode, compiled for many stretches.

    The compiled function takes weights that all stretches share after the stretch, then what counts how much.

    Args:
        shots: Makes the shooting from those weights.
        example: Arguments for one stretch: parameters, known numbers, the stretch, weights.
    """

    def ends(theta: Array, known: Array, stretch: Stretch, weights: Array) -> tuple[Array, Array]:
        shooting = shots(weights if weights.size else None)
        shot = shooting.shoot(theta, known, stretch)
        moved = difference(shooting.model, shot.q, jax.lax.stop_gradient(shot.q))
        return shot.residual, jnp.concatenate([moved, shot.v])

    def pull(ends: Callable, theta: Array, known: Array, stretch: Stretch, weights: Array, *counts: Array) -> Pulled:
        _, back = jax.vjp(lambda theta, weights: ends(theta, known, stretch, weights), theta, weights)
        return Pulled(*back(counts))

    with jax.enable_x64(True):
        counts = jax.eval_shape(ends, *example)
    if _for_xla(example):
        together = jax.vmap(ends, (0, 0, 0, None))

        def summed(*args: Any) -> Pulled:
            theta, weights = pull(together, *args)
            return Pulled(theta, weights[None])

        return _timed(lambda: _InLanes(summed, (*example, *counts)))
    return _timed(lambda: native.compile(lambda *args: pull(ends, *args), *example, *counts))


def _for_xla(example: tuple[Any, ...]) -> bool:
    return len(example) > OWN and example[OWN].size > NATIVE


def _timed(make: Callable[[], Callable[..., Any]]) -> Kernel:
    begin = time.perf_counter()
    with jax.enable_x64(True):
        kernel = make()
    return Kernel(kernel, time.perf_counter() - begin)


class _InLanes:
    """A function of many stretches at once, compiled by XLA, that takes any number of them like a native kernel."""

    def __init__(self, f: Callable[..., Any], example: tuple[Any, ...]):
        """Compiles it.

        Args:
            f: Takes `LANES` stretches in all its arguments but the weights.
            example: Arguments for one stretch, and the weights in their place.
        """

        def wide(x: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((LANES, *np.shape(x)), np.float64)

        self._ranks = [jax.tree.map(np.ndim, part) for part in example]
        shapes = [part if k == OWN else jax.tree.map(wide, part) for k, part in enumerate(example)]
        with plain_jax():
            self._run = jax.jit(f).lower(*shapes).compile()

    def __call__(self, *args: Any) -> Any:
        own = [k for k in range(len(args)) if k != OWN]
        ranked = [pair for k in own for pair in zip(*map(jax.tree.leaves, (args[k], self._ranks[k])), strict=True)]
        count = next(len(x) for x, rank in ranked if np.ndim(x) > rank)
        done = [self._part(args, first, count) for first in range(0, count, LANES)]
        return jax.tree.map(lambda *x: np.concatenate(x), *done)

    def _part(self, args: tuple[Any, ...], first: int, count: int) -> Any:
        """The stretches from `first` on; lanes beyond the last repeat it, and count for nothing."""
        lane = np.arange(first, first + LANES)
        at, inside = np.minimum(lane, count - 1), lane < count

        def taken(x: np.ndarray, rank: int) -> np.ndarray:
            return x[at] if np.ndim(x) > rank else np.broadcast_to(x, (LANES, *np.shape(x)))

        parts = [part if k == OWN else jax.tree.map(taken, part, self._ranks[k]) for k, part in enumerate(args)]
        parts[OWN + 1 :] = [x * inside.reshape(-1, *[1] * (x.ndim - 1)) for x in parts[OWN + 1 :]]
        with jax.enable_x64(True):
            return jax.tree.map(lambda x: np.asarray(x)[: inside.sum()], self._run(*parts))
