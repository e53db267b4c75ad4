"""Planar hopper: a torso on one leg that hops forward at a commanded speed, with the contact of its file."""

from pathlib import Path

import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import CommandSource, Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

HOPPER_ROBOT = """
<mujoco model="hopper">
  <compiler angle="radian"/>
  <option timestep="0.004"/>
  <default><geom friction="1 0.1 0.1" contype="1" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" conaffinity="1" contype="0"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="pitch" type="hinge" axis="0 1 0"/>
      <geom name="torso" type="capsule" fromto="0 0 -0.2 0 0 0.2" size="0.05" mass="3.6"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="hip" type="hinge" axis="0 1 0" range="-2.6 0.5" limited="true" damping="1" armature="0.5"/>
        <geom name="thigh" type="capsule" fromto="0 0 0 0 0 -0.45" size="0.05" mass="4"/>
        <body name="leg" pos="0 0 -0.45">
          <joint name="knee" type="hinge" axis="0 1 0" range="0 2.6" limited="true" damping="1" armature="0.5"/>
          <geom name="leg" type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04" mass="2.8"/>
          <body name="foot" pos="0 0 -0.5">
            <joint name="ankle" type="hinge" axis="0 1 0" range="-0.8 0.8" limited="true" damping="1" armature="0.5"/>
            <geom name="foot" type="capsule" fromto="-0.13 0 -0.04 0.26 0 -0.04" size="0.06" mass="5.3" friction="2"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="hip" joint="hip" gear="200" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="knee" joint="knee" gear="200" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="ankle" joint="ankle" gear="200" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""
"""Sizes of the hopper of Gymnasium and dm_control; a zero configuration stands upright with its foot on the floor."""


def body_height(now: Instant) -> Array:
    """Height of the torso above its upright stand [m]."""
    return now.q[1]


def hopper_hop(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Hop forward at the commanded speed of 0.5 to 1.5 m/s, for 8 s at 62.5 Hz, without a fall."""

    def standing(simulator: Simulator, draw: Draws) -> State:
        q = jnp.concatenate([jnp.zeros(2), draw.uniform(-0.02, 0.02, (4,))])
        return simulator.initial_state(q=q, v=draw.uniform(-0.02, 0.02, (6,)))

    def speed(now: Instant) -> Array:
        return jnp.exp(-2.0 * (now.v[0] - now.command[0]) ** 2)

    return PolicyTask(
        name="hopper-hop",
        simulator=read_simulator(robot, HOPPER_ROBOT, "hopper.xml", contact=True),
        observations={
            "posture": Observation(lambda now: now.q[1:], unit="m, rad"),
            "velocities": Observation(lambda now: now.v, scale=0.2, unit="m/s, rad/s"),
            "command": Observation(lambda now: now.command, unit="m/s"),
        },
        rewards={
            "speed": Reward(2.0, speed),
            "alive": Reward(1.0, lambda now: jnp.ones(())),
            "effort": Reward(-0.05, lambda now: jnp.sum(now.action**2)),
        },
        terminations={
            "low": lambda now: body_height(now) < -0.45,
            "tilted": lambda now: jnp.abs(now.q[2]) > 0.6,
        },
        reset=standing,
        command=CommandSource(
            1,
            lambda draw: draw.uniform(0.5, 1.5, (1,)),
            names=("forward m/s",),
            interval=(4.0, 4.0),
            measured=lambda now: now.v[:1],
        ),
        period=0.016,
        seconds=8.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
    )
