"""The mass matrix: the composite-rigid-body algorithm (Featherstone, table 6.2)."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.dynamics.links import joint_frames, link_inertias, per_dof
from truesim.model.model import Model
from truesim.spatial.transform import Pose


def mass_matrix(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    """Joint-space inertia matrix M(q), armature included [kg m^2, kg m or kg]."""
    links = model.topology.links
    X, S = joint_frames(model, q)

    def composite(I: Array, X: Pose) -> tuple[Array, Array]:
        return I, X.inertia(I)

    composites = model.topology.up(composite, link_inertias(model), X)
    M = jnp.zeros((model.nv, model.nv))
    for i, link in enumerate(links):
        F = composites[i] @ S[i]
        M = M.at[link.v, link.v].set(S[i].T @ F)
        child = i
        while (parent := links[child].parent) >= 0:
            F = X[child].matrix().T @ F
            block = F.T @ S[parent]
            M = M.at[link.v, links[parent].v].set(block).at[links[parent].v, link.v].set(block.T)
            child = parent
    return M + jnp.diag(per_dof(model, model.joints.armature))
