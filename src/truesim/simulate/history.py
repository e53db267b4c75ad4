"""Signals that are remembered for a while: what delays look back into."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float

SHORTEST = 1e-12
"""Time between samples below which two of them are simultaneous [s]."""


class History(eqx.Module):
    """The latest values of a signal, oldest first; before the oldest, the signal has always had its value."""

    values: Float[Array, "length n"]
    time: Float[Array, "length"]
    """When each value began or was read [s]."""

    @classmethod
    def constant(cls, value: Float[Array, "n"], time: Float[Array, ""], length: int) -> "History":
        """The history of a signal that has always had this value."""
        return cls(jnp.tile(jnp.asarray(value), (length, 1)), jnp.full(length, time))

    @classmethod
    def of(cls, values: Float[Array, "samples n"], time: Float[Array, "samples"], length: int) -> "History":
        """The last `length` samples of a signal; if there are fewer, it has always had its first value."""
        rows = np.maximum(np.arange(len(time) - length, len(time)), 0)
        return cls(jnp.asarray(values)[rows], jnp.asarray(time)[rows])

    def then(self, value: Float[Array, "n"], time: Float[Array, ""]) -> "History":
        """The history after a new value at a later time; the oldest is forgotten."""
        values = jnp.concatenate([self.values[1:], jnp.asarray(value)[None]])
        return History(values, jnp.concatenate([self.time[1:], jnp.asarray(time)[None]]))

    def mean(self, time: Float[Array, ""], duration: Float[Array, ""], delay: Float[Array, "n"]) -> Float[Array, "n"]:
        """Mean over `duration` from `time` on of the signal that holds each value until the next, seen `delay` late.

        Value k has not yet arrived for the part `clip((delay - age_k) / duration, 0, 1)` of that duration, if at
        `time` it is `age_k` old. With a constant step this is Minitaur's interpolation between stored samples.
        """
        return self._behind(time, jnp.asarray(duration), delay)

    def at(self, time: Float[Array, ""], delay: Float[Array, "n"]) -> Float[Array, "n"]:
        """The signal that runs straight from value to value, `delay` before `time`."""
        return self._behind(time, jnp.maximum(jnp.diff(self.time), SHORTEST)[:, None], delay)

    def _behind(self, time: Array, span: Array, delay: Array) -> Float[Array, "n"]:
        """The latest value, less the part of each change that has not yet arrived.

        On the edge of a cell the derivative in the delay is that of the longer delay, so that it exists at zero.
        """
        age = time - self.time[1:]
        part = (jnp.asarray(delay)[None] - age[:, None]) / span
        part = jnp.where(part >= 1, 1.0, jnp.where(part >= 0, part, 0.0))
        return self.values[-1] - jnp.sum(part * jnp.diff(self.values, axis=0), axis=0)


def delayed(
    signal: Float[Array, "samples n"], time: Float[Array, "samples"], delay: Float[Array, "n"], length: int
) -> Float[Array, "samples n"]:
    """A sampled signal as it is seen `delay` late at each of its own times; before its start it has its first value.

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
