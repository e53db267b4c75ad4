"""The fields in which our dynamics and MuJoCo's are compared, each computed by both."""

import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.physics.dynamics import (
    bias_forces,
    body_accelerations,
    body_jacobian,
    body_poses,
    body_velocities,
    center_of_mass,
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    momentum,
    point_jacobian,
    potential_energy,
)

POINT = np.array([0.3, -0.2, 0.1])
"""A point off every axis, in the last body's frame [m]."""


def our_fields(model, q, v, tau, external) -> dict:
    """Ours, from positions to accelerations."""
    poses = body_poses(model, q)
    a = forward_dynamics(model, q, v, tau, external=external)
    last = len(model.bodies.names) - 1
    return {
        "positions": poses.translation,
        "rotations": poses.rotation,
        "center of mass": center_of_mass(model, q),
        "body jacobians": jnp.stack([body_jacobian(model, q, b) for b in (0, last)]),
        "point jacobian": point_jacobian(model, q, last, POINT),
        "velocities": body_velocities(model, q, v),
        "momentum": momentum(model, q, v),
        "energy": jnp.stack([potential_energy(model, q), kinetic_energy(model, q, v)]),
        "mass matrix": mass_matrix(model, q),
        "bias forces": bias_forces(model, q, v),
        "inverse dynamics": inverse_dynamics(model, q, v, tau),
        "acceleration": a,
        "body accelerations": body_accelerations(model, q, v, a),
    }


def mujoco_fields(m: mujoco.MjModel, q, v, tau, external) -> dict:
    """MuJoCo's; `m` must have no constraints and no passive forces."""
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.qfrc_applied = q, v, tau
    mujoco.mj_forward(m, d)
    rotations = d.xmat[1:].reshape(-1, 3, 3)
    for b in range(1, m.nbody):
        torque, force = (rotations[b - 1] @ part for part in np.split(np.asarray(external)[b - 1], 2))
        arm = d.xpos[b] - d.xipos[b]  # MuJoCo applies forces at the center of mass
        d.xfrc_applied[b] = np.concatenate([force, torque + np.cross(arm, force)])
    mujoco.mj_forward(m, d)
    mujoco.mj_subtreeVel(m, d)
    mujoco.mj_rnePostConstraint(m, d)
    d_inverse = mujoco.MjData(m)
    d_inverse.qpos, d_inverse.qvel, d_inverse.qacc = q, v, tau
    mujoco.mj_inverse(m, d_inverse)
    mass = m.body_subtreemass[0] - m.body_mass[0]
    linear = mass * d.subtree_linvel[0]
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    point = d.xpos[-1] + rotations[-1] @ POINT
    return {
        "positions": d.xpos[1:],
        "rotations": rotations,
        "center of mass": d.subtree_com[0],
        "body jacobians": np.stack([_jacobian(m, d, b, d.xpos[b]) for b in (1, m.nbody - 1)]),
        "point jacobian": _jacobian(m, d, m.nbody - 1, point),
        "velocities": np.stack([_object(mujoco.mj_objectVelocity, m, d, b) for b in range(1, m.nbody)]),
        "momentum": np.concatenate([d.subtree_angmom[0] + np.cross(d.subtree_com[0], linear), linear]),
        "energy": d.energy,
        "mass matrix": M,
        "bias forces": d.qfrc_bias,
        "inverse dynamics": d_inverse.qfrc_inverse,
        "acceleration": d.qacc,
        "body accelerations": _body_accelerations(m, d),
    }


def acceleration_tolerance(mass_matrix: np.ndarray, least: float) -> float:
    """Rounding of the solution grows with the condition number of the mass matrix."""
    return max(least, float(np.linalg.cond(mass_matrix)) * 1e-16) if mass_matrix.size else least


def without_forces(m: mujoco.MjModel) -> mujoco.MjModel:
    """The model with constraints, springs, dampers, actuators and fluid off, so that only rigid bodies are left."""
    bits = mujoco.mjtDisableBit
    m.opt.disableflags |= bits.mjDSBL_CONSTRAINT | bits.mjDSBL_SPRING | bits.mjDSBL_DAMPER | bits.mjDSBL_ACTUATION
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    m.opt.density = m.opt.viscosity = 0
    return m


def _jacobian(m, d, body: int, point: np.ndarray) -> np.ndarray:
    linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
    mujoco.mj_jac(m, d, linear, angular, point, body)
    return np.concatenate([angular, linear])


def _object(read, m, d, body: int) -> np.ndarray:
    six = np.zeros(6)
    read(m, d, mujoco.mjtObj.mjOBJ_XBODY, body, six, 0)
    return six


def _body_accelerations(m, d) -> np.ndarray:
    six = np.stack([_object(mujoco.mj_objectAcceleration, m, d, b) for b in range(1, m.nbody)])
    six[:, 3:] += m.opt.gravity  # MuJoCo's are relative to free fall
    return six
