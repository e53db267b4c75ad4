"""Differential drive: a cart on two wheels with a DC motor each, which follows commands of speed and yaw rate."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array
from truesim.math.spatial.rotation import quaternion_matrix
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import CommandSource, Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

WHEEL_RADIUS = 0.05
"""[m]"""
DRIVE_LOW, DRIVE_HIGH = np.array([-0.3, -1.5]), np.array([0.8, 1.5])
"""Range of commands: forward [m/s], yaw [rad/s]."""
DRIVE_ROBOT = """
<mujoco model="drive">
  <option timestep="0.005"/>
  <default>
    <geom contype="1" conaffinity="0"/>
    <joint damping="0.0121" armature="0.0004"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" contype="0" conaffinity="1"/>
    <body name="base" pos="0 0 0.05">
      <freejoint name="root"/>
      <geom name="base" type="box" size="0.12 0.08 0.02" mass="1.5"/>
      <geom name="caster front" type="sphere" size="0.02" pos="0.1 0 -0.03" mass="0.05" priority="1" friction="0.02"/>
      <geom name="caster rear" type="sphere" size="0.02" pos="-0.1 0 -0.03" mass="0.05" priority="1" friction="0.02"/>
      <body name="left wheel" pos="0 0.12 0">
        <joint name="left" type="hinge" axis="0 1 0"/>
        <geom name="left" type="sphere" size="0.05" mass="0.2" friction="1 0.005 0"/>
      </body>
      <body name="right wheel" pos="0 -0.12 0">
        <joint name="right" type="hinge" axis="0 1 0"/>
        <geom name="right" type="sphere" size="0.05" mass="0.2" friction="1 0.005 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="left" joint="left" gear="0.055" ctrllimited="true" ctrlrange="-12 12"/>
    <motor name="right" joint="right" gear="0.055" ctrllimited="true" ctrlrange="-12 12"/>
  </actuator>
</mujoco>
"""
"""Controls are volts: a motor constant k of 0.22 N m/A at the wheel and R = 4 ohm give torques k/R u, damping k^2/R."""


def forward_speed(now: Instant) -> Array:
    """Speed along the cart's own axis [m/s]."""
    return (quaternion_matrix(now.q[3:7]).T @ now.v[:3])[0]


def motion(now: Instant) -> Array:
    """Speed [m/s] and yaw rate [rad/s]."""
    return jnp.stack([forward_speed(now), now.v[5]])


def drive_command(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Follow commands of speed and yaw rate from wheel encoders and a gyroscope, for 6 s at 50 Hz."""

    def at_rest(simulator: Simulator, draw: Draws) -> State:
        yaw, zero = draw.uniform(-jnp.pi, jnp.pi), jnp.zeros(())
        base = jnp.stack([zero, zero, zero + WHEEL_RADIUS, jnp.cos(yaw / 2), zero, zero, jnp.sin(yaw / 2)])
        return simulator.initial_state(q=jnp.concatenate([base, jnp.zeros(2)]), v=jnp.zeros(8))

    def following(now: Instant) -> Array:
        error = motion(now) - now.command
        return jnp.exp(-10.0 * error[0] ** 2 - 2.0 * error[1] ** 2)

    return PolicyTask(
        name="drive-command",
        simulator=read_simulator(robot, DRIVE_ROBOT, "drive.xml", contact=True),
        observations={
            "wheels": Observation(lambda now: now.v[6:], scale=0.1, noise=0.2, unit="rad/s"),
            "gyro": Observation(lambda now: now.v[5], noise=0.05, unit="rad/s"),
            "command": Observation(lambda now: now.command, unit="m/s, rad/s"),
            "last action": Observation(lambda now: now.action),
        },
        rewards={
            "following": Reward(1.0, following),
            "effort": Reward(-0.01, lambda now: jnp.sum(now.action**2)),
        },
        reset=at_rest,
        command=CommandSource(
            2,
            lambda draw: draw.uniform(DRIVE_LOW, DRIVE_HIGH, (2,)),
            names=("forward m/s", "yaw rad/s"),
            interval=(2.0, 3.0),
            measured=motion,
        ),
        seconds=6.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
    )
