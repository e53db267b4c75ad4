"""A quadruped of a robot file: its feet, legs, home posture and torque limits, and position control of its joints."""

import dataclasses
import math
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.missing import missing_file
from truesim.core.typing import Array, Float
from truesim.files.robots.load import loads
from truesim.math.soft_constraints.newton import NewtonOptions
from truesim.math.spatial.rotation import quaternion_matrix
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.dynamics import body_poses
from truesim.physics.model.kinds import FREE
from truesim.physics.model.model import Geoms, Model
from truesim.physics.simulation import Simulator

SHAPES_WITH_HEIGHT = ("sphere", "capsule", "cylinder", "box")
"""Shapes of which `lowest_points` knows the lowest point."""
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
    """Configuration of the file's first keyframe [m, rad]."""
    feet: tuple[int, ...]
    """Geom of each foot."""
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
    damping: float
    """Of position control [N m s/rad]."""

    @property
    def base(self) -> str:
        """Name of the body that moves freely."""
        return self.simulator.model.bodies.names[0]

    @property
    def radius(self) -> float:
        """Radius of the first foot [m]."""
        return float(self.simulator.model.geoms.size[self.feet[0], 0])

    def obstacles(self, base: bool) -> tuple[int, ...]:
        """Colliding geoms that are not feet: those of the base, or those of the legs."""
        geoms = self.simulator.model.geoms
        return tuple(
            g
            for g, body in enumerate(geoms.bodies)
            if body >= 0 and (body == 0) == base and g not in self.feet and _is_obstacle(geoms, g)
        )


def read_quadruped(path: str | Path, *, stiffness: float, damping: float, timestep: float) -> LeggedRobot:
    """Quadruped of an MJCF file with four feet, a free base, a keyframe and one actuator for each joint of its legs.

    Actuators become position servos within the torques of the file.

    Args:
        path: The file, with a floor.
        stiffness: Of position control [N m/rad].
        damping: Of position control, besides the damping of the joints [N m s/rad].
        timestep: Time step of training [s].
    """
    path = Path(path)
    if not path.is_file():
        raise missing_file("robot file", path)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        torque = _torques(spec.compile())
    except ValueError as error:
        raise FileError(f"{path} cannot be read by MuJoCo: {error}") from error
    for actuator, most in zip(spec.actuators, torque, strict=True):
        actuator.gaintype, actuator.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0], actuator.biasprm[:3] = stiffness, [0.0, -stiffness, -damping]
        actuator.ctrllimited, actuator.forcelimited, actuator.forcerange = 0, 1, [-most, most]
    model = loads(spec.to_xml(), path=path)
    if not model.keyframes:
        raise TruesimError(f"{path.name} has no keyframe: give it one with the robot standing.")
    links = model.topology.links
    if not links or links[0].kind != FREE:
        raise TruesimError(f"{path.name} has no free base: its first body needs a <freejoint/>.")
    assert model.source is not None, "a file is its source"
    own = [next(link for link in links if link.joint == joint) for joint in model.actuators.joints]
    centers = _geom_centers(model.source.compiled)
    feet = _feet(model, centers)
    simulator = Simulator.of(model, timestep=timestep, contact=MujocoContact.of(model, solver=TRAINING_SOLVER))
    return LeggedRobot(
        simulator=simulator,
        compiled=model.source.compiled,
        home=np.asarray(model.keyframes[0].q, float),
        feet=feet,
        gait=_trot(centers[list(feet), :2]),
        joint_q=np.array([link.q.start for link in own]),
        joint_v=np.array([link.v.start for link in own]),
        hips=np.array([float(link.body >= 0 and _parent_is_base(model, link.body)) for link in own]),
        limits=np.asarray(model.joints.range)[list(model.actuators.joints)],
        torque=torque,
        stiffness=stiffness,
        damping=damping,
    )


def _torques(compiled: mujoco.MjModel) -> np.ndarray:
    """Largest torque of each actuator: a motor's control range, else its force range, else the joint's."""
    found = np.full(compiled.nu, np.inf)
    for k in range(compiled.nu):
        joint = compiled.actuator_trnid[k, 0]
        if compiled.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_NONE and compiled.actuator_ctrllimited[k]:
            found[k] = abs(compiled.actuator_ctrlrange[k, 1] * compiled.actuator_gear[k, 0])
        elif compiled.actuator_forcelimited[k]:
            found[k] = compiled.actuator_forcerange[k, 1]
        elif compiled.jnt_actfrclimited[joint]:
            found[k] = compiled.jnt_actfrcrange[joint, 1]
        else:
            raise TruesimError(f"The actuator {compiled.actuator(k).name} has no torque limit in the robot file.")
    return found


def _is_obstacle(geoms: Geoms, g: int) -> bool:
    """True for a colliding geom whose lowest point `lowest_points` knows."""
    return bool(geoms.contype[g] or geoms.conaffinity[g]) and geoms.shapes[g] in SHAPES_WITH_HEIGHT


def _parent_is_base(model: Model, body: int) -> bool:
    link = model.topology.body_link[body]
    return model.topology.links[link].parent == model.topology.body_link[0]


def _feet(model: Model, centers: np.ndarray) -> tuple[int, ...]:
    """Lowest colliding geom of each body at the end of a leg."""
    links, geoms = model.topology.links, model.geoms
    inner = {links[link].parent for link in model.topology.body_link}
    feet = []
    for leaf in [b for b, link in enumerate(model.topology.body_link) if link not in inner]:
        own = [g for g, b in enumerate(geoms.bodies) if b == leaf and _is_obstacle(geoms, g)]
        if own:
            feet.append(min(own, key=lambda g: centers[g, 2]))
    if len(feet) != 4:
        raise TruesimError(f"The robot has {len(feet)} feet (lowest geoms of outermost bodies); a quadruped has four.")
    return tuple(feet)


def _geom_centers(compiled: mujoco.MjModel) -> np.ndarray:
    """Centers of all geoms at the first keyframe [m]."""
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    mujoco.mj_kinematics(compiled, data)
    return np.array(data.geom_xpos)


def _trot(places: np.ndarray) -> np.ndarray:
    """Phase of each foot: front left and rear right together, and the others half a period later."""
    offset = places - places.mean(0)
    return np.where(offset[:, 0] * offset[:, 1] > 0, 0.0, 0.5)


def geom_positions(model: Model, q: Array, geoms: tuple[int, ...]) -> Float[Array, "geoms 3"]:
    """Positions of the centers of geoms in the world [m]."""
    poses, bodies = body_poses(model, q), model.geoms.bodies
    places = [(poses.rotation[bodies[g]], poses.translation[bodies[g]], model.geoms.position[g]) for g in geoms]
    return jnp.stack([R @ jnp.asarray(p) + origin for R, origin, p in places])


def lowest_points(model: Model, q: Array, geoms: tuple[int, ...]) -> Float[Array, " geoms"]:
    """Heights of the lowest points of spheres, capsules, cylinders and boxes [m]."""
    poses, bodies = body_poses(model, q), model.geoms.bodies
    return jnp.stack([_lowest(model, poses.rotation[bodies[g]], poses.translation[bodies[g]], g) for g in geoms])


def _lowest(model: Model, rotation: Array, translation: Array, g: int) -> Array:
    shapes = model.geoms
    center = (rotation @ jnp.asarray(shapes.position[g]) + translation)[2]
    row = (rotation @ quaternion_matrix(jnp.asarray(shapes.orientation[g])))[2]
    size, shape = jnp.asarray(shapes.size[g]), shapes.shapes[g]
    if shape == "sphere":
        return center - size[0]
    if shape == "capsule":
        return center - size[1] * jnp.abs(row[2]) - size[0]
    if shape == "cylinder":
        return center - size[1] * jnp.abs(row[2]) - size[0] * jnp.sqrt(jnp.maximum(1.0 - row[2] ** 2, 0.0))
    return center - jnp.sum(jnp.abs(row) * size)


def trot_phase(phase: Array, gait: np.ndarray) -> Array:
    """Sine of the phase of each foot: positive while it should be in the air."""
    return jnp.sin(2.0 * math.pi * (phase + gait))
