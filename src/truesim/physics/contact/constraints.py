"""Jacobians of contact points, joint limits and joint friction."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float, Int
from truesim.math.spatial.rotation import normalize, quaternion_log
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.dynamics import carriers, motion_columns
from truesim.physics.dynamics.joint_friction import joint_friction_bound
from truesim.physics.dynamics.links import per_dof
from truesim.physics.model.kinds import BALL
from truesim.physics.model.model import Model
from truesim.physics.model.topology import Link

MAX_FRICTION_COEFFICIENT = 1e3
"""Upper bound of friction coefficients; at this value a contact holds up to 0.06 degrees from the normal."""


class ContactConstraints(NamedTuple):
    """Jacobians of contact points: velocity of the second body relative to the first, along each direction."""

    normal: Float[Array, "points nv"]
    tangent: Float[Array, "points d nv"]
    """Two tangents, then torsion about the normal and rolling about the tangents where needed."""
    friction: Float[Array, "points d"]
    """Friction coefficient along each direction."""


def contact_constraints(
    model: Model, q: Float[Array, " nq"], detector: Detector, points: ContactPoints
) -> ContactConstraints:
    """Jacobians of the contact points at a configuration."""
    d = max((pair.dimension for pair in detector.pairs), default=1) - 1
    if not detector.pairs:
        return ContactConstraints(jnp.zeros((0, model.nv)), jnp.zeros((0, d, model.nv)), jnp.zeros((0, d)))
    directions, columns = tangent_frames(points.normal), motion_columns(model, q)
    first, second = _moved_bodies(model, detector, points)
    J = second[:, None, :] * _along(directions, points.second, columns, 1 + d)
    J = J - first[:, None, :] * _along(directions, points.first, columns, 1 + d)
    return ContactConstraints(J[:, 0], J[:, 1:], friction_coefficients(detector, points, d))


def _along(directions: Array, places: Array, columns: Array, count: int) -> Float[Array, "points rows nv"]:
    """Velocity along the directions of each point, and about them, per unit of each degree of freedom."""
    forces = jnp.concatenate([jnp.cross(places[:, None, :], directions), directions], axis=2)
    torques = jnp.concatenate([directions, jnp.zeros_like(directions)], axis=2)
    return jnp.einsum("pri,ni->prn", jnp.concatenate([forces, torques], axis=1)[:, :count], columns)


def tangent_frames(normals: Float[Array, "points 3"]) -> Float[Array, "points 3 3"]:
    """Right-handed frames with the normal as first axis, as in MuJoCo."""
    steep = jnp.abs(normals[:, 1:2]) >= 0.5
    helper = jnp.where(steep, jnp.array([[0.0, 0.0, 1.0]]), jnp.array([[0.0, 1.0, 0.0]]))
    first = helper - normals * jnp.sum(normals * helper, axis=1, keepdims=True)
    first = first / jnp.sqrt(jnp.sum(first**2, axis=1, keepdims=True))
    return jnp.stack([normals, first, jnp.cross(normals, first)], axis=1)


def friction_coefficients(detector: Detector, points: ContactPoints, d: int) -> Float[Array, "points d"]:
    """Friction coefficients along the directions that a pair's dimension includes; zero along the others."""
    included = np.array([[k < pair.dimension - 1 for k in range(d)] for pair in detector.pairs], dtype=bool)
    of_point = included[detector.pair_of_point()]
    mask = jnp.asarray(included)[points.pair] if detector.culls else of_point
    return jnp.where(mask, jnp.minimum(points.friction[:, :d], MAX_FRICTION_COEFFICIENT), 0.0)


def _moved_bodies(
    model: Model, detector: Detector, points: ContactPoints
) -> tuple[Float[Array, "points nv"], Float[Array, "points nv"]]:
    """Masks of the degrees of freedom that move only the first body of each point, and only the second."""
    sides = np.zeros((2, len(detector.pairs), model.nv))
    for k, pair in enumerate(detector.pairs):
        first, second = (carriers(model, model.geoms.bodies[g]) for g in pair.geoms)
        sides[:, k] = first & ~second, second & ~first
    if detector.culls:
        return jnp.asarray(sides[0])[points.pair], jnp.asarray(sides[1])[points.pair]
    of_point = detector.pair_of_point()
    return jnp.asarray(sides[0, of_point]), jnp.asarray(sides[1, of_point])


class LimitConstraints(NamedTuple):
    """Joint limits: distance to each limit less the joint's margin, and its Jacobian."""

    distance: Float[Array, " rows"]
    J: Float[Array, "rows nv"]
    dof: np.ndarray
    """Degree of freedom whose effective mass applies to each limit."""


def limit_constraints(model: Model, joints: tuple[int, ...], q: Float[Array, " nq"]) -> LimitConstraints:
    """Lower and upper limits of hinges and slides, largest angles of balls."""
    links = {link.joint: link for link in model.topology.links}
    scalar = [links[j] for j in joints if links[j].kind != BALL]
    balls = [links[j] for j in joints if links[j].kind == BALL]
    j, dofs = _indices(scalar, "joint"), _indices(scalar, "v_start")
    bounds, unit = jnp.asarray(model.joints.range)[j], jnp.eye(model.nv)[dofs]
    position = q[_indices(scalar, "q_start")]
    distances, jacobians = [position - bounds[:, 0], bounds[:, 1] - position], [unit, -unit]
    for link in balls:
        turn = quaternion_log(normalize(q[link.q]))
        angle = jnp.sqrt(jnp.maximum(turn @ turn, 1e-30))
        distances.append((jnp.max(model.joints.range[link.joint]) - angle)[None])
        jacobians.append(jnp.zeros((1, model.nv)).at[0, link.v].set(-turn / angle))
    rows = [*scalar, *scalar, *balls]
    margin = jnp.asarray(model.joints.margin)[_indices(rows, "joint")]
    return LimitConstraints(jnp.concatenate(distances) - margin, jnp.concatenate(jacobians), _indices(rows, "v_start"))


def joint_friction_dofs(model: Model, joints: tuple[int, ...]) -> Int[np.ndarray, " rows"]:
    """Degrees of freedom of these joints, in the order of the tree."""
    dofs = [i for link in model.topology.links if link.joint in joints for i in range(link.v_start, link.v.stop)]
    return np.array(dofs, dtype=int)


def joint_friction_constraints(
    model: Model, dofs: Int[np.ndarray, " rows"], v: Float[Array, " nv"] | None = None
) -> Float[Array, "rows nv"]:
    """Jacobian of joint friction, scaled by its bound [N m or N].

    Args:
        model: The robot.
        dofs: Degrees of freedom with friction.
        v: Velocity at which stiction is evaluated; without it the bound is `frictionloss` alone.
    """
    loss = per_dof(model, model.joints.frictionloss) if v is None else joint_friction_bound(model, v)
    return loss[dofs][:, None] * jnp.eye(model.nv)[dofs]


def _indices(links: list[Link], field: str) -> np.ndarray:
    return np.array([getattr(link, field) for link in links], dtype=int)
