"""Springs and dampers of joints and tendons, and gravity compensation."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.tap import Port
from truesim.core.typing import Array, Float
from truesim.physics.dynamics import body_poses, external_forces
from truesim.physics.dynamics.links import joined, joint_of_dof, per_dof
from truesim.physics.model.kinds import BALL, FIXED, FREE
from truesim.physics.model.model import Model
from truesim.physics.model.structure import structure_of
from truesim.physics.model.tendons import tendon_jacobian, tendon_lengths
from truesim.physics.model.topology import Link

SPRING = Port("joint.spring_torque", "dofs", "N m|N", "Force of the joint springs.", velocity="joint.velocity")
DAMPING = Port("joint.damping_torque", "dofs", "N m|N", "Force of the joint dampers.", velocity="joint.velocity")


def spring_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Force of the joint springs, `-stiffness * (q - springref)` [N m or N]; a rotation vector for ball joints."""
    stretched = [
        link.kind.difference(q[link.q], _rest(model, link)) for link in model.topology.links if link.kind != FIXED
    ]
    return -per_dof(model, model.joints.stiffness) * joined(stretched)


def damping_forces(model: Model, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Force of the joint dampers, `-damping * v` [N m or N]."""
    return -per_dof(model, model.joints.damping) * v


def tendon_forces(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Force of springs and dampers along the tendons on each degree of freedom [N m or N].

    A spring is slack between the two lengths of `spring_length`.
    """
    tendons, J = model.tendons, tendon_jacobian(model)
    length, slack = tendon_lengths(model, q), jnp.asarray(tendons.spring_length)
    stretched = jnp.maximum(length - slack[:, 1], 0.0) - jnp.maximum(slack[:, 0] - length, 0.0)
    return J.T @ (-tendons.stiffness * stretched - tendons.damping * (J @ v))


class GravityCompensation(NamedTuple):
    """Upward forces at the centers of mass of bodies, as forces on each degree of freedom [N m or N]."""

    passive: Float[Array, " nv"]
    by_actuators: Float[Array, " nv"] | None
    """Part that counts as a force of the actuators; None if there is none."""


def gravity_compensation(model: Model, q: Float[Array, " nq"]) -> GravityCompensation | None:
    """Forces that balance `gravcomp` times the weight of each body; None if no body has any."""
    bodies = np.array(structure_of(model).gravcomp, dtype=int)
    if not len(bodies):
        return None
    up = -jnp.asarray(model.bodies.gravcomp * model.bodies.mass)[:, None] * jnp.asarray(model.gravity)[None]
    force = jnp.einsum("bji,bj->bi", body_poses(model, q).rotation, up)
    wrench = jnp.concatenate([jnp.cross(jnp.asarray(model.bodies.com), force), force], axis=1)
    total = external_forces(model, q, wrench)
    actuated = np.array([model.joints.actuator_gravcomp[j] for j in joint_of_dof(model)], dtype=bool)
    if not actuated.any():
        return GravityCompensation(total, None)
    return GravityCompensation(jnp.where(actuated, 0.0, total), jnp.where(actuated, total, 0.0))


def _rest(model: Model, link: Link) -> Float[Array, " _"]:
    """Coordinates at which the link's spring is at rest."""
    if link.kind == FREE:
        return jnp.concatenate([model.bodies.position[link.body], model.bodies.orientation[link.body]])
    if link.kind == BALL:
        return jnp.array([1.0, 0.0, 0.0, 0.0])
    return jnp.asarray(model.joints.springref[link.joint, None])
