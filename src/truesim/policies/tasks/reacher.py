"""Reacher: an arm of seven servos, with proportions of Franka's Panda, brings its hand to a commanded place."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array
from truesim.physics.dynamics import body_poses
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization
from truesim.policies.task import Actions, CommandSource, Instant, Observation, PolicyTask, Reward
from truesim.policies.tasks.robot_files import read_simulator, robot_record

REACHER_HOME = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.7, 0.0])
"""Configuration with the hand in front [rad]."""
REACHER_STEP = 1.2
"""Largest distance of a servo's target from home, per action [rad]."""
HAND = (0.0, 0.0, 0.1)
"""Place of the palm in the last body [m]."""
PLACE_LOW, PLACE_HIGH = np.array([0.35, -0.3, 0.25]), np.array([0.65, 0.3, 0.7])
"""Range of commanded places [m]."""
_LINKS = (
    ("link1", "0 0 0.333", "0 0 1", 3.0, "0 0 -0.1", "-2.9 2.9", 87),
    ("link2", "0 0 0", "0 1 0", 3.2, "0 0 0.1", "-1.8 1.8", 87),
    ("link3", "0 0 0.316", "0 0 1", 3.2, "0.03 0 -0.06", "-2.9 2.9", 87),
    ("link4", "0.0825 0 0", "0 -1 0", 2.4, "-0.03 0 0.06", "-3.1 0.0", 87),
    ("link5", "-0.0825 0 0.384", "0 0 1", 2.3, "0 0 -0.1", "-2.9 2.9", 12),
    ("link6", "0 0 0", "0 -1 0", 1.6, "0.05 0 0", "0 3.7", 12),
    ("link7", "0.088 0 0", "0 0 -1", 1.2, "0 0 0.08", "-2.9 2.9", 12),
)


def _robot() -> str:
    """MJCF text: a chain of bodies and position servos with gravity compensation left to them."""
    bodies, ends, servos = "", "", ""
    for k, (name, place, axis, mass, com, limits, torque) in enumerate(_LINKS, 1):
        stiffness, damping = (400, 40) if torque > 50 else (120, 12)
        bodies += (
            f'<body name="{name}" pos="{place}"><joint name="joint{k}" type="hinge" axis="{axis}" range="{limits}" '
            f'limited="true" damping="1" armature="0.1"/>'
            f'<geom type="capsule" size="0.05 0.06" pos="{com}" mass="{mass}"/>'
        )
        ends += "</body>"
        servos += (
            f'<position name="servo{k}" joint="joint{k}" kp="{stiffness}" kv="{damping}" '
            f'forcelimited="true" forcerange="-{torque} {torque}" ctrllimited="true" ctrlrange="{limits}"/>'
        )
    return (
        '<mujoco model="reacher"><compiler angle="radian"/>'
        '<option timestep="0.005"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}{ends}</worldbody><actuator>{servos}</actuator></mujoco>"
    )


REACHER_ROBOT = _robot()


def hand(now: Instant) -> Array:
    """Place of the palm [m]."""
    poses = body_poses(now.simulator.model, now.q)
    return poses.rotation[-1] @ jnp.asarray(HAND) + poses.translation[-1]


def distance(now: Instant) -> Array:
    """Distance of the palm from the commanded place [m]."""
    return jnp.sqrt(jnp.sum((hand(now) - now.command) ** 2) + 1e-8)


def arm_reach(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Bring the palm to a place in front of the arm, which changes after 2 s, for 4 s at 50 Hz."""

    def near_home(simulator: Simulator, draw: Draws) -> State:
        return simulator.initial_state(q=REACHER_HOME + draw.uniform(-0.1, 0.1, (7,)), v=jnp.zeros(7))

    def targets(simulator: Simulator, action: Array) -> Array:
        return jnp.asarray(REACHER_HOME) + REACHER_STEP * action

    return PolicyTask(
        name="arm-reach",
        simulator=read_simulator(robot, REACHER_ROBOT, "reacher.xml"),
        observations={
            "joint angles": Observation(lambda now: now.q - REACHER_HOME, noise=0.002, unit="rad from home"),
            "joint velocities": Observation(lambda now: now.v, scale=0.3, noise=0.02, unit="rad/s"),
            "place": Observation(lambda now: now.command - 0.5 * (PLACE_LOW + PLACE_HIGH), scale=3.0, unit="m"),
            "last action": Observation(lambda now: now.action),
        },
        rewards={
            "near": Reward(1.0, lambda now: 0.5 * (jnp.exp(-4.0 * distance(now)) + jnp.exp(-30.0 * distance(now)))),
            "speed": Reward(-0.002, lambda now: jnp.sum(now.v**2)),
            "change of action": Reward(-0.05, lambda now: jnp.sum((now.action - now.previous) ** 2)),
        },
        reset=near_home,
        actions=Actions(7, targets),
        command=CommandSource(
            3,
            lambda draw: draw.uniform(PLACE_LOW, PLACE_HIGH, (3,)),
            names=("x m", "y m", "z m"),
            interval=(2.0, 2.0),
            measured=hand,
        ),
        seconds=4.0,
        randomization=randomization or Randomization(),
        robot=robot_record(robot),
    )
