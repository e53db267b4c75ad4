"""Completion of a quadruped's file: a floor, motors, their rotors and torques, and the posture in which it stands."""

import itertools
from typing import Any, NamedTuple

import mujoco
import numpy as np
from scipy.optimize import least_squares

from truesim.core.errors import TruesimError

LEG_EXTENSION = 0.8
"""Height of the second joint of a leg over its foot, as a part of the stretched leg; larger stands straighter."""
TORQUE_OF_WEIGHT = 0.6
"""Torque limit of motors without one, as a part of weight times standing height."""
INERTIA_OF_TORQUE = 4e-4
"""Inertia of a motor's rotor at its joint over the torque limit [s^2], as of Unitree's motors in MuJoCo Menagerie."""
FREE_SPEED = 25.0
"""Speed at which the damping of a joint takes the whole torque of its motor [rad/s]; larger damps less."""
POSTURE_WEIGHT = 1e-3
"""Weight of angles far from the start beside places of feet [m/rad]: it decides where a leg has spare joints."""
SHAPES_WITH_HEIGHT = ("sphere", "capsule", "cylinder", "box")
"""Shapes of which `height_of_lowest` knows the lowest point: those of feet and obstacles."""
FOOT_SHAPES = {int(getattr(mujoco.mjtGeom, f"mjGEOM_{shape.upper()}")): shape for shape in SHAPES_WITH_HEIGHT}
FOOT_TOLERANCE = 0.02
"""Largest distance of a foot from its place below the leg [m], as a part of the stretched leg."""


class Leg(NamedTuple):
    """A leg: its joints from the base to the foot, and the geom of the foot."""

    joints: tuple[int, ...]
    foot: int
    tip: np.ndarray
    """Center of the end of the foot that is far from the leg, in the frame of the geom [m]; zero for a sphere."""

    def place(self, data: mujoco.MjData) -> np.ndarray:
        """Position of the tip in the world [m]."""
        return np.asarray(data.geom_xpos[self.foot] + data.geom_xmat[self.foot].reshape(3, 3) @ self.tip)


def find_legs(compiled: mujoco.MjModel, name: str) -> tuple[Leg, ...]:
    """Legs of a robot with a free base: chains of joints that end in a body on which no other joint stands.

    The foot is the colliding geom that is farthest from the last joint.

    Args:
        compiled: The robot.
        name: Of the file, for messages.
    """
    free = np.flatnonzero(compiled.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if len(free) != 1:
        raise TruesimError(f"{name} has {len(free)} free bases: a quadruped is one body with a <freejoint/>.")
    data = kinematics(compiled, compiled.qpos0)
    weld, parent, base = compiled.body_weldid, compiled.body_parentid, compiled.jnt_bodyid[free[0]]
    moving = [b for b in range(1, compiled.nbody) if weld[b] == b and b != base]
    inner = {weld[parent[b]] for b in moving}
    legs = []
    for end in (b for b in moving if b not in inner):
        joints = _joints_up_to(compiled, end, base)
        geoms = [g for g in range(compiled.ngeom) if weld[compiled.geom_bodyid[g]] == end and _collides(compiled, g)]
        if joints and geoms:
            far = np.linalg.norm(data.geom_xpos[geoms] - data.xanchor[joints[-1]], axis=1)
            foot = geoms[int(np.argmax(far))]
            legs.append(Leg(joints, foot, _tip(compiled, data, foot, data.xanchor[joints[-1]])))
    if len(legs) != 4:
        raise TruesimError(
            f"{name} has {len(legs)} legs (chains of joints with a colliding sphere, capsule, cylinder or box at the "
            "end), not four."
        )
    return tuple(legs)


def _tip(compiled: mujoco.MjModel, data: mujoco.MjData, foot: int, joint: np.ndarray) -> np.ndarray:
    """Center of the end of a capsule, or of a cylinder or box along the leg, that is farther from a joint."""
    shape, size = FOOT_SHAPES[int(compiled.geom_type[foot])], compiled.geom_size[foot]
    along = data.geom_xmat[foot].reshape(3, 3).T @ (data.geom_xpos[foot] - joint)
    axis = 2 if shape in ("capsule", "cylinder") else int(np.argmax(np.abs(along)))
    lies = shape == "cylinder" and abs(along[axis]) < 0.5 * np.linalg.norm(along)
    half = {"sphere": 0.0, "capsule": size[1], "cylinder": 0.0 if lies else size[1], "box": size[axis]}[shape]
    return float(np.copysign(half, along[axis])) * np.eye(3)[axis]


def height_of_lowest(shape: str, size: Any, center: Any, row: Any) -> Any:
    """Height of the lowest point of a geom [m].

    Args:
        shape: Such as `sphere`.
        size: Size as in MJCF [m].
        center: Height of its center [m].
        row: Vertical components of its axes.
    """
    if shape == "sphere":
        return center - size[0]
    if shape == "capsule":
        return center - size[1] * abs(row[2]) - size[0]
    if shape == "cylinder":
        return center - size[1] * abs(row[2]) - size[0] * abs(1.0 - row[2] ** 2) ** 0.5
    return center - (size[0] * abs(row[0]) + size[1] * abs(row[1]) + size[2] * abs(row[2]))


def kinematics(compiled: mujoco.MjModel, q: np.ndarray) -> mujoco.MjData:
    """Places of bodies, joints and geoms at a configuration."""
    data = mujoco.MjData(compiled)
    data.qpos[:] = q
    mujoco.mj_kinematics(compiled, data)
    return data


def _joints_up_to(compiled: mujoco.MjModel, body: int, base: int) -> tuple[int, ...]:
    """Hinges and slides from the base, which is left out, to a body."""
    found: list[int] = []
    while body not in (base, 0):
        first, count = compiled.body_jntadr[body], compiled.body_jntnum[body]
        found = [*range(first, first + count), *found]
        body = compiled.body_parentid[body]
    return tuple(found)


def _collides(compiled: mujoco.MjModel, g: int) -> bool:
    """True for a sphere, capsule, cylinder or box that collides."""
    return bool(compiled.geom_contype[g] or compiled.geom_conaffinity[g]) and compiled.geom_type[g] in FOOT_SHAPES


def add_floor(spec: mujoco.MjSpec, compiled: mujoco.MjModel) -> list[str]:
    """Give a robot without a plane a floor; returns what was made up, in words."""
    if np.any(compiled.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        return []
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    return ["a floor"]


def add_motors(spec: mujoco.MjSpec) -> list[str]:
    """Give a robot without actuators a motor for each hinge; returns what was made up, in words."""
    if spec.actuators:
        return []
    hinges = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]
    for k, joint in enumerate(hinges):
        joint.name = joint.name or f"hinge{k}"  # transmissions need a name
        spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    return [f"{len(hinges)} motors"]


def add_rotors(spec: mujoco.MjSpec, compiled: mujoco.MjModel, torque: np.ndarray, *, all_motors: bool) -> list[str]:
    """Give actuated joints the rotor inertia and damping that motors have, where the file has neither of both.

    Args:
        spec: The robot, which is changed.
        compiled: The same robot.
        torque: Largest torque of each actuator [N m].
        all_motors: Also complete joints that have one of both, as where the motors are made up.

    Returns:
        What was made up, in words.
    """
    owners, joints = compiled.actuator_trnid[:, 0], {joint.id: joint for joint in spec.joints}
    dofs = compiled.jnt_dofadr[owners]
    no_inertia, no_damping = compiled.dof_armature[dofs] == 0.0, compiled.dof_damping[dofs] == 0.0
    lacks = all_motors | (no_inertia & no_damping)
    inertia, damping = INERTIA_OF_TORQUE * torque, torque / FREE_SPEED
    for k in np.flatnonzero(lacks & no_inertia):
        joints[owners[k]].armature = inertia[k]
    for k in np.flatnonzero(lacks & no_damping):
        joints[owners[k]].damping[0] = damping[k]
    return [
        *in_words("rotor inertia", inertia[lacks & no_inertia], "kg m^2"),
        *in_words("damping", damping[lacks & no_damping], "N m s/rad"),
    ]


def in_words(quantity: str, values: np.ndarray, unit: str) -> list[str]:
    """Words for values of joints that were made up, if there are any."""
    if not len(values):
        return []
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return [f"{quantity} of {len(values)} joints ({low if low == high else f'{low} to {high}'} {unit})"]


def torque_limits(compiled: mujoco.MjModel) -> np.ndarray:
    """Largest torque of each actuator: a motor's control range, else its force range, else the joint's, else NaN."""
    found = np.full(compiled.nu, np.nan)
    for k in range(compiled.nu):
        joint = compiled.actuator_trnid[k, 0]
        if compiled.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_NONE and compiled.actuator_ctrllimited[k]:
            found[k] = abs(compiled.actuator_ctrlrange[k, 1] * compiled.actuator_gear[k, 0])
        elif compiled.actuator_forcelimited[k]:
            found[k] = compiled.actuator_forcerange[k, 1]
        elif compiled.jnt_actfrclimited[joint]:
            found[k] = compiled.jnt_actfrcrange[joint, 1]
    return found


def usual_torque(compiled: mujoco.MjModel, height: float) -> float:
    """Torque limit for motors without one [N m].

    Args:
        compiled: The robot.
        height: Standing height of the base [m].
    """
    weight = float(compiled.body_mass.sum()) * float(np.linalg.norm(compiled.opt.gravity))
    return TORQUE_OF_WEIGHT * weight * height


def standing_posture(compiled: mujoco.MjModel, legs: tuple[Leg, ...], name: str) -> np.ndarray:
    """Configuration in which the robot stands [m, rad]: that of its first keyframe, or with bent knees over its feet.

    Args:
        compiled: The robot.
        legs: Its legs.
        name: Of the file, for messages.
    """
    if compiled.nkey:
        return np.array(compiled.key_qpos[0])
    data, q = mujoco.MjData(compiled), np.array(compiled.qpos0)
    q[:7] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    for leg in legs:
        q[[compiled.jnt_qposadr[j] for j in leg.joints]] = _bent(compiled, data, q, leg, name)
    data = kinematics(compiled, q)
    q[2] = -min(_lowest(compiled, data, leg.foot) for leg in legs)
    return q


def _lowest(compiled: mujoco.MjModel, data: mujoco.MjData, g: int) -> float:
    """Height of the lowest point of a geom [m]."""
    row = data.geom_xmat[g, 6:9]
    return float(
        height_of_lowest(FOOT_SHAPES[int(compiled.geom_type[g])], compiled.geom_size[g], data.geom_xpos[g, 2], row)
    )


def _bent(compiled: mujoco.MjModel, data: mujoco.MjData, q: np.ndarray, leg: Leg, name: str) -> np.ndarray:
    """Angles of a leg whose foot is below its second joint.

    Of several solutions it is the one that turns least, and of equal ones that with the knee behind. Sideways the foot
    stays where it is in the reference configuration.
    """
    places = [compiled.jnt_qposadr[j] for j in leg.joints]
    low, high = _ranges(compiled, leg)
    start = np.clip(q[places], low, high)

    def moved(angles: np.ndarray) -> None:
        data.qpos[:] = q
        data.qpos[places] = angles
        mujoco.mj_kinematics(compiled, data)

    moved(start)
    anchors = [np.array(data.xanchor[j]) for j in leg.joints[1:]] + [leg.place(data)]
    stretched = sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(anchors))
    target = np.array([anchors[0][0], anchors[-1][1], anchors[0][2] - LEG_EXTENSION * stretched])

    def error(angles: np.ndarray) -> np.ndarray:
        moved(angles)
        return np.concatenate([leg.place(data) - target, POSTURE_WEIGHT * (angles - start)])

    def preference(angles: np.ndarray) -> tuple[float, float]:
        moved(angles)
        return round(float(np.linalg.norm(angles - start)), 1), float(data.xanchor[leg.joints[-1], 0])

    bends = itertools.product((-0.8, 0.8), repeat=len(leg.joints) - 1)
    starts = [np.clip(start + np.array([0.0, *bend]), low, high) for bend in bends]
    found = [least_squares(error, each, bounds=(low - 1e-6, high + 1e-6)).x for each in starts]
    reached = [each for each in found if np.linalg.norm(error(each)[:3]) < FOOT_TOLERANCE * stretched]
    if not reached:
        raise TruesimError(
            f"{name} has no keyframe, and the foot {compiled.geom(leg.foot).name or leg.foot} cannot be put below its "
            "leg: give the file a keyframe with the robot standing."
        )
    return min(reached, key=preference)


def _ranges(compiled: mujoco.MjModel, leg: Leg) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the joints of a leg, at most a turn [rad]."""
    limited, ranges = compiled.jnt_limited[list(leg.joints)] > 0, compiled.jnt_range[list(leg.joints)]
    turn = np.pi * np.array([-1.0, 1.0])
    low, high = np.where(limited[:, None], ranges, turn).T
    return np.maximum(low, -np.pi), np.minimum(high, np.pi)
