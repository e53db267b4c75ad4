"""Energy, center of mass and momentum."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.dynamics.kinematics import body_poses, link_poses, link_velocities
from truesim.physics.dynamics.links import joint_frames, link_inertias, per_dof
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_inertia


def kinetic_energy(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
    """Kinetic energy `1/2 v^T M v`, rotors included [J]."""
    V, _ = link_velocities(model, joint_frames(model, q), q, v)
    bodies = jnp.einsum("li,lij,lj->", V, jnp.stack(link_inertias(model)), V)
    rotors, coupled = per_dof(model, model.joints.armature) @ v**2, tendon_inertia(model)
    return 0.5 * (bodies + (rotors if coupled is None else rotors + v @ coupled @ v))


def potential_energy(model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """Potential energy of gravity, zero at the world's origin [J]; springs are not included."""
    return -(model.bodies.mass @ _body_centers(model, q)) @ model.gravity


def center_of_mass(model: Model, q: Float[Array, " nq"]) -> Float[Array, "3"]:
    """Center of mass of the whole robot in the world [m]."""
    mass = jnp.asarray(model.bodies.mass)
    return mass @ _body_centers(model, q) / jnp.sum(mass)


def momentum(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
    """Angular [N m s] and linear [N s] momentum of all bodies about the world's origin; rotors not included."""
    V, _ = link_velocities(model, joint_frames(model, q), q, v)
    momenta = zip(link_poses(model, q), link_inertias(model), V, strict=True)
    return sum((X.force(I @ V) for X, I, V in momenta), start=jnp.zeros(6))


def _body_centers(model: Model, q: Float[Array, " nq"]) -> Float[Array, "bodies 3"]:
    poses = body_poses(model, q)
    return poses.translation + jnp.einsum("bij,bj->bi", poses.rotation, model.bodies.com)
