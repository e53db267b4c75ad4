"""Where bodies are and how they move."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.dynamics.links import JointFrames, joined, joint_frames, per_link
from truesim.model.kinds import BALL, FREE
from truesim.model.model import Model
from truesim.spatial.transform import Pose, cross_motion


def reference_configuration(model: Model) -> Float[Array, "nq"]:
    """The configuration in which the file draws the robot (MuJoCo's qpos0)."""
    parts = []
    for link in model.topology.links:
        if link.kind == FREE:
            body = model.bodies
            parts.append(np.concatenate([body.position[link.body], body.orientation[link.body]]))
        elif link.kind == BALL:
            parts.append(np.array([1.0, 0.0, 0.0, 0.0]))
        elif link.joint >= 0:
            parts.append(model.joints.ref[link.joint, None])
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def integrate(model: Model, q: Float[Array, "nq"], dq: Float[Array, "nv"]) -> Float[Array, "nq"]:
    """The configuration reached from `q` along `dq` (velocity times time), on its manifold."""
    return joined([link.kind.integrate(q[link.q], dq[link.v]) for link in model.topology.links])


def link_poses(model: Model, frames: JointFrames) -> list[Pose]:
    """Pose of every link in the world: `X_W[i] = X_W[parent] X[i]`."""
    return model.topology.down(lambda X_WP, X: X_WP @ X, Pose.identity(), frames.X)


def link_velocities(
    model: Model, frames: JointFrames, q: Float[Array, "nq"], v: Float[Array, "nv"]
) -> tuple[list[Float[Array, "6"]], list[Float[Array, "6"]]]:
    """Spatial velocity V of every link, and the acceleration c that it brings about without any force.

    V = X V_parent + S v;  c = dS/dt v + V x S v (Featherstone, equations 3.14 and 3.40), in the link's own frame.
    """

    def velocity(above: tuple, X: Pose, S: Array, rate: Array, v: Array) -> tuple[Array, Array]:
        Vj = S @ v
        V = X.motion(above[0]) + Vj
        return V, rate + cross_motion(V, Vj)

    rates = [link.kind.bias(q[link.q], v[link.v]) for link in model.topology.links]
    world = (jnp.zeros(6), jnp.zeros(6))
    moved = model.topology.down(velocity, world, *frames, rates, per_link(model, v))
    return [V for V, _ in moved], [c for _, c in moved]


def link_accelerations(
    model: Model,
    frames: JointFrames,
    c: list[Float[Array, "6"]],
    a: Float[Array, "nv"],
    base: Float[Array, "3"],
) -> list[Float[Array, "6"]]:
    """Spatial acceleration of every link, in its own frame: `A = X A_parent + S a + c`.

    Args:
        model: The robot.
        frames: Its joint frames.
        c: Velocity-product accelerations, from `link_velocities`.
        a: Joint accelerations.
        base: Linear acceleration of the world [m/s^2]; minus gravity there acts as gravity everywhere.
    """

    def acceleration(above: Array, X: Pose, S: Array, c: Array, a: Array) -> Array:
        return X.motion(above) + S @ a + c

    world = jnp.concatenate([jnp.zeros(3), base])
    return model.topology.down(acceleration, world, *frames, c, per_link(model, a))


def body_poses(model: Model, q: Float[Array, "nq"]) -> Pose:
    """Pose of every body in the world, stacked over bodies."""
    poses = link_poses(model, joint_frames(model, q))
    return jax.tree.map(lambda *x: jnp.stack(x), *(poses[i] for i in model.topology.body_link))


def body_velocities(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "bodies 6"]:
    """Velocity of every body frame: angular [rad/s] and of its origin [m/s], world axes."""
    frames = joint_frames(model, q)
    V, _ = link_velocities(model, frames, q, v)
    return _in_world_axes(model, link_poses(model, frames), V)


def body_accelerations(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> Float[Array, "bodies 6"]:
    """Acceleration of every body frame: angular [rad/s^2] and of its origin [m/s^2], world axes; no gravity.

    The acceleration of the origin is the spatial one plus w x v.
    """
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = link_accelerations(model, frames, c, a, jnp.zeros(3))
    classical = [A.at[3:].add(jnp.cross(V[:3], V[3:])) for A, V in zip(A, V, strict=True)]
    return _in_world_axes(model, link_poses(model, frames), classical)


def _in_world_axes(model: Model, poses: list[Pose], vectors: list[Array]) -> Float[Array, "bodies 6"]:
    links = model.topology.body_link
    return jnp.stack([(poses[i].rotation @ vectors[i].reshape(2, 3).T).T.reshape(6) for i in links])
