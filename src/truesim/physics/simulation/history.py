"""Histories of signals, for delays."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float

SHORTEST = 1e-12
"""Time between samples below which they count as simultaneous [s]."""


class History(eqx.Module):
    """Latest values of a signal, oldest first; before the oldest one the signal is constant."""

    values: Float[Array, "length n"]
    time: Float[Array, " length"]
    """Start time or time stamp of each value [s]."""

    @classmethod
    def constant(cls, value: Float[Array, " n"], time: Float[Array, ""], length: int) -> "History":
        """History of a constant signal."""
        return cls(jnp.tile(jnp.asarray(value), (length, 1)), jnp.full(length, time))

    @classmethod
    def of(cls, values: Float[Array, "samples n"], time: Float[Array, " samples"], length: int) -> "History":
        """Last `length` samples of a signal; if there are fewer, the first value fills the rest."""
        rows = np.maximum(np.arange(len(time) - length, len(time)), 0)
        return cls(jnp.asarray(values)[rows], jnp.asarray(time)[rows])

    def then(self, value: Float[Array, " n"], time: Float[Array, ""]) -> "History":
        """History after a new value at a later time; the oldest value is dropped."""
        values = jnp.concatenate([self.values[1:], jnp.asarray(value)[None]])
        return History(values, jnp.concatenate([self.time[1:], jnp.asarray(time)[None]]))

    def mean(self, time: Float[Array, ""], duration: Float[Array, ""], delay: Float[Array, " n"]) -> Float[Array, " n"]:
        """Mean over `duration` from `time` on of the delayed signal, each value held until the next.

        Value k has not yet arrived for the part `clip((delay - age_k) / duration, 0, 1)` of that duration, if at
        `time` it is `age_k` old. With a constant step this is Minitaur's interpolation between stored samples.
        """
        return self._behind(time, jnp.asarray(duration), delay)

    def at(self, time: Float[Array, ""], delay: Float[Array, " n"]) -> Float[Array, " n"]:
        """Signal interpolated linearly between values, `delay` before `time`."""
        return self._behind(time, jnp.maximum(jnp.diff(self.time), SHORTEST)[:, None], delay)

    def _behind(self, time: Array, span: Array, delay: Array) -> Float[Array, " n"]:
        """Latest value, minus the part of each change that has not yet arrived.

        At a kink the derivative by the delay is that of longer delays, so that it exists at zero.
        """
        age = time - self.time[1:]
        part = (jnp.asarray(delay)[None] - age[:, None]) / span
        part = jnp.where(part >= 1, 1.0, jnp.where(part >= 0, part, 0.0))
        return self.values[-1] - jnp.sum(part * jnp.diff(self.values, axis=0), axis=0)


def delayed(
    signal: Float[Array, "samples n"], time: Float[Array, " samples"], delay: Float[Array, " n"], length: int
) -> Float[Array, "samples n"]:
    """Sampled signal, delayed, at each of its own times; before its start it has its first value.

    Args:
        signal: One row a sample.
        time: Of each sample [s].
        delay: Of each column [s].
        length: Number of samples, the present one included, that the delay looks back into.
    """
    rows = np.maximum(np.arange(len(signal))[:, None] - np.arange(length)[::-1], 0)
    return jax.vmap(lambda values, stamps: History(values, stamps).at(stamps[-1], delay))(
        jnp.asarray(signal)[rows], jnp.asarray(time)[rows]
    )
