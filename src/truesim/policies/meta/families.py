"""Families of tasks: small systems in plain JAX with hidden numbers, and episodes played in them.

A family draws hidden numbers, such as the angle by which actions are rotated. They never enter the observation: a
policy has to adapt to them from what it experiences.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float

Hidden = Any
"""Hidden numbers of one task: any tree of arrays."""


class TaskFamily(NamedTuple):
    """A distribution over tasks that share observations, actions and the length of an episode."""

    name: str
    observation_size: int
    action_size: int
    steps: int
    """Control steps of the longest episode."""
    draw: Callable[[Array], Hidden]
    """Hidden numbers from a random key."""
    reset: Callable[[Array, Hidden], Any]
    """Initial state from a random key."""
    observe: Callable[[Any, Hidden], Array]
    """Observation in a state."""
    step: Callable[[Any, Array, Hidden], tuple[Any, Array, Array]]
    """State after an action, the reward of the step, and True if the episode ends with it."""


class Experience(NamedTuple):
    """Steps of an episode, or of many with more axes in front."""

    observations: Float[Array, "*episodes steps no"]
    actions: Float[Array, "*episodes steps na"]
    following: Float[Array, "*episodes steps no"]
    """Observations after each action."""
    rewards: Float[Array, "*episodes steps"]
    """Zero after the end of an episode."""
    alive: Float[Array, "*episodes steps"]
    """1 for steps that count, 0 after the end of an episode."""

    @property
    def returns(self) -> Float[Array, "*episodes"]:
        """Sum of rewards of each episode."""
        return jnp.sum(self.rewards, axis=-1)


def play(family: TaskFamily, act: Callable[[Array, Array], Array], hidden: Hidden, key: Array) -> Experience:
    """Play one episode.

    Args:
        family: The family.
        act: Action from an observation and a random key.
        hidden: Hidden numbers of the task.
        key: Random key.
    """
    start, *keys = jax.random.split(key, family.steps + 1)

    def advance(carry: Any, step_key: Any) -> tuple[Any, Experience]:
        state, alive = carry
        observation = family.observe(state, hidden)
        action = act(observation, step_key)
        after, reward, ended = family.step(state, action, hidden)
        rewarded = jnp.where(alive, reward, 0.0)
        taken = Experience(observation, action, family.observe(after, hidden), rewarded, alive.astype(rewarded.dtype))
        return (after, alive & ~ended), taken

    return jax.lax.scan(advance, (family.reset(start, hidden), jnp.array(True)), jnp.stack(keys))[1]


def episode_return(family: TaskFamily, act: Callable[[Array], Array], hidden: Hidden, state: Any) -> Float[Array, ""]:
    """Sum of rewards of a deterministic policy from a given initial state.

    Args:
        family: The family.
        act: Action from an observation.
        hidden: Hidden numbers of the task.
        state: Initial state.
    """

    def advance(carry: Any, _: None) -> tuple[Any, None]:
        now, alive, total = carry
        after, reward, ended = family.step(now, act(family.observe(now, hidden)), hidden)
        return (after, alive & ~ended, total + jnp.where(alive, reward, 0.0)), None

    return jax.lax.scan(advance, (state, jnp.array(True), jnp.zeros(())), None, length=family.steps)[0][2]
