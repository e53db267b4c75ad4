"""What every recursion starts from: each link's transform, motion subspace and inertia."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.model.kinds import HINGE, SLIDE
from truesim.model.model import Model
from truesim.model.topology import Link
from truesim.spatial.inertia import spatial_inertia
from truesim.spatial.rotation import normalise
from truesim.spatial.transform import Pose


class JointFrames(NamedTuple):
    """Kinematics of the joints at one configuration, one entry per link."""

    X: list[Pose]
    """Pose of the link in its parent."""
    S: list[Float[Array, "6 _"]]
    """Motion subspace, in the link's frame."""


def joint_frames(model: Model, q: Float[Array, "nq"]) -> JointFrames:
    """Pose in the parent and motion subspace of every link (Featherstone's jcalc and tree transform)."""
    frames = [_joint_frame(model, link, q[link.q]) for link in model.topology.links]
    return JointFrames([X for X, _ in frames], [S for _, S in frames])


def _joint_frame(model: Model, link: Link, q: Float[Array, "_"]) -> tuple[Pose, Float[Array, "6 _"]]:
    j = link.joint
    axis, anchor = model.joints.axis[j], model.joints.position[j]
    if link.joint < 0:
        axis = anchor = jnp.zeros(3)
    elif link.kind in (HINGE, SLIDE):
        q = q - model.joints.ref[j]
    X, S = link.kind.pose(axis, anchor, q), link.kind.subspace(axis, anchor, q)
    if link.first and link.kind.nq < 7:
        X = body_offset(model, link.body) @ X
    return X, S


def body_offset(model: Model, body: int) -> Pose:
    """Pose of a body in its parent with the joints at zero."""
    return Pose.from_quaternion(model.bodies.position[body], normalise(jnp.asarray(model.bodies.orientation[body])))


def link_inertias(model: Model) -> list[Float[Array, "6 6"]]:
    """Spatial inertia of every link about its origin; zero for the links inside a body with several joints."""
    bodies = model.bodies
    inertias = jax.vmap(spatial_inertia)(bodies.mass, bodies.com, bodies.inertia)
    return [inertias[link.body] if link.last else jnp.zeros((6, 6)) for link in model.topology.links]


def per_link(model: Model, x: Float[Array, "nv"]) -> list[Float[Array, "_"]]:
    """The entries of a vector over degrees of freedom that belong to each link."""
    return [x[link.v] for link in model.topology.links]


def per_dof(model: Model, x: Float[Array, "joints"]) -> Float[Array, "nv"]:
    """A number per joint, repeated for each of the joint's degrees of freedom."""
    index = [link.joint for link in model.topology.links for _ in range(link.kind.nv)]
    return jnp.asarray(x)[jnp.array(index, dtype=int)]


def joined(parts: Sequence[Float[Array, "_"]]) -> Float[Array, "nv"]:
    """One vector from the parts of each link."""
    return jnp.concatenate(parts) if parts else jnp.zeros(0)
