"""Sizes of the inertia that constraints feel, in the configuration in which the file draws the robot."""

import jax.numpy as jnp
import numpy as np

from truesim.contact.base import Weights
from truesim.contact.closure import closure
from truesim.contact.detection import Detector, geom_poses
from truesim.core.typing import Array, Float
from truesim.dynamics import carriers, mass_matrix, motion_columns, reference_configuration
from truesim.model.model import Model
from truesim.numerics import dense

REDUNDANT = 1e-9
"""A row of an equality that moves by less than this part of the most mobile one constrains nothing."""


def reference_weights(model: Model, detector: Detector) -> Weights:
    """Inertia that each pair, each degree of freedom and each equality feels: inverse of `J M^-1 J^T`, averaged."""
    q = reference_configuration(model)
    inverse = dense.solve(mass_matrix(model, q), jnp.eye(model.nv))
    columns, places = motion_columns(model, q), geom_poses(model, q).translation
    mobility = {}
    for g in sorted({g for pair in detector.pairs for g in pair.geoms}):
        moves = carriers(model, model.geoms.bodies[g]).astype(float)[:, None]
        mobility[g] = _mobility(inverse, columns * moves, places[g], _reach(model, g))
    pairs = [1 / (mobility[a] + mobility[b]) for a, b in (pair.geoms for pair in detector.pairs)]
    J = closure(model, q).J
    loops = jnp.sum((J @ inverse) * J, axis=1)
    stiffest = jnp.max(loops, initial=jnp.finfo(inverse.dtype).tiny)
    return Weights(
        pairs=jnp.stack(pairs) if pairs else jnp.zeros(0),
        dofs=1 / jnp.diagonal(inverse),
        equalities=1 / jnp.where(loops > REDUNDANT * stiffest, loops, stiffest),
    )


def _mobility(inverse: Array, columns: Array, place: Float[Array, "3"], reach: Array) -> Float[Array, ""]:
    """Mean over directions of the inverse mass of a geom [1/kg]: its centre, and turned by its own size."""
    angular = columns[:, :3]
    linear = columns[:, 3:] + jnp.cross(angular, jnp.broadcast_to(place, angular.shape))
    moved = jnp.einsum("ik,ij,jk->", linear, inverse, linear)
    turned = jnp.einsum("ik,ij,jk->", angular, inverse, angular)
    return (moved + reach**2 * turned) / 3


def _reach(model: Model, g: int) -> Float[Array, ""]:
    """How far a geom reaches from its centre [m], roughly."""
    mesh = model.geoms.meshes[g]
    if mesh is not None:
        return jnp.asarray(np.max(np.linalg.norm(mesh.vertices, axis=1)))
    size = jnp.asarray(model.geoms.size[g])
    return jnp.zeros(()) if model.geoms.shapes[g] == "plane" else jnp.sqrt(size @ size)
