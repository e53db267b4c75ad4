"""Mass matrix: composite-rigid-body algorithm (Featherstone, table 6.2)."""

import jax.numpy as jnp

from truesim.core.tracing import traced_once
from truesim.core.typing import Array, Float
from truesim.physics.dynamics.links import joint_frames, link_inertias, per_dof
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_inertia


@traced_once
def mass_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """Joint-space inertia matrix M(q), armature included [kg m^2, kg m or kg]."""
    links = model.topology.links
    X, S = joint_frames(model, q)

    def composite(I: Array, X: Array) -> tuple[Array, Array]:
        return I, X.T @ I @ X

    composites = model.topology.up(composite, link_inertias(model), X)
    lower = jnp.zeros((model.nv, model.nv))
    diagonal = jnp.diag(per_dof(model, model.joints.armature))
    for i, link in enumerate(links):
        F = composites[i] @ S[i]
        diagonal = diagonal.at[link.v, link.v].add(S[i].T @ F)
        child = i
        while (parent := links[child].parent) >= 0:
            F = X[child].T @ F
            lower = lower.at[link.v, links[parent].v].set(F.T @ S[parent])
            child = parent
    coupled = tendon_inertia(model)
    return lower + diagonal + lower.T if coupled is None else lower + diagonal + lower.T + coupled
