"""Jacobians of bodies and points."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Bool, Float
from truesim.physics.dynamics.kinematics import link_poses
from truesim.physics.dynamics.links import motion_subspaces
from truesim.physics.model.model import Model


def body_jacobian(model: Model, q: Float[Array, " nq"], body: int) -> Float[Array, "6 nv"]:
    """Jacobian of a body frame: `[angular; linear]` velocity of its origin in world axes = J v."""
    return point_jacobian(model, q, body, jnp.zeros(3))


def point_jacobian(model: Model, q: Float[Array, " nq"], body: int, point: Float[Array, "3"]) -> Float[Array, "6 nv"]:
    """Jacobian of a point fixed to a body: `[angular; linear]` velocity in world axes = J v.

    Args:
        model: The robot.
        q: Configuration.
        body: Index of the body.
        point: The point in the body's frame [m].
    """
    poses, S = link_poses(model, q), motion_subspaces(model, q)
    target = model.topology.body_link[body]
    p = poses[target].point(point)
    J = jnp.zeros((6, model.nv))
    for i in model.topology.ancestors(target):
        R = poses[i].rotation
        angular = R @ S[i][:3]
        linear = R @ S[i][3:] + jnp.cross(angular.T, p - poses[i].translation).T
        J = J.at[:, model.topology.links[i].v].set(jnp.concatenate([angular, linear]))
    return J


def motion_columns(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv 6"]:
    """Unit motion of each degree of freedom: `[angular, linear]` velocity at the world's origin, in world axes."""
    poses, S = link_poses(model, q), motion_subspaces(model, q)
    columns = []
    for X, S_link in zip(poses, S, strict=True):
        angular = (X.rotation @ S_link[:3]).T
        linear = (X.rotation @ S_link[3:]).T + jnp.cross(jnp.broadcast_to(X.translation, angular.shape), angular)
        columns.append(jnp.concatenate([angular, linear], axis=1))
    return jnp.concatenate(columns)


def carriers(model: Model, body: int) -> Bool[np.ndarray, " nv"]:
    """Mask of the degrees of freedom that move a body; none move the world."""
    moves = np.zeros(model.nv, dtype=bool)
    if body >= 0:
        for i in model.topology.ancestors(model.topology.body_link[body]):
            moves[model.topology.links[i].v] = True
    return moves
