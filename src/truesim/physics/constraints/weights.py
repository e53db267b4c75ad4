"""Inverse weights of joints, bodies and tendons in the reference configuration, as MuJoCo's compiler computes them."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.physics.dynamics import body_poses, carriers, mass_matrix, motion_columns, reference_configuration
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_jacobian

MIN_WEIGHT = 1e-15
"""Inverse weight below which MuJoCo takes the other one (of translation and rotation) of a body."""


class InverseWeights(NamedTuple):
    """Inverse inertia that constraints feel; functions of the parameters alone, computed once per rollout."""

    dofs: Float[Array, " nv"]
    """Diagonal of M^-1, averaged over ball and free joints [1/(kg m^2) or 1/kg]."""
    bodies: Float[Array, "bodies_and_world 2"]
    """Translation [1/kg] and rotation [1/(kg m^2)] at the center of mass of each body; the last row is the world's."""
    tendons: Float[Array, " tendons"]
    """`J M^-1 J^T` of each tendon [1/kg]."""


def inverse_weights(model: Model) -> InverseWeights:
    """Inverse weights of a model."""
    q = reference_configuration(model)
    inverse = dense.solve(mass_matrix(model, q), jnp.eye(model.nv))
    J = tendon_jacobian(model)
    return InverseWeights(_of_dofs(model, inverse), _of_bodies(model, q, inverse), jnp.sum((J @ inverse) * J, axis=1))


def dof_weights(model: Model) -> Float[Array, " nv"]:
    """Diagonal of M^-1 in the reference configuration, averaged over the rotations (translations) of a joint."""
    inverse = dense.solve(mass_matrix(model, reference_configuration(model)), jnp.eye(model.nv))
    return _of_dofs(model, inverse)


def _of_dofs(model: Model, inverse: Float[Array, "nv nv"]) -> Float[Array, " nv"]:
    diagonal = jnp.diagonal(inverse)
    for link in model.topology.links:
        if link.kind in (BALL, FREE):
            mean = jnp.mean(diagonal[link.v].reshape(-1, 3), axis=1)
            diagonal = diagonal.at[link.v].set(jnp.repeat(mean, 3))
    return diagonal


def _of_bodies(model: Model, q: Float[Array, " nq"], inverse: Float[Array, "nv nv"]) -> Float[Array, "rows 2"]:
    """Mean of `J M^-1 J^T` over three directions, for the center of mass and for rotations of each body."""
    columns, poses = motion_columns(model, q), body_poses(model, q)
    masks = np.stack([carriers(model, body) for body in range(len(model.bodies.names))]).astype(float)
    centers = poses.translation + jnp.einsum("bij,bj->bi", poses.rotation, jnp.asarray(model.bodies.com))
    angular = masks[:, :, None] * columns[None, :, :3]
    moments = jnp.cross(columns[None, :, :3], jnp.broadcast_to(centers[:, None], angular.shape))
    linear = masks[:, :, None] * (columns[None, :, 3:] + moments)
    move, turn = (jnp.einsum("bik,ij,bjk->b", part, inverse, part) / 3 for part in (linear, angular))
    weights = jnp.stack([jnp.where(move < MIN_WEIGHT, turn, move), jnp.where(turn < MIN_WEIGHT, move, turn)], axis=1)
    return jnp.concatenate([weights, jnp.zeros((1, 2))])
