"""Inputs of the recursions: transform, motion subspace and inertia of each link.

They are computed for all links at once, which leaves products of small matrices to the recursions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tracing import traced_once
from truesim.core.typing import Array, Float
from truesim.math.spatial.inertia import spatial_inertia
from truesim.math.spatial.rotation import normalize
from truesim.math.spatial.transform import Pose
from truesim.physics.model.kinds import FIXED, FREE, HINGE, KINDS, SLIDE
from truesim.physics.model.model import Model


class JointFrames(NamedTuple):
    """Kinematics of the joints at one configuration, one entry per link."""

    X: list[Float[Array, "6 6"]]
    """Motion transform from the parent's frame to the link's; its transpose transforms forces back."""
    S: list[Float[Array, "6 _"]]
    """Motion subspace, in the link's frame."""


@traced_once
def joint_frames(model: Model, q: Float[Array, " nq"]) -> JointFrames:
    """Motion transform and motion subspace of every link (Featherstone's jcalc and tree transform)."""
    return JointFrames(list(jax.vmap(Pose.matrix)(joint_poses(model, q))), motion_subspaces(model, q))


def joint_poses(model: Model, q: Float[Array, " nq"]) -> Pose:
    """Pose of every link in its parent, stacked over links: the body's offset times the joint's motion."""
    moved = _by_kind(model, q, "pose")
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *moved)
    return jax.vmap(Pose.__matmul__)(_offsets(model), stacked)


def motion_subspaces(model: Model, q: Float[Array, " nq"]) -> list[Float[Array, "6 _"]]:
    """Motion subspace of every link, in the link's own frame."""
    return _by_kind(model, q, "subspace")


def _by_kind(model: Model, q: Float[Array, " nq"], method: str) -> list:
    """Result of a method of every link's joint kind, computed in a batch for each kind."""
    links = model.topology.links
    values: list = [None] * len(links)
    for kind in KINDS.values():
        members = [i for i, link in enumerate(links) if link.kind == kind]
        if not members:
            continue
        joints = np.array([links[i].joint for i in members])
        coordinates = np.array([range(links[i].q_start, links[i].q.stop) for i in members], dtype=int)
        own = q[coordinates]
        axis, anchor = jnp.zeros((2, len(members), 3))
        if kind != FIXED:
            axis, anchor = jnp.asarray(model.joints.axis)[joints], jnp.asarray(model.joints.position)[joints]
        if kind in (HINGE, SLIDE):
            own = own - jnp.asarray(model.joints.ref)[joints][:, None]
        computed = jax.vmap(getattr(kind, method))(axis, anchor, own)
        for k, i in enumerate(members):
            values[i] = jax.tree.map(lambda x, k=k: x[k], computed)
    return values


def _offsets(model: Model) -> Pose:
    """Pose, in its parent, of every link with its joint at zero; free joints start from the world."""
    bodies, links = model.bodies, model.topology.links
    poses = jax.vmap(lambda p, o: Pose.from_quaternion(p, normalize(o)))(
        jnp.asarray(bodies.position), jnp.asarray(bodies.orientation)
    )
    carried = np.array([link.first and link.kind != FREE for link in links])
    body = np.array([link.body for link in links])
    return jax.tree.map(
        lambda offset, identity: jnp.where(carried.reshape((-1,) + (1,) * identity.ndim), offset[body], identity),
        poses,
        Pose.identity(),
    )


@traced_once
def link_inertias(model: Model) -> list[Float[Array, "6 6"]]:
    """Spatial inertia of every link about its origin; zero for the links inside a body with several joints."""
    bodies = model.bodies
    inertias = jax.vmap(spatial_inertia)(*(jnp.asarray(x) for x in (bodies.mass, bodies.com, bodies.inertia)))
    return [inertias[link.body] if link.last else jnp.zeros((6, 6)) for link in model.topology.links]


def per_link(model: Model, x: Float[Array, " nv"]) -> list[Float[Array, " _"]]:
    """Entries of a vector over degrees of freedom by link."""
    return [x[link.v] for link in model.topology.links]


def per_dof(model: Model, x: Float[Array, " joints"]) -> Float[Array, " nv"]:
    """Values per joint, repeated for each of the joint's degrees of freedom."""
    return jnp.asarray(x)[joint_of_dof(model)]


def joint_of_dof(model: Model) -> np.ndarray:
    """Joint of each degree of freedom."""
    return np.array([link.joint for link in model.topology.links for _ in range(link.kind.nv)], dtype=int)


def joined(parts: Sequence[Float[Array, " _ *columns"]]) -> Float[Array, " n *columns"]:
    """Concatenation of the parts of each link."""
    return jnp.concatenate(parts) if parts else jnp.zeros(0)
