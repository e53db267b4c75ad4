"""Estimation of the lengths of a double pendulum from its joint angles.

Two links with a point mass at each end are released from the horizontal. The settings are those of the length
recovery in Tiny Differentiable Simulator (`ceres_estimation.cpp`): lengths of 3 and 4 m, 50 steps of 1/60 s, bounds 0.1
and 10 m.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Measured, best_seconds, elapsed
from truesim.core.typing import Array, Float
from truesim.files.robots import loads
from truesim.optimize import BasinHoppingOptions, Residuals, basin_hopping
from truesim.physics.model import paths
from truesim.physics.simulation import Simulator, State, rollout

ROBOT = """
<mujoco model="two_links"><option timestep="0.016666666666666666" integrator="Euler"/>
  <worldbody><body name="upper"><joint name="shoulder" axis="0 1 0"/>
    <inertial pos="3 0 0" mass="1" diaginertia="1e-3 1e-3 1e-3"/>
    <body name="lower" pos="3 0 0"><joint name="elbow" axis="0 1 0"/>
      <inertial pos="4 0 0" mass="1" diaginertia="1e-3 1e-3 1e-3"/></body></body></worldbody></mujoco>"""
TRUTH = np.array([3.0, 4.0])
"""Lengths [m]."""
LOW, HIGH = 0.1, 10.0
STEPS = 50


def angles(lengths: Float[Array, "2"]) -> Float[Array, "steps 2"]:
    """Joint angles after each step [rad]."""
    model = loads(ROBOT)
    along = jnp.array([1.0, 0.0, 0.0])
    model = paths.write(model, "bodies/upper.com", lengths[0] * along)
    model = paths.write(model, "bodies/lower.position", lengths[0] * along)
    model = paths.write(model, "bodies/lower.com", lengths[1] * along)
    start = State(jnp.zeros(2), jnp.zeros(2), jnp.zeros(()))
    _, q = rollout(Simulator.of(model), start, jnp.zeros((STEPS, 0)), keep=lambda state, _: state.q, backend="xla")
    return q


def problem(threads: int = 1) -> Residuals:
    """Objective in the lengths: deviation of the angles from those of the true lengths."""
    measured = np.asarray(angles(jnp.asarray(TRUTH)))
    bounds = np.full(2, LOW), np.full(2, HIGH)
    return Residuals(lambda theta: jnp.ravel(angles(theta) - measured), *bounds, steps=STEPS, threads=threads)


def starts(count: int) -> Float[np.ndarray, "starts 2"]:
    """Grid of `count` by `count` lengths between the bounds [m]."""
    axis = np.linspace(LOW, HIGH, count)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def solve(patience: float) -> Measured:
    """Time per solve of a batch of solves from a grid."""
    objective, grid = problem(), starts(60)
    settings = BasinHoppingOptions(chains=len(grid), solves=len(grid))
    compilation = elapsed(lambda: objective.equations(grid[:1]))
    seconds = best_seconds(lambda: basin_hopping(objective, settings, starts=grid), patience)
    return Measured(seconds / len(grid), compilation)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {"solve": solve}
