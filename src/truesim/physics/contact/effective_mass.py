"""Effective mass of constraints in the reference configuration."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.base import EffectiveMass
from truesim.physics.contact.closure import closure
from truesim.physics.contact.detection import Detector, geom_poses
from truesim.physics.dynamics import carriers, mass_matrix, motion_columns, reference_configuration
from truesim.physics.model.model import Model

REDUNDANT_MOBILITY = 1e-9
"""Mobility, relative to the most mobile row, below which a row of an equality constraint is redundant."""
MAX_SPIN_MOBILITY = 30.0
"""Maximum mobility of a geom that turns with its whole size as lever arm, relative to that with its true lever arms.

Larger lets a fast capsule stop at a thin plate more surely, smaller lets more steps of thin rods converge."""


def effective_masses(model: Model, detector: Detector) -> EffectiveMass:
    """Effective mass of each pair, degree of freedom and equality: inverse of `J M^-1 J^T`, averaged."""
    q = reference_configuration(model)
    inverse = dense.solve(mass_matrix(model, q), jnp.eye(model.nv))
    columns, poses = motion_columns(model, q), geom_poses(model, q)
    mobility = {}
    for g in sorted({g for pair in detector.pairs for g in pair.geoms}):
        moves = carriers(model, model.geoms.bodies[g]).astype(float)[:, None]
        pose = Pose(poses.rotation[g], poses.translation[g])
        mobility[g] = _mobility(inverse, columns * moves, pose, (_reach(model, g), _arms2(model, g)))
    pairs = [1 / (mobility[a] + mobility[b]) for a, b in (pair.geoms for pair in detector.pairs)]
    J = closure(model, q).J
    loops = jnp.sum((J @ inverse) * J, axis=1)
    stiffest = jnp.max(loops, initial=jnp.finfo(inverse.dtype).tiny)
    return EffectiveMass(
        pairs=jnp.stack(pairs) if pairs else jnp.zeros(0),
        dofs=1 / jnp.diagonal(inverse),
        equalities=1 / jnp.where(loops > REDUNDANT_MOBILITY * stiffest, loops, stiffest),
    )


def _mobility(inverse: Array, columns: Array, pose: Pose, arms: tuple[Array, Array]) -> Float[Array, ""]:
    """Mean over directions of the inverse mass of a geom [1/kg], at its center and rotating about it.

    The lever arm of a rotation is the size of the geom. About its own axis a thin rod turns so easily, `1 / (m r^2)`,
    that the result would be far above that of any point of its surface; lever arms about each axis then bound it.
    """
    angular = columns[:, :3]
    linear = columns[:, 3:] + jnp.cross(angular, jnp.broadcast_to(pose.translation, angular.shape))
    moved = jnp.einsum("ik,ij,jk->", linear, inverse, linear)
    turned = jnp.einsum("ik,ij,jk->", angular, inverse, angular)
    (reach, arms2), own = arms, angular @ pose.rotation
    true = moved + arms2 @ jnp.einsum("ik,ij,jk->k", own, inverse, own)
    return jnp.minimum(moved + reach**2 * turned, MAX_SPIN_MOBILITY * true) / 3


def _reach(model: Model, g: int) -> Float[Array, ""]:
    """Approximate radius of a geom [m]."""
    mesh = model.geoms.meshes[g]
    if mesh is not None:
        return jnp.asarray(np.max(np.linalg.norm(mesh.vertices, axis=1)))
    size = jnp.asarray(model.geoms.size[g])
    return jnp.zeros(()) if model.geoms.shapes[g] == "plane" else jnp.sqrt(size @ size)


def _arms2(model: Model, g: int) -> Float[Array, "3"]:
    """Squared lever arms of a geom's surface about its own axes [m^2]."""
    mesh, size = model.geoms.meshes[g], jnp.asarray(model.geoms.size[g])
    if mesh is not None:
        squares = np.asarray(mesh.vertices) ** 2
        return jnp.asarray(np.max(squares.sum(axis=1, keepdims=True) - squares, axis=0))
    match model.geoms.shapes[g]:
        case "plane":
            return jnp.zeros(3)
        case "sphere":
            return jnp.full(3, size[0] ** 2)
        case "capsule" | "cylinder":
            size = jnp.stack([size[0], size[0], size[1]])
    return size @ size - size**2
