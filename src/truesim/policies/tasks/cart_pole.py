"""Cart-pole: a cart on a rail and a pole that swings from it, to swing up or to balance."""

import dataclasses
import math
from pathlib import Path

import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

ANGLE_BIAS = math.radians(10.0)
"""Largest error of the measured angle of `cart-pole-bias` [rad]."""
RAIL = 2.4
"""Half the length of the rail [m]."""
CART_POLE_ROBOT = """
<mujoco model="cart-pole">
  <option timestep="0.01"><flag contact="disable"/></option>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="rail" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="box" size="0.15 0.1 0.08" mass="1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0" damping="0.002"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.03" mass="0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="rail" gear="10" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
"""The pole is upright at angle zero; its mass is at half its length."""


def position(now: Instant) -> Array:
    """Place of the cart [m]."""
    return now.q[0]


def pole(now: Instant) -> Array:
    """Cosine and sine of the angle of the pole."""
    return jnp.stack([jnp.cos(now.q[1]), jnp.sin(now.q[1])])


def velocity(now: Instant) -> Array:
    """Velocities of cart [m/s] and pole [rad/s]."""
    return now.v


def upright(now: Instant) -> Array:
    """Height of the pole's tip in [0, 1], times nearness of the cart to the middle, times slowness."""
    height = 0.5 * (1.0 + jnp.cos(now.q[1]))
    near = 0.5 * (1.0 + jnp.exp(-0.5 * now.q[0] ** 2))
    slow = 0.5 * (1.0 + jnp.exp(-0.05 * now.v[1] ** 2))
    return height * near * slow


def effort(now: Instant) -> Array:
    """Square of the action."""
    return jnp.sum(now.action**2)


def near_end(now: Instant) -> Array:
    """Square of the distance beyond three quarters of the rail [m^2]."""
    return jnp.maximum(jnp.abs(now.q[0]) - 0.75 * RAIL, 0.0) ** 2


def left_rail(now: Instant) -> Array:
    """True beyond the end of the rail."""
    return jnp.abs(now.q[0]) > RAIL


def cart_pole_swingup(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Swing the pole up from hanging, and hold it there in the middle of the rail, for 10 s at 50 Hz."""
    simulator = read_simulator(robot, CART_POLE_ROBOT, "cart-pole.xml")

    def hanging(simulator: Simulator, draw: Draws) -> State:
        q = jnp.stack([draw.uniform(-0.5, 0.5), jnp.pi + draw.uniform(-0.5, 0.5)])
        return simulator.initial_state(q=q, v=draw.uniform(-0.2, 0.2, (2,)))

    return PolicyTask(
        name="cart-pole-swingup",
        simulator=simulator,
        observations={
            "position": Observation(position, unit="m"),
            "pole": Observation(pole),
            "velocity": Observation(velocity, scale=0.5, unit="m/s, rad/s"),
        },
        rewards={
            "upright": Reward(1.0, upright),
            "effort": Reward(-0.01, effort),
            "end of the rail": Reward(-10.0, near_end),
        },
        terminations={"left the rail": left_rail},
        reset=hanging,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
        goal=8.0,
    )


def cart_pole_balance(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Hold the pole up from near upright, for 10 s at 50 Hz; an episode ends when it leans by more than 0.5 rad."""
    simulator = read_simulator(robot, CART_POLE_ROBOT, "cart-pole.xml")

    def near_upright(simulator: Simulator, draw: Draws) -> State:
        return simulator.initial_state(q=draw.uniform(-0.1, 0.1, (2,)), v=draw.uniform(-0.1, 0.1, (2,)))

    return PolicyTask(
        name="cart-pole-balance",
        simulator=simulator,
        observations={
            "position": Observation(position, unit="m"),
            "angle": Observation(lambda now: now.q[1], noise=0.01, unit="rad"),
            "velocity": Observation(velocity, unit="m/s, rad/s"),
        },
        rewards={"alive": Reward(1.0, lambda now: jnp.ones(())), "effort": Reward(-0.01, effort)},
        terminations={"left the rail": left_rail, "fell": lambda now: jnp.abs(now.q[1]) > 0.5},
        reset=near_upright,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
        goal=9.5,
    )


def cart_pole_bias(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Hold the pole up while the measured angle is off by up to 10 degrees, differently in every episode."""
    task = cart_pole_balance(robot, randomization)
    biased = dataclasses.replace(task.observations["angle"], bias=ANGLE_BIAS)
    return dataclasses.replace(task, name="cart-pole-bias", observations={**task.observations, "angle": biased})
