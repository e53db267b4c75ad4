"""Inverse dynamics: the recursive Newton-Euler algorithm (Featherstone, table 5.1)."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.dynamics.kinematics import link_accelerations, link_velocities
from truesim.dynamics.links import JointFrames, joined, joint_frames, link_inertias, per_dof
from truesim.model.model import Model
from truesim.spatial.transform import Pose, cross_force


def inverse_dynamics(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    *,
    external: Float[Array, "bodies 6"] | None = None,
) -> Float[Array, "nv"]:
    """Generalised forces that produce the acceleration `a`: `tau = M(q) a + c(q, v)` [N m or N].

    Springs, dampers, friction and actuators are not included; the rotors' armature is.

    Args:
        model: The robot.
        q: Configuration.
        v: Velocity.
        a: Acceleration.
        external: Force on each body: torque [N m] and force [N] at the origin of its frame, in its own axes.
    """
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))
    I = link_inertias(model)
    forces = [I[i] @ A[i] + cross_force(V[i], I[i] @ V[i]) for i in range(len(I))]
    if external is not None:
        for body, i in enumerate(model.topology.body_link):
            forces[i] = forces[i] - external[body]
    return joint_forces(model, frames, forces) + per_dof(model, model.joints.armature) * a


def joint_forces(model: Model, frames: JointFrames, forces: list[Float[Array, "6"]]) -> Float[Array, "nv"]:
    """Force of every joint that holds these link forces in balance (the inward pass): `tau = S^T f`."""

    def inward(f: Array, X: Pose, S: Array) -> tuple[Array, Array]:
        return S.T @ f, X.force(f)

    return joined(model.topology.up(inward, forces, *frames))


def bias_forces(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Gravity, Coriolis and centrifugal forces: what holds the robot at zero acceleration [N m or N]."""
    return inverse_dynamics(model, q, v, jnp.zeros_like(v))


def gravity_forces(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv"]:
    """What holds the robot at rest against gravity [N m or N]."""
    zero = jnp.zeros(model.nv)
    return inverse_dynamics(model, q, zero, zero)
