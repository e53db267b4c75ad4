"""Furuta pendulum (Quanser Qube): a motor turns an arm, and the pendulum at its end is to swing up and stay there."""

from pathlib import Path

import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

ARM_RANGE = 2.2
"""Largest angle of the arm [rad]; its cable ends there."""
FURUTA_ROBOT = """
<mujoco model="qube">
  <option timestep="0.005"><flag contact="disable"/></option>
  <worldbody>
    <body name="arm" pos="0 0 0.1">
      <joint name="arm" type="hinge" axis="0 0 1" damping="0.00021" armature="0.000004" frictionloss="0.00001"/>
      <geom type="capsule" fromto="0 0 0 0.085 0 0" size="0.003" mass="0.095"/>
      <body name="pendulum" pos="0.085 0 0">
        <joint name="pendulum" type="hinge" axis="1 0 0" damping="0.00002"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.129" size="0.004" mass="0.024"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="arm" gear="0.005" ctrllimited="true" ctrlrange="-4.5 4.5"/></actuator>
</mujoco>
"""
"""Controls are volts: torque k/R u with k = 0.042 N m/A and R = 8.4 ohm, whose back-EMF is the arm's damping k^2/R.
The pendulum hangs at angle zero."""


def angles(now: Instant) -> Array:
    """Angle of the arm [rad], cosine and sine of the pendulum's."""
    return jnp.stack([now.q[0], jnp.cos(now.q[1]), jnp.sin(now.q[1])])


def upright(now: Instant) -> Array:
    """Height of the pendulum in [0, 1], times nearness of the arm to the front, times slowness."""
    height = 0.5 * (1.0 - jnp.cos(now.q[1]))
    near = 0.5 * (1.0 + jnp.exp(-(now.q[0] ** 2)))
    slow = 0.5 * (1.0 + jnp.exp(-0.01 * now.v[1] ** 2))
    return height * near * slow


def furuta_swingup(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Swing the pendulum up from anywhere, and hold it there with the arm in front, for 6 s at 100 Hz."""

    def anywhere(simulator: Simulator, draw: Draws) -> State:
        q = jnp.stack([draw.uniform(-0.3, 0.3), draw.uniform(-jnp.pi, jnp.pi)])
        return simulator.initial_state(q=q, v=draw.uniform(-0.5, 0.5, (2,)))

    return PolicyTask(
        name="furuta-swingup",
        simulator=read_simulator(robot, FURUTA_ROBOT, "qube.xml"),
        observations={
            "angles": Observation(angles, unit="rad"),
            "velocities": Observation(lambda now: now.v, scale=0.1, unit="rad/s"),
        },
        rewards={
            "upright": Reward(1.0, upright),
            "alive": Reward(0.2, lambda now: jnp.ones(())),
            "arm": Reward(-0.05, lambda now: now.q[0] ** 2),
            "effort": Reward(-0.01, lambda now: jnp.sum(now.action**2)),
            "change of action": Reward(-0.01, lambda now: jnp.sum((now.action - now.previous) ** 2)),
        },
        terminations={"cable": lambda now: jnp.abs(now.q[0]) > ARM_RANGE},
        reset=anywhere,
        period=0.01,
        seconds=6.0,
        max_speed=300.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
        goal=6.0,
    )
