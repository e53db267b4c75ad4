"""Fixed tendons: lengths and their derivatives."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model


def tendon_lengths(model: Model, q: Float[Array, " nq"]) -> Float[Array, " tendons"]:
    """Length of each tendon: sum of coefficient times coordinate over its joints [m]."""
    joints, coordinates, _ = _scalar_joints(model)
    return jnp.asarray(model.tendons.coefficients)[:, joints] @ q[coordinates]


def tendon_jacobian(model: Model) -> Float[Array, "tendons nv"]:
    """Derivative of the lengths: velocity of each tendon = J v."""
    joints, _, dofs = _scalar_joints(model)
    coefficients = jnp.asarray(model.tendons.coefficients)[:, joints]
    return jnp.zeros((len(model.tendons.names), model.nv)).at[:, dofs].set(coefficients)


def _scalar_joints(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hinges and slides: their joints, coordinates in q and in v."""
    links = [link for link in model.topology.links if link.kind in (HINGE, SLIDE)]
    rows = [(link.joint, link.q_start, link.v_start) for link in links]
    joints, coordinates, dofs = np.array(rows, dtype=int).reshape(-1, 3).T
    return joints, coordinates, dofs
