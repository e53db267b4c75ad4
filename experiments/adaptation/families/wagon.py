"""Balance of a cart-pole: a training simulator with four parameters, and a "real" one that differs in structure.

The real one has parameters outside of the training range, half the time step, latency, a bias of the angle and
friction of the cart.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

GRAVITY, PERIOD, STEPS = 9.81, 0.02, 250
"""Gravity [m/s^2], control period [s], steps of an episode."""
LIMIT = 10.0
"""Largest force that is asked for [N]."""
LOW, HIGH = np.array([0.05, 0.25, 0.5, 0.6]), np.array([0.4, 0.8, 1.5, 1.4])
"""Training range of pole mass [kg], half length [m], cart mass [kg] and gain of the force."""
NOMINAL = np.array([0.1, 0.5, 1.0, 1.0])
STATE_COST, FORCE_COST = np.array([1.0, 0.1, 5.0, 0.1]), 0.002
"""Weights of squared states [1/m^2, s^2/m^2, 1/rad^2, s^2/rad^2] and of the squared force [1/N^2]."""
FALLEN_COST = 5.0
"""Largest cost of a step, which a fallen pole has."""


class Wagon(NamedTuple):
    """A cart with a pole."""

    parameters: np.ndarray
    substeps: int = 1
    """Physics steps of a control period."""
    latency: int = 0
    """Delay of the force [physics steps]."""
    bias: float = 0.0
    """Bias of the measured angle [rad]."""
    friction: float = 0.0
    """Coulomb friction of the cart [N]."""


REAL = Wagon(np.array([0.2, 0.9, 0.8, 0.45]), substeps=4, latency=8, bias=0.03, friction=0.3)
"""Length and gain are outside of the training range; latency of 40 ms."""


def accelerate(parameters, state, force, friction):
    """Time derivative of position, angle and their rates."""
    mass, half, cart, gain = parameters
    _, speed, angle, rate = state
    total, sine, cosine = cart + mass, jnp.sin(angle), jnp.cos(angle)
    push = (gain * force - friction * jnp.tanh(speed / 0.01) + mass * half * rate**2 * sine) / total
    turn = (GRAVITY * sine - cosine * push) / (half * (4 / 3 - mass * cosine**2 / total))
    return jnp.stack([speed, push - mass * half * turn * cosine / total, rate, turn])


def episode(wagon: Wagon, gains, key):
    """Return of linear feedback from a random start: minus the mean cost of a step."""
    step = PERIOD / wagon.substeps
    start = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0) * jnp.array([0.2, 0.2, 0.15, 0.2])

    def control(carry, _):
        state, line = carry
        force = jnp.clip(-gains @ (state + jnp.array([0.0, 0.0, wagon.bias, 0.0])), -LIMIT, LIMIT)
        for _ in range(wagon.substeps):
            line = jnp.concatenate([line[1:], force[None]])
            rates = accelerate(wagon.parameters, state, line[0], wagon.friction)
            after = state[1::2] + step * rates[1::2]
            state = jnp.stack([state[0] + step * after[0], after[0], state[2] + step * after[1], after[1]])
            state = jnp.clip(state, -10.0, 10.0)
        cost = jnp.sum(jnp.array(STATE_COST) * state**2) + FORCE_COST * force**2
        return (state, line), jnp.minimum(jnp.where(jnp.abs(state[2]) > 0.8, FALLEN_COST, cost), FALLEN_COST)

    costs = jax.lax.scan(control, (start, jnp.zeros(wagon.latency + 1)), None, length=STEPS)[1]
    return -jnp.mean(costs)


def feedback_for(parameters: np.ndarray) -> np.ndarray:
    """Universal policy: gains of linear-quadratic feedback for the parameters that it is told."""
    zero = jnp.zeros(4)
    continuous = jax.jacobian(lambda s: accelerate(jnp.asarray(parameters), s, 0.0, 0.0))(zero)
    push = jax.jacobian(lambda f: accelerate(jnp.asarray(parameters), zero, f, 0.0))(0.0)
    A, B = np.eye(4) + PERIOD * np.asarray(continuous, float), PERIOD * np.asarray(push, float)[:, None]
    P = scipy.linalg.solve_discrete_are(A, B, np.diag(STATE_COST), np.array([[FORCE_COST]]))
    return np.linalg.solve(FORCE_COST + B.T @ P @ B, B.T @ P @ A)[0]
