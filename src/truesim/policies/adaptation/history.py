"""Histories of observations and actions, for estimators that adapt within an episode."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float


def empty_history(batch: int, length: int, width: int) -> Float[Array, "batch length width"]:
    """Histories at the start of episodes: zeros. The width is that of an observation and an action together."""
    return jnp.zeros((batch, length, width))


def remember(
    history: Float[Array, "batch length width"], observation: Float[Array, "batch no"], action: Float[Array, "batch na"]
) -> Float[Array, "batch length width"]:
    """Histories with an observation and the action that led to it; the newest is last, the oldest is lost."""
    newest = jnp.concatenate([observation, action], axis=-1)[:, None]
    return jnp.concatenate([history[:, 1:], newest], axis=1)


def forget(
    history: Float[Array, "batch length width"], action: Float[Array, "batch na"], ended: Array
) -> tuple[Float[Array, "batch length width"], Float[Array, "batch na"]]:
    """Histories and last actions after a step; zero where an episode has ended."""
    return jnp.where(ended[:, None, None], 0.0, history), jnp.where(ended[:, None], 0.0, action)
