"""Acrobot: two links that hang from a passive joint, and a motor between them; swing both up."""

from pathlib import Path

import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

ACROBOT_ROBOT = """
<mujoco model="acrobot">
  <option timestep="0.01"><flag contact="disable"/></option>
  <worldbody>
    <body name="upper" pos="0 0 2">
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="0.5"/>
      <body name="lower" pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow" ctrllimited="true" ctrlrange="-4 4"/></actuator>
</mujoco>
"""
"""Both links hang at angles zero."""


def angles(now: Instant) -> Array:
    """Cosines and sines of both joints."""
    return jnp.concatenate([jnp.cos(now.q), jnp.sin(now.q)])


def height(now: Instant) -> Array:
    """Height of the tip in [0, 1]: 1 if both links are upright."""
    return 0.25 * (2.0 - jnp.cos(now.q[0]) - jnp.cos(now.q[0] + now.q[1]))


def acrobot_swingup(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Swing both links up from hanging, and keep them there, for 8 s at 50 Hz."""

    def hanging(simulator: Simulator, draw: Draws) -> State:
        return simulator.initial_state(q=draw.uniform(-0.2, 0.2, (2,)), v=draw.uniform(-0.2, 0.2, (2,)))

    return PolicyTask(
        name="acrobot-swingup",
        simulator=read_simulator(robot, ACROBOT_ROBOT, "acrobot.xml"),
        observations={
            "angles": Observation(angles),
            "velocities": Observation(lambda now: now.v, scale=0.2, unit="rad/s"),
        },
        rewards={
            "height": Reward(1.0, lambda now: height(now) ** 2 * (0.5 + 0.5 * jnp.exp(-0.05 * jnp.sum(now.v**2)))),
            "effort": Reward(-0.01, lambda now: jnp.sum(now.action**2)),
        },
        reset=hanging,
        seconds=8.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
        goal=4.5,
    )
