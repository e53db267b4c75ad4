"""Pendulum: a weak motor swings it up and holds it upright."""

from pathlib import Path

import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

PENDULUM_ROBOT = """
<mujoco model="pendulum">
  <option timestep="0.01"><flag contact="disable"/></option>
  <worldbody>
    <body name="rod" pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.02"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge" ctrllimited="true" ctrlrange="-1.2 1.2"/></actuator>
</mujoco>
"""
"""Upright at angle zero. Gravity needs 2.5 N m at the horizontal, twice what the motor has."""


def angle(now: Instant) -> Array:
    """Cosine and sine of the angle."""
    return jnp.stack([jnp.cos(now.q[0]), jnp.sin(now.q[0])])


def upright(now: Instant) -> Array:
    """Height of the tip in [0, 1], less for motion."""
    return 0.5 * (1.0 + jnp.cos(now.q[0])) * jnp.exp(-0.02 * now.v[0] ** 2)


def pendulum_swingup(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Swing a pendulum up from anywhere, and hold it there, for 6 s at 50 Hz."""

    def anywhere(simulator: Simulator, draw: Draws) -> State:
        return simulator.initial_state(q=draw.uniform(-jnp.pi, jnp.pi, (1,)), v=draw.uniform(-1.0, 1.0, (1,)))

    return PolicyTask(
        name="pendulum-swingup",
        simulator=read_simulator(robot, PENDULUM_ROBOT, "pendulum.xml"),
        observations={
            "angle": Observation(angle),
            "velocity": Observation(lambda now: now.v, scale=0.2, unit="rad/s"),
        },
        rewards={
            "upright": Reward(1.0, upright),
            "effort": Reward(-0.01, lambda now: jnp.sum(now.action**2)),
        },
        reset=anywhere,
        seconds=6.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
        goal=4.3,
    )
