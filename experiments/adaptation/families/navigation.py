"""Navigation of a point to a hidden goal with linear policies (Song et al. 2020)."""

import jax
import jax.numpy as jnp

from truesim.policies.meta import TaskFamily

SPEED = 0.1
"""Largest displacement of a step and axis [m]."""
LINEAR_SIZE = 6
"""Parameters of a linear policy: a 2 x 2 gain and an offset."""


def linear_action(theta, observation):
    """Action of a linear policy."""
    return theta[:4].reshape(2, 2) @ observation + theta[4:]


def navigation_2d(steps: int = 100) -> TaskFamily:
    """Nav2D: the goal is uniform in [-1, 1]^2, the reward minus its squared distance; within 0.1 m the episode ends."""

    def step(position, action, goal):
        after = position + jnp.clip(action, -SPEED, SPEED)
        reward = -jnp.sum((after - goal) ** 2)
        return after, reward, reward >= -0.01

    return _navigation("Nav2D", steps, step, lambda key: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0))


def four_corners(steps: int = 100) -> TaskFamily:
    """Four corners: one of the goals (+-2, +-2), with a reward only within 2 m of it and -4 elsewhere."""

    def step(position, action, goal):
        after = position + jnp.clip(action, -SPEED, SPEED)
        return after, -4.0 + jnp.maximum(0.0, 4.0 - jnp.sum((after - goal) ** 2)), jnp.array(False)

    def draw(key):
        return 2.0 * (2.0 * jax.random.bernoulli(key, 0.5, (2,)) - 1.0)

    return _navigation("four corners", steps, step, draw)


def _navigation(name, steps, step, draw):
    return TaskFamily(
        name=name,
        observation_size=2,
        action_size=2,
        steps=steps,
        draw=draw,
        reset=lambda key, goal: jnp.zeros(2),
        observe=lambda position, goal: position,
        step=step,
    )
