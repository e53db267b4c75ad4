"""Counter-based random numbers that native kernels and XLA compute alike.

A number is a hash of a key, a counter and its place among the draws: `h(h(place G + counter) ^ key)`, with the 32-bit
integer hash `triple32` of Wellons (three multiplications, avalanche bias 0.02 bits). There is no state to carry along,
and equal keys and counters give equal numbers on every backend, thread and batch size.
"""

import math

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array

GOLDEN_RATIO = 0x9E3779B9
"""Odd number near 2^32 divided by the golden ratio, which keeps the places of consecutive draws apart."""


def hash_bits(x: Array) -> Array:
    """Wellons' `triple32` of unsigned 32-bit integers: a bijection in which every bit depends on all bits."""
    x = x ^ (x >> 17)
    x = x * jnp.uint32(0xED5AD4BB)
    x = x ^ (x >> 11)
    x = x * jnp.uint32(0xAC4C1B51)
    x = x ^ (x >> 15)
    x = x * jnp.uint32(0x31848BAB)
    return x ^ (x >> 14)


def make_keys(seed: int, count: int) -> np.ndarray:
    """Keys of `count` independent streams, shape (count, 2)."""
    return np.random.SeedSequence(seed).generate_state(2 * count, np.uint32).reshape(count, 2)


class Draws:
    """Random numbers of one instant of one stream; every call returns new ones.

    draw = Draws(key, counter)
    angle, speed = draw.uniform(-0.1, 0.1), draw.normal(0.0, 0.5)
    """

    def __init__(self, key: Array, counter: Array):
        """Begin with the first draw.

        Args:
            key: Two unsigned 32-bit integers, from `make_keys`.
            counter: Unsigned 32-bit integer, another one for every instant.
        """
        self._base = hash_bits(jnp.asarray(counter, jnp.uint32) ^ key[0]) ^ key[1]
        self._used = 0

    def bits(self, count: int) -> Array:
        """The next `count` unsigned 32-bit integers."""
        places = np.arange(self._used, self._used + count, dtype=np.uint32) * np.uint32(GOLDEN_RATIO)
        self._used += count
        return hash_bits(hash_bits(jnp.asarray(places) + self._base) ^ self._base)

    def uniform(self, low: Array | float = 0.0, high: Array | float = 1.0, shape: tuple[int, ...] = ()) -> Array:
        """Uniform numbers in [low, high)."""
        unit = (self.bits(math.prod(shape)) >> 8).astype(jnp.result_type(float)) * 2.0**-24
        return low + (high - low) * unit.reshape(shape)

    def normal(self, mean: Array | float = 0.0, std: Array | float = 1.0, shape: tuple[int, ...] = ()) -> Array:
        """Normal numbers, by the transform of Box and Muller."""
        count = math.prod(shape)
        radius = jnp.sqrt(-2.0 * jnp.log(1.0 - self.uniform(shape=(count,))))
        angle = self.uniform(0.0, 2.0 * math.pi, (count,))
        return mean + std * (radius * jnp.cos(angle)).reshape(shape)

    def integer(self, low: int, high: int) -> Array:
        """An integer from `low` to `high`, both included."""
        return jnp.minimum(jnp.floor(self.uniform(low, high + 1)), high).astype(jnp.int32)


_INNER = (
    (
        -39.69683028665376,
        220.9460984245205,
        -275.9285104469687,
        138.3577518672690,
        -30.66479806614716,
        2.506628277459239,
    ),
    (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0),
)
_OUTER = (
    (
        -0.007784894002430293,
        -0.3223964580411365,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ),
    (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0),
)
_TAIL = 0.02425


def normal_quantile(probability: Array) -> Array:
    """Quantile of the standard normal distribution, by Acklam's rational functions (relative error below 2e-9).

    Plain arithmetic, so that native kernels have it too.
    """

    def ratio(x: Array, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
        above, below = (jnp.zeros_like(x) + part[0] for part in coefficients)
        for c in coefficients[0][1:]:
            above = above * x + c
        for c in coefficients[1][1:]:
            below = below * x + c
        return above / below

    p = jnp.clip(probability, 1e-7, 1.0 - 1e-7)
    centered = p - 0.5
    middle = centered * ratio(centered * centered, _INNER)
    nearer = jnp.minimum(p, 1.0 - p)
    tail = ratio(jnp.sqrt(-2.0 * jnp.log(nearer)), _OUTER)
    return jnp.where(nearer < _TAIL, jnp.where(p < 0.5, tail, -tail), middle)
