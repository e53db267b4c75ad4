"""Balance of a cart-pole whose angle sensor has a hidden bias, on a short track (Yang et al. 2019)."""

import jax
import jax.numpy as jnp

from truesim.policies.meta import TaskFamily

GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5
"""As in gymnasium's CartPole [m/s^2, kg, kg, m]."""
PERIOD, FORCE = 0.02, 10.0
"""Time step [s], and the force of an action of 1 [N]."""
ANGLE_LIMIT = jnp.deg2rad(12.0).item()
"""Angle at which an episode ends [rad]."""
SCALES = (0.1, 0.5, 0.1, 0.5)
"""Size of each observation [m, m/s, rad, rad/s], by which it is divided."""


def advance(state, force):
    """State after one explicit Euler step."""
    x, speed, angle, rate = state
    total, moment = CART_MASS + POLE_MASS, POLE_MASS * HALF_LENGTH
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (force + moment * rate**2 * sine) / total
    turn = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / total))
    slide = push - moment * turn * cosine / total
    return jnp.stack([x + PERIOD * speed, speed + PERIOD * slide, angle + PERIOD * rate, rate + PERIOD * turn])


def cart_pole_bias(track: float = 0.2, bias: float = 10.0, steps: int = 500) -> TaskFamily:
    """Balance for 500 steps when the measured angle is off by a bias; an episode ends off the track or past 12 degrees.

    Args:
        track: Largest distance from the center [m].
        bias: Largest bias [degrees].
        steps: Length of an episode.
    """

    def step(state, action, hidden):
        after = advance(state, FORCE * jnp.clip(action[0], -1.0, 1.0))
        fallen = (jnp.abs(after[0]) > track) | (jnp.abs(after[2]) > ANGLE_LIMIT)
        return after, jnp.ones(()), fallen

    return TaskFamily(
        name="cart-pole with angle bias",
        observation_size=4,
        action_size=1,
        steps=steps,
        draw=lambda key: jnp.deg2rad(jax.random.uniform(key, (), minval=-bias, maxval=bias)),
        reset=lambda key, hidden: jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05),
        observe=lambda state, hidden: (state + hidden * jnp.array([0.0, 0.0, 1.0, 0.0])) / jnp.array(SCALES),
        step=step,
    )
