"""Kinematics: poses, velocities and accelerations of links and bodies."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import Pose, cross_motion
from truesim.physics.dynamics.links import JointFrames, joined, joint_frames, joint_poses, per_link
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model


def reference_configuration(model: Model) -> Float[Array, " nq"]:
    """Reference configuration of the robot file (MuJoCo's qpos0); a NumPy array if the model holds such."""
    parts: list[Array] = []
    for link in model.topology.links:
        if link.kind == FREE:
            parts += [model.bodies.position[link.body], model.bodies.orientation[link.body]]
        elif link.kind == BALL:
            parts.append(np.array([1.0, 0.0, 0.0, 0.0]))
        elif link.joint >= 0:
            parts.append(model.joints.ref[link.joint, None])
    known = not any(isinstance(x, jax.Array) for x in parts)  # NumPy compiles nothing
    return np.concatenate([np.zeros(0), *parts]) if known else joined([jnp.asarray(x) for x in parts])


def integrate(model: Model, q: Float[Array, " nq"], dq: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """Configuration reached from `q` along `dq` (velocity times time), on its manifold."""
    if model.nq == model.nv:
        return q + dq
    return joined([link.kind.integrate(q[link.q], dq[link.v]) for link in model.topology.links])


def difference(model: Model, q: Float[Array, " nq"], start: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Displacement `dq` from `start` to `q`, the inverse of `integrate`."""
    if model.nq == model.nv:
        return q - start
    return joined([link.kind.difference(q[link.q], start[link.q]) for link in model.topology.links])


def joint_coordinates(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Coordinate of every degree of freedom [rad or m]; orientations as rotation vectors from the parent's."""
    if model.nq == model.nv:
        return q
    upright = {BALL: np.array([1.0, 0, 0, 0]), FREE: np.array([0.0, 0, 0, 1, 0, 0, 0])}
    links = [link for link in model.topology.links if link.joint >= 0]
    return joined([link.kind.difference(q[link.q], upright.get(link.kind, np.zeros(1))) for link in links])


def link_poses(model: Model, q: Float[Array, " nq"]) -> list[Pose]:
    """Pose of every link in the world: `X_W[i] = X_W[parent] X[i]`."""
    X = joint_poses(model, q)
    each = [Pose(R, p) for R, p in zip(X.rotation, X.translation, strict=True)]
    return model.topology.down(lambda X_WP, X: X_WP @ X, Pose.identity(), each)


def link_velocities(
    model: Model, frames: JointFrames, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, "links 6"], Float[Array, "links 6"]]:
    """Spatial velocity V and velocity-product acceleration c of every link.

    V = X V_parent + S v;  c = dS/dt v + V x S v (Featherstone, equations 3.14 and 3.40), in the link's own frame.
    """
    Vj = [S @ v for S, v in zip(frames.S, per_link(model, v), strict=True)]
    V = jnp.stack(model.topology.down(lambda V, X, Vj: X @ V + Vj, jnp.zeros(6), frames.X, Vj))
    rates = jnp.stack([link.kind.bias(q[link.q], v[link.v]) for link in model.topology.links])
    return V, rates + jax.vmap(cross_motion)(V, jnp.stack(Vj))


def link_accelerations(
    model: Model, frames: JointFrames, c: Float[Array, "links 6"], a: Float[Array, " nv"], base: Float[Array, "3"]
) -> Float[Array, "links 6"]:
    """Spatial acceleration of every link, in its own frame: `A = X A_parent + S a + c`.

    Args:
        model: The robot.
        frames: Its joint frames.
        c: Velocity-product accelerations, from `link_velocities`.
        a: Joint accelerations.
        base: Linear acceleration of the world [m/s^2]; minus gravity there acts as gravity everywhere.
    """

    def acceleration(A: Array, X: Array, S: Array, c: Array, a: Array) -> Array:
        return X @ A + S @ a + c

    world = jnp.concatenate([jnp.zeros(3), base])
    return jnp.stack(model.topology.down(acceleration, world, *frames, list(c), per_link(model, a)))


def body_poses(model: Model, q: Float[Array, " nq"]) -> Pose:
    """Pose of every body in the world, stacked over bodies."""
    poses = link_poses(model, q)
    return jax.tree.map(lambda *x: jnp.stack(x), *(poses[i] for i in model.topology.body_link))


def body_velocities(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    """Velocity of every body frame: angular [rad/s] and of its origin [m/s], world axes."""
    V, _ = link_velocities(model, joint_frames(model, q), q, v)
    return _in_world_axes(model, q, V)


def own_velocities(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    """Velocity of every body frame: angular [rad/s] and of its origin [m/s], in the body's own axes."""
    V, _ = link_velocities(model, joint_frames(model, q), q, v)
    return V[np.array(model.topology.body_link)]


def body_accelerations(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "bodies 6"]:
    """Acceleration of every body frame: angular [rad/s^2] and of its origin [m/s^2], world axes; no gravity.

    The acceleration of the origin is the spatial one plus w x v.
    """
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = jnp.asarray(link_accelerations(model, frames, c, a, jnp.zeros(3)))
    return _in_world_axes(model, q, A.at[:, 3:].add(jnp.cross(V[:, :3], V[:, 3:])))


def _in_world_axes(model: Model, q: Array, vectors: Float[Array, "links 6"]) -> Float[Array, "bodies 6"]:
    own = vectors[np.array(model.topology.body_link)].reshape(-1, 2, 3)
    return jnp.einsum("bij,bkj->bki", body_poses(model, q).rotation, own).reshape(-1, 6)
