"""Springs and dampers in the joints."""

import jax.numpy as jnp

from truesim.core.tap import Port
from truesim.core.typing import Array, Float
from truesim.dynamics.links import joined, per_dof
from truesim.model.kinds import BALL, FIXED, FREE
from truesim.model.model import Model
from truesim.model.topology import Link

SPRING = Port("joint.spring_torque", "dofs", "N m|N", "Force of the joint springs.", velocity="joint.velocity")
DAMPING = Port("joint.damping_torque", "dofs", "N m|N", "Force of the joint dampers.", velocity="joint.velocity")


def spring_forces(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv"]:
    """Force of the joint springs, `-stiffness * (q - springref)` [N m or N]; a rotation vector for ball joints."""
    stretched = [
        link.kind.difference(q[link.q], _rest(model, link)) for link in model.topology.links if link.kind != FIXED
    ]
    return -per_dof(model, model.joints.stiffness) * joined(stretched)


def damping_forces(model: Model, v: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Force of the joint dampers, `-damping * v` [N m or N]."""
    return -per_dof(model, model.joints.damping) * v


def _rest(model: Model, link: Link) -> Float[Array, "_"]:
    """Coordinates at which the link's spring is at rest."""
    if link.kind == FREE:
        return jnp.concatenate([model.bodies.position[link.body], model.bodies.orientation[link.body]])
    if link.kind == BALL:
        return jnp.array([1.0, 0.0, 0.0, 0.0])
    return jnp.asarray(model.joints.springref[link.joint, None])
