"""A quadruped of a robot file: its feet, legs, home posture and torque limits, and position control of its joints.

What the file lacks is made up: a floor, motors with their torques, rotors and damping, a posture in which it stands.
Gains of the servos follow from torques and inertias.
"""

import dataclasses
import math
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.core.errors import FileError
from truesim.core.missing import missing_file
from truesim.core.typing import Array, Float
from truesim.files.robots.load import loads
from truesim.math.soft_constraints.newton import NewtonOptions
from truesim.math.spatial.rotation import quaternion_matrix
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.dynamics import body_poses
from truesim.physics.model.model import Geoms, Model
from truesim.physics.simulation import Simulator
from truesim.policies.tasks.standing import (
    SHAPES_WITH_HEIGHT,
    add_floor,
    add_motors,
    add_rotors,
    find_legs,
    height_of_lowest,
    in_words,
    kinematics,
    standing_posture,
    torque_limits,
    usual_torque,
)

SERVO_DEFLECTION = 0.6
"""Deflection at which servos reach the torque of the weaker motors [rad]; larger makes softer servos."""
LEAST_DAMPING = 1.0 / 80.0
"""Damping of servos over their stiffness [s]: at least that much."""
DAMPING_RATIO = 0.7
"""Damping of a joint with its servo, in the air, as a part of the critical one; larger oscillates less."""
STABLE_DAMPING = 0.5
"""Largest change of a joint's speed by the damping of its servo in a time step, as a part of the speed."""
TRAINING_SOLVER = NewtonOptions(iterations=8, tolerance=1e-5, line_search_points=50, line_search_tolerance=0.1)
"""Stopping rules of the contact solver in training; tighter ones take longer and move alike, fewer points diverge."""


@dataclasses.dataclass(frozen=True)
class LeggedRobot:
    """Facts about a quadruped that rewards and observations need."""

    simulator: Simulator
    """With position control of all joints."""
    compiled: mujoco.MjModel
    """The same robot in MuJoCo, at the file's own time step."""
    home: np.ndarray
    """Configuration in which it stands: that of the file's first keyframe, if it has one [m, rad]."""
    feet: tuple[int, ...]
    """Geom of each foot."""
    tips: np.ndarray
    """Center of the end of each foot in the frame of its geom [m]; shape (feet, 3)."""
    gait: np.ndarray
    """Phase of each foot in a trot, 0 or 0.5: diagonal feet move together."""
    joint_q: np.ndarray
    """Coordinate of each actuated joint in the configuration."""
    joint_v: np.ndarray
    """Coordinate of each actuated joint in the velocity."""
    hips: np.ndarray
    """1 for the first joint of each leg, else 0."""
    limits: np.ndarray
    """Lower and upper limit of each joint [rad]."""
    torque: np.ndarray
    """Largest torque of each joint [N m]."""
    stiffness: float
    """Of position control [N m/rad]."""
    damping: np.ndarray
    """Of the position control of each joint [N m s/rad]."""
    made_up: tuple[str, ...]
    """Additions to a file that lacks them, such as motors, in words."""

    @property
    def base(self) -> str:
        """Name of the body that moves freely."""
        return self.simulator.model.bodies.names[0]

    @property
    def height(self) -> float:
        """Height of the base of the standing robot [m]."""
        return float(self.home[2])

    @property
    def radius(self) -> float:
        """Radius of the first foot, or half of the height of a box [m]."""
        geoms, foot = self.simulator.model.geoms, self.feet[0]
        return float(geoms.size[foot, 2 if geoms.shapes[foot] == "box" else 0])

    def obstacles(self, base: bool) -> tuple[int, ...]:
        """Colliding geoms that are not feet: those of the base, or those of the legs."""
        geoms = self.simulator.model.geoms
        return tuple(
            g
            for g, body in enumerate(geoms.bodies)
            if body >= 0 and (body == 0) == base and g not in self.feet and _is_obstacle(geoms, g)
        )


def read_quadruped(path: str | Path, *, timestep: float) -> LeggedRobot:
    """Quadruped of a robot file with a free base and four legs.

    Actuators become position servos within the torques of the file.

    Args:
        path: The file.
        timestep: Time step of training [s].
    """
    path = Path(path)
    if not path.is_file():
        raise missing_file("robot file", path)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        motors = add_motors(spec)
        compiled = spec.compile()
        floor = add_floor(spec, compiled)
        compiled = spec.compile()
    except ValueError as error:
        raise FileError(f"{path} cannot be read by MuJoCo: {error}") from error
    legs = find_legs(compiled, path.name)
    home = standing_posture(compiled, legs, path.name)
    known = torque_limits(compiled)
    torque = np.where(np.isnan(known), usual_torque(compiled, home[2]), known)
    rotors = add_rotors(spec, compiled, torque, all_motors=bool(motors))
    compiled = spec.compile()
    stiffness = float(f"{np.median(torque) / SERVO_DEFLECTION:.2g}")
    damping = _servo_damping(compiled, home, stiffness, timestep)
    for actuator, most, damps in zip(spec.actuators, torque, damping, strict=True):
        actuator.gaintype, actuator.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0], actuator.biasprm[:3] = stiffness, [0.0, -stiffness, -damps]
        actuator.ctrllimited, actuator.forcelimited, actuator.forcerange = 0, 1, [-most, most]
    model = loads(spec.to_xml(), path=path)
    links = model.topology.links
    assert model.source is not None, "a file is its source"
    own = [next(link for link in links if link.joint == joint) for joint in model.actuators.joints]
    feet, standing = tuple(leg.foot for leg in legs), kinematics(compiled, home)
    simulator = Simulator.of(model, timestep=timestep, contact=MujocoContact.of(model, solver=TRAINING_SOLVER))
    return LeggedRobot(
        simulator=simulator,
        compiled=model.source.compiled,
        home=home,
        feet=feet,
        tips=np.stack([leg.tip for leg in legs]),
        gait=_trot(np.stack([leg.place(standing)[:2] for leg in legs])),
        joint_q=np.array([link.q.start for link in own]),
        joint_v=np.array([link.v.start for link in own]),
        hips=np.array([float(link.body >= 0 and _parent_is_base(model, link.body)) for link in own]),
        limits=np.asarray(model.joints.range)[list(model.actuators.joints)],
        torque=torque,
        stiffness=stiffness,
        damping=damping,
        made_up=(
            *floor,
            *motors,
            *in_words("torque limit", torque[np.isnan(known)], "N m"),
            *rotors,
            *([] if compiled.nkey else [f"posture with the base at {home[2]:.3g} m"]),
        ),
    )


def _servo_damping(compiled: mujoco.MjModel, home: np.ndarray, stiffness: float, timestep: float) -> np.ndarray:
    """Damping of each position servo, besides that of its joint [N m s/rad]."""
    data, mass_matrix = kinematics(compiled, home), np.zeros((compiled.nv, compiled.nv))
    mujoco.mj_forward(compiled, data)
    mujoco.mj_fullM(compiled, data, mass_matrix)
    dofs = compiled.jnt_dofadr[compiled.actuator_trnid[:, 0]]
    inertia = np.diag(mass_matrix)[dofs]
    wanted = 2.0 * DAMPING_RATIO * np.sqrt(stiffness * inertia) - compiled.dof_damping[dofs]
    return np.clip(wanted, LEAST_DAMPING * stiffness, STABLE_DAMPING * inertia / timestep)


def _is_obstacle(geoms: Geoms, g: int) -> bool:
    """True for a colliding geom whose lowest point `lowest_points` knows."""
    return bool(geoms.contype[g] or geoms.conaffinity[g]) and geoms.shapes[g] in SHAPES_WITH_HEIGHT


def _parent_is_base(model: Model, body: int) -> bool:
    link = model.topology.body_link[body]
    return model.topology.links[link].parent == model.topology.body_link[0]


def _trot(places: np.ndarray) -> np.ndarray:
    """Phase of each foot: front left and rear right together, and the others half a period later."""
    offset = places - places.mean(0)
    return np.where(offset[:, 0] * offset[:, 1] > 0, 0.0, 0.5)


def geom_positions(
    model: Model, q: Array, geoms: tuple[int, ...], points: np.ndarray | None = None
) -> Float[Array, "geoms 3"]:
    """Positions of points of geoms in the world [m].

    Args:
        model: The robot.
        q: Configuration [m, rad].
        geoms: The geoms.
        points: A point of each in its own frame [m]; the centers by default.
    """
    poses, shapes, found = body_poses(model, q), model.geoms, []
    for k, g in enumerate(geoms):
        place, body = jnp.asarray(shapes.position[g]), shapes.bodies[g]
        if points is not None:
            place = place + quaternion_matrix(jnp.asarray(shapes.orientation[g])) @ jnp.asarray(points[k])
        found.append(poses.rotation[body] @ place + poses.translation[body])
    return jnp.stack(found)


def lowest_points(model: Model, q: Array, geoms: tuple[int, ...]) -> Float[Array, " geoms"]:
    """Heights of the lowest points of spheres, capsules, cylinders and boxes [m]."""
    poses, bodies = body_poses(model, q), model.geoms.bodies
    return jnp.stack([_lowest(model, poses.rotation[bodies[g]], poses.translation[bodies[g]], g) for g in geoms])


def _lowest(model: Model, rotation: Array, translation: Array, g: int) -> Array:
    shapes = model.geoms
    center = (rotation @ jnp.asarray(shapes.position[g]) + translation)[2]
    row = (rotation @ quaternion_matrix(jnp.asarray(shapes.orientation[g])))[2]
    return jnp.asarray(height_of_lowest(shapes.shapes[g], jnp.asarray(shapes.size[g]), center, row))


def trot_phase(phase: Array, gait: np.ndarray) -> Array:
    """Sine of the phase of each foot: positive while it should be in the air."""
    return jnp.sin(2.0 * math.pi * (phase + gait))
