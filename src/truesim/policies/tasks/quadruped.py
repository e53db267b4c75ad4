"""Quadruped that follows velocity commands of a joystick: forward, sideways and yaw, on flat ground.

The robot observes what its own sensors measure (gyroscope, direction of gravity, joint angles and velocities), its last
action and a clock, but no velocity of its base. Friction, mass, center of mass and gains differ between episodes,
actions arrive late, measurements are noisy, and it is pushed.
"""

import math
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array
from truesim.math.spatial.rotation import quaternion_matrix
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization, uniform
from truesim.policies.task import (
    Actions,
    CommandSource,
    Instant,
    Memory,
    Observation,
    PolicyTask,
    PolicyTrial,
    Pushes,
    Reward,
    Term,
)
from truesim.policies.tasks.legged_robot import LeggedRobot, geom_positions, lowest_points, read_quadruped, trot_phase
from truesim.policies.tasks.rehearsal import rehearsal_simulator

JOYSTICK_PERIOD, TRAINING_STEP = 0.02, 0.005
"""Control period and time step [s]."""
ACTION_SCALE = 0.4
"""Change of a joint's target per action [rad]."""
USUAL_HEIGHT, USUAL_STIFFNESS = 0.27, 40.0
"""Standing height [m] and stiffness [N m/rad] for which the numbers below hold; others are scaled."""
CLOCK = 2.0
"""Frequency of the trot [Hz]; with the height h it falls as 1 / sqrt(h)."""
STEP_HEIGHT = 0.07
"""Height to which the clock asks a foot to rise [m]; it grows with the robot."""
PAYLOAD = (-0.145, 0.29)
"""Range of the additional mass of the base, as a part of its own."""
SOLE = 0.11
"""Height of a foot's lowest point, in radii, below which it is in contact: contact is soft, and feet sink in."""
COMMAND_LOW, COMMAND_HIGH = np.array([-0.8, -0.5, -0.9]), np.array([1.2, 0.5, 0.9])
"""Range of commands: forward [m/s], left [m/s], yaw [rad/s]."""
TEST_LOW, TEST_HIGH = np.array([-0.6, -0.4, -0.7]), np.array([1.0, 0.4, 0.7])
"""Range of commands of tests."""


def go2_joystick(robot: str | Path, randomization: Randomization | None = None) -> PolicyTask:
    """Task of a quadruped's file, such as Unitree Go2 of MuJoCo Menagerie (`unitree_go2/scene.xml`)."""
    own = read_quadruped(robot, timestep=TRAINING_STEP)
    return PolicyTask(
        name="go2-joystick",
        simulator=own.simulator,
        observations=_observations(own),
        rewards=_rewards(own),
        terminations=_terminations(own),
        reset=_reset(own),
        actions=Actions(len(own.joint_q), _targets(own), limit=8.0),
        command=CommandSource(
            3,
            _draw_command,
            names=("forward m/s", "left m/s", "yaw rad/s"),
            interval=(2.0, 6.0),
            measured=lambda now: jnp.concatenate([base_velocity(now)[:2], now.v[5:6]]),
            draw_for_test=lambda draw: draw.uniform(TEST_LOW, TEST_HIGH, (3,)),
        ),
        memory=_gait_memory(own),
        rehearsal=rehearsal_simulator(own.simulator, own.feet, own.height),
        pushes=Pushes((0, 1), 0.5, (3.0, 10.0)),
        randomization=default_randomization(own).merged(randomization or Randomization()),
        period=JOYSTICK_PERIOD,
        seconds=20.0,
        training_seconds=5.0,  # of 20 s, one step in twenty is a start, and policies fall there
        latency=(0.0, JOYSTICK_PERIOD),
        max_speed=60.0,
        trial=PolicyTrial(),
        robot={"robot": str(Path(robot).absolute())},
        made_up=own.made_up,
    )


def default_randomization(own: LeggedRobot) -> Randomization:
    """Friction of the feet, payload, center of mass and gains of position control."""
    names, mass = own.simulator.model.geoms.names, float(own.simulator.model.bodies.mass[0])
    feet = ",".join(f"geoms/{names[g]}.friction[0]" for g in own.feet)
    return Randomization(
        {
            feet: uniform(0.5, 1.5, "scale"),
            f"bodies/{own.base}.mass": uniform(mass * PAYLOAD[0], mass * PAYLOAD[1], "add"),
            f"bodies/{own.base}.com": uniform(-0.03, 0.03, "add"),
            "actuators/*.gain,actuators/*.bias[1]": uniform(0.9, 1.1, "scale"),
        }
    )


def _targets(own: LeggedRobot) -> Callable[[Simulator, Array], Array]:
    home = own.home[own.joint_q]
    return lambda simulator, action: jnp.asarray(home) + ACTION_SCALE * action


def _draw_command(draw: Draws) -> Array:
    """Uniform; one in twelve is zero, one in ten straight."""
    command = draw.uniform(COMMAND_LOW, COMMAND_HIGH, (3,))
    kind = draw.uniform()
    straight = jnp.where(kind < 0.18, command * np.array([1.0, 0.0, 0.0]), command)
    return jnp.where(kind < 0.08, jnp.zeros(3), straight)


def _reset(own: LeggedRobot) -> Callable[[Simulator, Draws], State]:
    def reset(simulator: Simulator, draw: Draws) -> State:
        yaw = draw.uniform(-math.pi, math.pi)
        zero = jnp.zeros(())
        height = own.home[2] + 0.01 + draw.uniform(0.0, 0.03)
        base = jnp.stack([zero, zero, height, jnp.cos(yaw / 2), zero, zero, jnp.sin(yaw / 2)])
        joints = own.home[7:] + draw.uniform(-0.15, 0.15, (len(own.home) - 7,))
        v = jnp.concatenate([draw.uniform(-0.3, 0.3, (6,)), jnp.zeros(simulator.model.nv - 6)])
        return simulator.initial_state(q=jnp.concatenate([base, joints]), v=v)

    return reset


def _gait_memory(own: LeggedRobot) -> Memory:
    """Phase of the clock; positions, contact, slip and time in the air of the feet."""
    clock = CLOCK / math.sqrt(own.height / USUAL_HEIGHT)

    def feet(now: Instant) -> Array:
        return geom_positions(now.simulator.model, now.q, own.feet, own.tips)

    def heights(now: Instant) -> Array:
        return lowest_points(now.simulator.model, now.q, own.feet)

    def start(now: Instant, draw: Draws) -> dict[str, Array]:
        places = feet(now)
        return {
            "phase": draw.uniform(),
            "feet": places,
            "height": heights(now),
            "contact": jnp.ones(4),
            "air": jnp.zeros(4),
            "slip": jnp.zeros(4),
        }

    def update(now: Instant) -> dict[str, Array]:
        old, places, height = now.memory, feet(now), heights(now)
        contact = (height < SOLE * own.radius).astype(places.dtype)
        velocity = (places - old["feet"])[:, :2] / JOYSTICK_PERIOD
        slip = contact * old["contact"] * jnp.minimum(jnp.sum(velocity**2, axis=1), 4.0)
        phase = old["phase"] + clock * JOYSTICK_PERIOD
        return {
            "phase": phase - jnp.floor(phase),
            "feet": places,
            "height": height,
            "contact": contact,
            "air": (1.0 - contact) * (old["air"] + JOYSTICK_PERIOD),
            "slip": slip,
        }

    return Memory(start, update)


def rotation(now: Instant) -> Array:
    """Orientation of the base: columns are its axes in the world."""
    return quaternion_matrix(now.q[3:7])


def gravity(now: Instant) -> Array:
    """Direction of gravity in the base."""
    return -rotation(now)[2]


def base_velocity(now: Instant) -> Array:
    """Velocity of the base in its own axes [m/s]."""
    return rotation(now).T @ now.v[:3]


def gyro(now: Instant) -> Array:
    """Angular velocity of the base in its own axes [rad/s]."""
    return now.v[3:6]


def is_moving(now: Instant) -> Array:
    """1 if the command asks for a motion, else 0."""
    return jnp.any(now.command != 0.0).astype(now.q.dtype)


def clock(now: Instant) -> Array:
    """Sine and cosine of the phase of the gait, zero while standing."""
    angle = 2.0 * math.pi * now.memory["phase"]
    return is_moving(now) * jnp.stack([jnp.sin(angle), jnp.cos(angle)])


def _observations(own: LeggedRobot) -> dict[str, Observation]:
    home = own.home[own.joint_q]
    friction, mass, com, gain = default_randomization(own).paths
    return {
        "gyro": Observation(gyro, scale=0.25, noise=0.2, unit="rad/s"),
        "gravity": Observation(gravity, noise=0.05),
        "joint angles": Observation(lambda now: now.q[own.joint_q] - home, noise=0.02, unit="rad from home"),
        "joint velocities": Observation(lambda now: now.v[own.joint_v], scale=0.05, noise=1.5, unit="rad/s"),
        "last action": Observation(lambda now: now.action, scale=0.5),
        "command": Observation(lambda now: now.command * np.array([2.0, 2.0, 1.0]), unit="2 m/s, 2 m/s, rad/s"),
        "clock": Observation(clock),
        "base velocity": Observation(base_velocity, scale=2.0, privileged=True),
        "height": Observation(lambda now: now.q[2] - own.home[2], scale=5.0, privileged=True),
        "foot contact": Observation(lambda now: now.memory["contact"], privileged=True),
        "air time": Observation(lambda now: now.memory["air"], scale=3.0, privileged=True),
        "foot height": Observation(lambda now: now.memory["height"], scale=10.0, privileged=True),
        "friction": Observation(_drawn(friction, 1.0), privileged=True),
        "payload": Observation(_drawn(mass), scale=0.3, privileged=True),
        "gain": Observation(_drawn(gain, 1.0), scale=5.0, privileged=True),
        "latency": Observation(lambda now: now.latency, scale=40.0, privileged=True),
        "center of mass": Observation(_drawn(com), scale=20.0, privileged=True),
    }


def _drawn(path: str, nominal: float = 0.0) -> Term:
    """Drawn number of a path; zero where a task does not randomize it."""
    return lambda now: jnp.asarray(now.parameters[path] - nominal if path in now.parameters else 0.0)


def _tracking(error: Array) -> Array:
    """Reward for following a command: a wide and a narrow bell."""
    return 0.5 * (jnp.exp(-error / 0.25) + jnp.exp(-error / 0.05))


def linear_tracking(now: Instant) -> Array:
    """Reward for the commanded velocity forward and sideways, in [0, 1]."""
    error = now.command[:2] - base_velocity(now)[:2]
    return _tracking(error[0] ** 2 + 2.0 * error[1] ** 2)


def yaw_tracking(now: Instant) -> Array:
    """Reward for the commanded yaw rate, in [0, 1]."""
    return _tracking((now.command[2] - now.v[5]) ** 2)


def _rewards(own: LeggedRobot) -> dict[str, Reward]:
    home, (low, high) = own.home[own.joint_q], own.limits.T
    margin, size = 0.025 * (high - low), own.height / USUAL_HEIGHT
    legs = own.obstacles(base=False)

    def torque(now: Instant) -> Array:
        q, v = now.q[own.joint_q], now.v[own.joint_v]
        wanted = own.stiffness * (home + ACTION_SCALE * now.action - q) - own.damping * v
        return jnp.sum(jnp.clip(wanted, -own.torque, own.torque) ** 2)

    def posture(now: Instant) -> Array:
        return jnp.sum((0.1 + 0.9 * own.hips) * (now.q[own.joint_q] - home) ** 2)

    def stillness(now: Instant) -> Array:
        return (1.0 - is_moving(now)) * jnp.sum(jnp.abs(now.q[own.joint_q] - home))

    def limits(now: Instant) -> Array:
        q = now.q[own.joint_q]
        return jnp.sum(jnp.maximum(low + margin - q, 0.0) + jnp.maximum(q - high + margin, 0.0))

    def collisions(now: Instant) -> Array:
        return jnp.sum(lowest_points(now.simulator.model, now.q, legs) < 0.0).astype(now.q.dtype)

    def foot_height(now: Instant) -> Array:
        wanted = size * STEP_HEIGHT * jnp.maximum(trot_phase(now.memory["phase"], own.gait), 0.0)
        return is_moving(now) * jnp.sum((now.memory["height"] - wanted) ** 2)

    def foot_contact(now: Instant) -> Array:
        swing, contact = trot_phase(now.memory["phase"], own.gait), now.memory["contact"]
        wrong = jnp.where((swing > 0.0) == (contact > 0.5), jnp.abs(swing), 0.0)
        return jnp.sum(jnp.where(is_moving(now) > 0.5, wrong, 1.0 - contact))

    return {
        "linear velocity": Reward(2.0, linear_tracking),
        "yaw rate": Reward(1.0, yaw_tracking),
        "alive": Reward(0.6, lambda now: jnp.ones(())),
        "vertical velocity": Reward(-0.5, lambda now: base_velocity(now)[2] ** 2),
        "roll and pitch rates": Reward(-0.05, lambda now: jnp.sum(gyro(now)[:2] ** 2)),
        "tilt": Reward(-2.0, lambda now: jnp.sum(gravity(now)[:2] ** 2)),
        "torque": Reward(-5e-5 * (USUAL_STIFFNESS / own.stiffness) ** 2, torque),
        "change of action": Reward(-0.005, lambda now: jnp.sum((now.action - now.previous) ** 2)),
        "slip": Reward(-0.05, lambda now: jnp.sum(now.memory["slip"])),
        "posture": Reward(-0.1, posture),
        "stillness": Reward(-0.3, stillness),
        "joint limits": Reward(-2.0, limits),
        "collisions": Reward(-0.5, collisions),
        "foot height": Reward(-30.0 / size**2, foot_height),
        "foot contact": Reward(-0.1, foot_contact),
    }


def _terminations(own: LeggedRobot) -> dict[str, Term]:
    base = own.obstacles(base=True)

    def on_the_ground(now: Instant) -> Array:
        if not base:
            return jnp.zeros((), bool)
        return jnp.min(lowest_points(now.simulator.model, now.q, base)) < 0.0

    return {
        "base on the ground": on_the_ground,
        "tilted": lambda now: rotation(now)[2, 2] < 0.5,
        "low": lambda now: now.q[2] < 0.45 * own.home[2],
    }
