"""How contact points, limits, dry friction and closed chains see the velocities of a model."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.contact.detection import ContactPoints, Detector
from truesim.core.typing import Array, Float
from truesim.dynamics import carriers, motion_columns
from truesim.dynamics.links import per_dof
from truesim.model.kinds import BALL
from truesim.model.model import Model
from truesim.model.topology import Link
from truesim.spatial.rotation import normalise, quaternion_log

LARGEST_FRICTION = 1e3
"""A larger coefficient acts as this one, which holds up to 0.06 degrees from the normal's own direction."""


class ContactRows(NamedTuple):
    """Rows of contact points: relative velocity of the second body along each direction = J v."""

    normal: Float[Array, "points nv"]
    tangent: Float[Array, "points d nv"]
    """Two tangents, then spin about the normal and rolling about the tangents where needed."""
    friction: Float[Array, "points d"]
    """Coefficient of friction along each."""


def contact_rows(model: Model, q: Float[Array, "nq"], detector: Detector, points: ContactPoints) -> ContactRows:
    """Rows of the contact points at a configuration."""
    d = max((pair.dimension for pair in detector.pairs), default=1) - 1
    if not detector.pairs:
        return ContactRows(jnp.zeros((0, model.nv)), jnp.zeros((0, d, model.nv)), jnp.zeros((0, d)))
    directions, columns = tangent_frames(points.normal), motion_columns(model, q)
    first, second = _moved_bodies(model, detector, points)
    J = second[:, None, :] * _along(directions, points.second, columns, 1 + d)
    J = J - first[:, None, :] * _along(directions, points.first, columns, 1 + d)
    return ContactRows(J[:, 0], J[:, 1:], friction_coefficients(detector, points, d))


def _along(directions: Array, places: Array, columns: Array, count: int) -> Float[Array, "points rows nv"]:
    """Velocity at a place of each point along its directions, and then about them, of every degree of freedom."""
    forces = jnp.concatenate([jnp.cross(places[:, None, :], directions), directions], axis=2)
    torques = jnp.concatenate([directions, jnp.zeros_like(directions)], axis=2)
    return jnp.einsum("pri,ni->prn", jnp.concatenate([forces, torques], axis=1)[:, :count], columns)


def tangent_frames(normals: Float[Array, "points 3"]) -> Float[Array, "points 3 3"]:
    """Right-handed frames whose first axis is the normal, chosen as MuJoCo does."""
    steep = jnp.abs(normals[:, 1:2]) >= 0.5
    helper = jnp.where(steep, jnp.array([[0.0, 0.0, 1.0]]), jnp.array([[0.0, 1.0, 0.0]]))
    first = helper - normals * jnp.sum(normals * helper, axis=1, keepdims=True)
    first = first / jnp.sqrt(jnp.sum(first**2, axis=1, keepdims=True))
    return jnp.stack([normals, first, jnp.cross(normals, first)], axis=1)


def friction_coefficients(detector: Detector, points: ContactPoints, d: int) -> Float[Array, "points d"]:
    """Friction along each direction that a pair's dimension includes; none along the others."""
    included = np.array([[k < pair.dimension - 1 for k in range(d)] for pair in detector.pairs], dtype=bool)
    of_point = included[detector.pair_of_point()]
    mask = jnp.asarray(included)[points.pair] if detector.culls else of_point
    return jnp.where(mask, jnp.minimum(points.friction[:, :d], LARGEST_FRICTION), 0.0)


def _moved_bodies(
    model: Model, detector: Detector, points: ContactPoints
) -> tuple[Float[Array, "points nv"], Float[Array, "points nv"]]:
    """Which degrees of freedom move the first body of each point only, and the second only."""
    sides = np.zeros((2, len(detector.pairs), model.nv))
    for k, pair in enumerate(detector.pairs):
        first, second = (carriers(model, model.geoms.bodies[g]) for g in pair.geoms)
        sides[:, k] = first & ~second, second & ~first
    if detector.culls:
        return jnp.asarray(sides[0])[points.pair], jnp.asarray(sides[1])[points.pair]
    of_point = detector.pair_of_point()
    return jnp.asarray(sides[0, of_point]), jnp.asarray(sides[1, of_point])


class LimitRows(NamedTuple):
    """Rows of joint limits: distance to each limit, less the joint's margin, and its Jacobian."""

    distance: Float[Array, "rows"]
    J: Float[Array, "rows nv"]
    dof: np.ndarray
    """A degree of freedom whose inertia is that of the row."""


def limit_rows(model: Model, joints: tuple[int, ...], q: Float[Array, "nq"]) -> LimitRows:
    """Lower and upper limits of hinges and slides, largest angles of balls."""
    links = {link.joint: link for link in model.topology.links}
    scalar = [links[j] for j in joints if links[j].kind != BALL]
    balls = [links[j] for j in joints if links[j].kind == BALL]
    j, dofs = _indices(scalar, "joint"), _indices(scalar, "v_start")
    bounds, unit = jnp.asarray(model.joints.range)[j], jnp.eye(model.nv)[dofs]
    position = q[_indices(scalar, "q_start")]
    distances, jacobians = [position - bounds[:, 0], bounds[:, 1] - position], [unit, -unit]
    for link in balls:
        turn = quaternion_log(normalise(q[link.q]))
        angle = jnp.sqrt(jnp.maximum(turn @ turn, 1e-30))
        distances.append((jnp.max(model.joints.range[link.joint]) - angle)[None])
        jacobians.append(jnp.zeros((1, model.nv)).at[0, link.v].set(-turn / angle))
    rows = [*scalar, *scalar, *balls]
    margin = jnp.asarray(model.joints.margin)[_indices(rows, "joint")]
    return LimitRows(jnp.concatenate(distances) - margin, jnp.concatenate(jacobians), _indices(rows, "v_start"))


def dry_rows(model: Model, joints: tuple[int, ...]) -> tuple[Float[Array, "rows nv"], np.ndarray]:
    """Rows of dry friction, scaled by its size [N m or N], and the degree of freedom of each."""
    dofs = [i for link in model.topology.links if link.joint in joints for i in range(link.v_start, link.v.stop)]
    rows = np.array(dofs, dtype=int)
    loss = per_dof(model, model.joints.frictionloss)[rows]
    return loss[:, None] * jnp.eye(model.nv)[rows], rows


def _indices(links: list[Link], field: str) -> np.ndarray:
    return np.array([getattr(link, field) for link in links], dtype=int)
