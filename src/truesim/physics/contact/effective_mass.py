"""Effective mass of constraints in the reference configuration."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.physics.contact.base import EffectiveMass
from truesim.physics.contact.closure import closure
from truesim.physics.contact.detection import Detector, geom_poses
from truesim.physics.dynamics import carriers, mass_matrix, motion_columns, reference_configuration
from truesim.physics.model.model import Model

REDUNDANT_MOBILITY = 1e-9
"""Mobility, relative to the most mobile row, below which a row of an equality constraint is redundant."""


def effective_masses(model: Model, detector: Detector) -> EffectiveMass:
    """Effective mass of each pair, degree of freedom and equality: inverse of `J M^-1 J^T`, averaged."""
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
    return EffectiveMass(
        pairs=jnp.stack(pairs) if pairs else jnp.zeros(0),
        dofs=1 / jnp.diagonal(inverse),
        equalities=1 / jnp.where(loops > REDUNDANT_MOBILITY * stiffest, loops, stiffest),
    )


def _mobility(inverse: Array, columns: Array, place: Float[Array, "3"], reach: Array) -> Float[Array, ""]:
    """Mean over directions of the inverse mass of a geom [1/kg], at its center and rotating about it."""
    angular = columns[:, :3]
    linear = columns[:, 3:] + jnp.cross(angular, jnp.broadcast_to(place, angular.shape))
    moved = jnp.einsum("ik,ij,jk->", linear, inverse, linear)
    turned = jnp.einsum("ik,ij,jk->", angular, inverse, angular)
    return (moved + reach**2 * turned) / 3


def _reach(model: Model, g: int) -> Float[Array, ""]:
    """Approximate radius of a geom [m]."""
    mesh = model.geoms.meshes[g]
    if mesh is not None:
        return jnp.asarray(np.max(np.linalg.norm(mesh.vertices, axis=1)))
    size = jnp.asarray(model.geoms.size[g])
    return jnp.zeros(()) if model.geoms.shapes[g] == "plane" else jnp.sqrt(size @ size)
