"""A cart with two DC motors that is to drive straight and far: battery, payload at the side and friction are unknown.

The policy sees the speeds of its wheels and sets the duty of each motor; it does not see where it goes. A payload at
the side loads one wheel more and moves the center of mass, so that equal duties turn the cart.
"""

import jax
import jax.numpy as jnp

from truesim.policies.meta import TaskFamily

PERIOD, STEPS = 0.02, 150
"""Control period [s] and steps of an episode of 3 s."""
MASS, WIDTH, WHEEL = 2.0, 0.24, 0.05
"""Mass [kg], distance of the wheels [m], their radius [m]."""
MOTOR, RESISTANCE, GEARED_INERTIA = 0.22, 4.0, 4e-4
"""Torque constant at the wheel [N m/A], resistance [ohm], inertia of a motor at its wheel [kg m^2]."""
GRAVITY, DRIFT_COST = 9.81, 2.0
"""[m/s^2], and the cost of a heading error [m/s per rad]."""
TRAINING = ((12.0, 16.8), (-0.2, 0.2), (0.01, 0.03))
"""Training ranges of the battery [V], of a payload at the left (negative) or right side [kg], and of friction."""
REAL_DRIVE = (10.0, 0.5, 0.02)
"""A weak battery, and 500 g at the right side."""


def accelerations(state, duty, hidden):
    """Forward [m/s^2] and yaw acceleration [rad/s^2], right-handed with the left side positive."""
    voltage, payload, rolling = hidden
    speed, rate = state[3], state[4]
    total, side = MASS + jnp.abs(payload), -jnp.sign(payload) * WIDTH / 2
    center = jnp.abs(payload) * side / total  # lateral position of the center of mass
    wheels = jnp.stack([speed - rate * WIDTH / 2, speed + rate * WIDTH / 2])  # left, right
    current = (voltage * jnp.clip(duty, -1.0, 1.0) - MOTOR * wheels / WHEEL) / RESISTANCE
    share = 0.5 + jnp.array([1.0, -1.0]) * center / WIDTH
    force = MOTOR * current / WHEEL - rolling * total * GRAVITY * share * jnp.tanh(wheels / 0.02)
    inertia = MASS * (0.3**2 + 0.2**2) / 12 + jnp.abs(payload) * side**2
    added = 2.0 * GEARED_INERTIA / WHEEL**2
    turn = force[1] * (WIDTH / 2 + center) - force[0] * (WIDTH / 2 - center)
    return jnp.sum(force) / (total + added), turn / (inertia + added * WIDTH**2 / 4)


def drive_straight() -> TaskFamily:
    """Drive along x for 3 s: progress counts, and a heading off the course costs."""

    def step(state, action, hidden):
        forward, turn = accelerations(state, action, hidden)
        speed, rate = state[3] + PERIOD * forward, state[4] + PERIOD * turn
        heading = state[2] + PERIOD * rate
        moved = PERIOD * speed * jnp.stack([jnp.cos(heading), jnp.sin(heading)])
        after = jnp.concatenate([state[:2] + moved, jnp.stack([heading, speed, rate])])
        return after, moved[0] - PERIOD * DRIFT_COST * jnp.abs(heading), jnp.array(False)

    def draw(key):
        low, high = jnp.array(TRAINING).T
        return jax.random.uniform(key, (3,), minval=low, maxval=high)

    def observe(state, hidden):
        half = state[4] * WIDTH / 2
        return jnp.stack([state[3] - half, state[3] + half])

    return TaskFamily(
        name="differential drive",
        observation_size=2,
        action_size=2,
        steps=STEPS,
        draw=draw,
        reset=lambda key, hidden: jnp.zeros(5),
        observe=observe,
        step=step,
    )


def final_state(act, hidden):
    """Place, heading and speeds at the end of an episode of a deterministic policy."""
    family = drive_straight()

    def advance(state, _):
        return family.step(state, act(family.observe(state, hidden)), hidden)[0], None

    return jax.lax.scan(advance, jnp.zeros(5), None, length=STEPS)[0]
