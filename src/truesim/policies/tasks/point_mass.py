"""Points in the plane whose goal or frame is hidden: tests of adaptation and of memory.

- `point-navigation`: the goal is anywhere in a square (Song et al. 2020, Nav2D);
- `point-corners`: the goal is one of four corners, and nothing is felt far from it;
- `point-rotation`: the goal is known, but the directions of the motors are turned by a hidden angle (Yang et al. 2020).
"""

import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization, from_samples
from truesim.policies.task import CommandSource, Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

POINT_PERIOD = 0.1
"""Time between actions [s]; rewards are per action."""
CORNER = 2.0
"""Coordinates of the corners [m]."""
POINT_GOAL = (1.0, 0.0)
"""Goal of the rotated point [m]."""
POINT_ROBOT = """
<mujoco model="point">
  <option timestep="0.01" gravity="0 0 0"><flag contact="disable"/></option>
  <worldbody>
    <body name="table">
      <body name="point">
        <joint name="x" type="slide" axis="1 0 0"/>
        <joint name="y" type="slide" axis="0 1 0"/>
        <geom type="sphere" size="0.05" mass="1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <velocity name="x" joint="x" kv="100" ctrllimited="true" ctrlrange="-1 1"/>
    <velocity name="y" joint="y" kv="100" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""
"""Servos follow a velocity within 10 ms, so that an action moves the point by up to 0.1 m along each axis."""


def place(now: Instant) -> Array:
    """Place of the point in the world [m]."""
    return _turn(now.simulator, now.q)


def distance(now: Instant) -> Array:
    """Distance from the goal [m]."""
    return jnp.sqrt(jnp.sum((place(now) - now.command) ** 2) + 1e-12)


def _turn(simulator: Simulator, q: Array, backwards: bool = False) -> Array:
    """From coordinates of the table to the world, or back."""
    w, z = jnp.asarray(simulator.model.bodies.orientation)[0, jnp.array([0, 3])]
    c, s = w * w - z * z, 2.0 * w * z * (-1.0 if backwards else 1.0)
    return jnp.stack([c * q[0] - s * q[1], s * q[0] + c * q[1]])


def _point_task(
    name: str, robot: str | Path | None, goal: CommandSource, reward: Reward, reset_range: float, **fields: object
) -> PolicyTask:
    def reset(simulator: Simulator, draw: Draws) -> State:
        start = draw.uniform(-reset_range, reset_range, (2,))
        return simulator.initial_state(q=_turn(simulator, start, backwards=True), v=jnp.zeros(2))

    return PolicyTask(
        name=name,
        simulator=read_simulator(robot, POINT_ROBOT, "point.xml"),
        observations={
            "place": Observation(place, unit="m"),
            "goal": Observation(lambda now: now.command, unit="m", privileged=True),
        },
        rewards={"goal": reward},
        reset=reset,
        command=goal,
        period=POINT_PERIOD,
        robot=robot_record(robot),
        **fields,  # type: ignore[arg-type]
    )


def point_navigation(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Go from the origin to a hidden goal in [-1, 1]^2; the reward of an action is minus the squared distance."""
    goal = CommandSource(2, lambda draw: draw.uniform(-1.0, 1.0, (2,)), names=("x m", "y m"))
    return _point_task(
        "point-navigation",
        robot,
        goal,
        Reward(-1.0 / POINT_PERIOD, lambda now: distance(now) ** 2),
        0.0,
        terminations={"arrived": lambda now: distance(now) ** 2 < 0.01},
        seconds=10.0,
        randomization=randomization or Randomization(),
    )


def point_corners(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Go from the origin to one of four corners; the reward is -4 but within 2 m of the right one."""

    def corner(draw: Draws) -> Array:
        return CORNER * jnp.where(draw.uniform(0.0, 1.0, (2,)) < 0.5, -1.0, 1.0)

    return _point_task(
        "point-corners",
        robot,
        CommandSource(2, corner, names=("x m", "y m")),
        Reward(1.0 / POINT_PERIOD, lambda now: -4.0 + jnp.maximum(0.0, 4.0 - distance(now) ** 2)),
        0.0,
        seconds=10.0,
        randomization=randomization or Randomization(),
    )


def point_rotation(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Go from a random place to (1, 0) while the motors' directions are turned by a hidden angle in [-pi, pi]."""
    half = 0.5 * np.linspace(-math.pi, math.pi, 720, endpoint=False)
    turned = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    hidden = from_samples({"bodies/table.orientation": turned})
    return _point_task(
        "point-rotation",
        robot,
        CommandSource(2, lambda draw: jnp.asarray(POINT_GOAL), names=("x m", "y m")),
        Reward(-1.0 / POINT_PERIOD, distance),
        1.0,
        seconds=3.0,
        randomization=hidden.merged(randomization or Randomization()),
    )
