"""A point that is displaced by actions, which a hidden angle rotates (Yang et al. 2019)."""

import jax
import jax.numpy as jnp

from truesim.policies.meta import TaskFamily

GOAL = (1.0, 0.0)
"""Goal [m]."""
LIMIT = 2.0
"""Largest coordinate [m]."""


def point_rotation(steps: int = 10) -> TaskFamily:
    """Move to the goal when actions are rotated by an angle in [-pi, pi]; starts are uniform in [-1, 1]^2.

    From a fixed start, the position after the first step would tell the angle.
    """

    def step(position, action, angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        moved = position + jnp.stack([c * action[0] - s * action[1], s * action[0] + c * action[1]])
        after = jnp.clip(moved, -LIMIT, LIMIT)
        return after, -jnp.sqrt(jnp.sum((after - jnp.array(GOAL)) ** 2) + 1e-12), jnp.array(False)

    return TaskFamily(
        name="point that rotates",
        observation_size=2,
        action_size=2,
        steps=steps,
        draw=lambda key: jax.random.uniform(key, (), minval=-jnp.pi, maxval=jnp.pi),
        reset=lambda key, angle: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0),
        observe=lambda position, angle: position,
        step=step,
    )
