"""The cart-pole, its swing-up as a task, and a fit of its masses and length to short segments of a run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from truesim.control import Command, Cost, CustomQuantity, JointVelocity, Knot, Posture, Task
from truesim.files.robots import loads
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.kernels import compile  # noqa: A004

PERIOD = 0.02
"""Time step of simulation and control [s]."""
XML = """
<mujoco><compiler angle="radian"/><option timestep="0.02"><flag contact="disable"/></option><worldbody>
  <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <body name="pole"><joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -.5" mass=".3" diaginertia="1e-4 1e-4 1e-4"/></body></body></worldbody>
<actuator><motor name="push" joint="slide" ctrlrange="-15 15" ctrllimited="true"/></actuator></mujoco>"""
PATHS = ("bodies/cart.mass", "bodies/pole.mass", "bodies/pole.com[2]")
"""Unknown numbers: two masses [kg], and the height of the pole's center of mass [m]."""
TRUTH = np.array([1.0, 0.3, -0.5])
HORIZON = 75
SEGMENT = 8
"""Steps of a segment; longer segments tell more about the parameters and suffer more from a noisy initial state."""


def upright(knot: Knot) -> jax.Array:
    """Zero if the pole points up, whichever way it went."""
    angle = knot.state.q[1]
    return jnp.stack([jnp.sin(angle), 1 + jnp.cos(angle)])


def simulator(values: np.ndarray = TRUTH) -> Simulator:
    """The cart-pole with these masses and this length."""
    return Simulator.of(loads(XML)).replace(dict(zip(PATHS, values, strict=True)))


def swing_up(values: np.ndarray) -> Task:
    """Swing-up with a model that has these numbers."""
    costs = {
        "effort": Cost(Command(), 1e-3),
        "cart": Cost(Posture([0.0, 0.0], joints=("slide",)), 0.5),
        "angle": Cost(CustomQuantity(upright), 2.0),
        "velocity": Cost(JointVelocity(), 0.02),
        "end": Cost(CustomQuantity(upright), 30.0, "final"),
        "rest": Cost(JointVelocity(), 2.0, "final"),
    }
    return Task(simulator(values), HORIZON, costs)


@dataclasses.dataclass
class Fitter:
    """Gauss-Newton fit of the logarithms of all unknown numbers, with a weak prior at the first ones."""

    first: np.ndarray
    prior: float = 1.0
    """Standard deviation of the prior, as a factor's logarithm."""

    def __post_init__(self) -> None:
        base = simulator(self.first)
        first = self.first

        def residuals(factors: jax.Array, x: jax.Array, u: jax.Array, measured: jax.Array) -> jax.Array:
            values = jnp.asarray(first) * jnp.exp(factors)
            own = base.replace(dict(zip(PATHS, values, strict=True)))
            state, found = own.initial_state(q=x[:2], v=x[2:]), []
            for k in range(SEGMENT):
                state, _ = own.step(state, u[k])
                found.append(jnp.concatenate([state.q, state.v]) - measured[k])
            return jnp.concatenate(found)

        def both(*args: jax.Array) -> tuple[jax.Array, jax.Array]:
            return residuals(*args), jax.jacfwd(residuals)(*args)

        shapes = np.zeros(3), np.zeros(4), np.zeros((SEGMENT, 1)), np.zeros((SEGMENT, 4))
        self._kernel = compile(both, *shapes)
        self.factors = np.zeros(3)

    def fit(self, x: np.ndarray, u: np.ndarray, noise: np.ndarray, iterations: int = 4) -> np.ndarray:
        """Numbers that explain measured states and commands best.

        Args:
            x: Measured states, one row a sample.
            u: Commands, one row a sample.
            noise: Standard deviation of each component of a state.
            iterations: Gauss-Newton iterations.
        """
        starts = np.arange(0, len(u) - SEGMENT, 2)
        if len(starts) < 2:
            return self.first * np.exp(self.factors)
        rows = starts[:, None] + np.arange(SEGMENT)
        weights = np.tile(1 / noise, SEGMENT)
        for _ in range(iterations):
            r, J = self._kernel(self.factors, x[starts], u[rows], x[rows + 1])
            r, J = (r * weights).ravel(), (J * weights[:, None]).reshape(-1, 3)
            H = J.T @ J + np.eye(3) / self.prior**2
            step = np.linalg.solve(H, -(J.T @ r + self.factors / self.prior**2))
            self.factors = np.clip(self.factors + np.clip(step, -0.5, 0.5), -1.5, 1.5)
        return self.first * np.exp(self.factors)
