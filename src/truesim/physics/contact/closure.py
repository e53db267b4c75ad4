"""Equality constraints of closed chains and coupled joints: violations, Jacobians and projection."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.math.spatial.rotation import normalize, quaternion_matrix
from truesim.math.spatial.transform import Pose
from truesim.physics.dynamics import body_poses, carriers, integrate, motion_columns
from truesim.physics.model.model import Model

PROJECTION_STEPS = 3
"""Newton steps of the projection at the end of a time step; each squares the violation."""
PROJECTION_COMPLIANCE = 1e-10
"""Compliance of the projection relative to the mobility of a row: the violation that a step leaves."""

EQUALITY_ROWS = {"connect": 3, "weld": 6, "joint": 1}
"""Number of rows of each kind of equality constraint."""


class Closure(NamedTuple):
    """Violation and Jacobian of equality constraints."""

    violation: Float[Array, " rows"]
    """Distance [m], angle [rad] or coordinate [m or rad]."""
    J: Float[Array, "rows nv"]


def closure(model: Model, q: Float[Array, " nq"]) -> Closure:
    """All equality constraints of a model at a configuration."""
    if not model.equalities.names:
        return Closure(jnp.zeros(0), jnp.zeros((0, model.nv)))
    poses, columns = body_poses(model, q), motion_columns(model, q)
    parts = []
    for k, kind in enumerate(model.equalities.kinds):
        if kind == "joint":
            parts.append(_coupling(model, k, q))
        else:
            parts.append(_shared_point(model, k, poses, columns))
            if kind == "weld":
                parts.append(_shared_orientation(model, k, poses, columns))
    return Closure(*(jnp.concatenate(rows) for rows in zip(*parts, strict=True)))


def close_chains(
    model: Model, q: Float[Array, " nq"], M: Float[Array, "nv nv"], mass: Float[Array, " rows"]
) -> Float[Array, " nq"]:
    """Nearest configuration, in the metric M, in which all chains are closed.

    Args:
        model: The robot.
        q: A configuration near it.
        M: Mass matrix near it.
        mass: Effective mass of each row.
    """
    factors = dense.factor(M)
    for _ in range(PROJECTION_STEPS):
        violation, J = closure(model, q)
        moved = dense.substitute(factors, J.T)
        mobility = J @ moved + jnp.diag(PROJECTION_COMPLIANCE / mass)
        q = integrate(model, q, -moved @ dense.solve(mobility, violation))
    return q


def _frame(poses: Pose, body: int) -> Pose:
    return Pose.identity() if body < 0 else jax.tree.map(lambda x: x[body], poses)


def _carried(model: Model, k: int, columns: Array) -> tuple[Array, Array]:
    """Columns of the degrees of freedom that move the first and the second body of an equality."""
    first, second = (carriers(model, body).astype(float)[:, None] for body in model.equalities.objects[k])
    return columns * first, columns * second


def _shared_point(model: Model, k: int, poses: Pose, columns: Array) -> Closure:
    """Coincident anchors: difference of their positions in the world."""
    ends = [
        _frame(poses, body).point(anchor)
        for body, anchor in zip(model.equalities.objects[k], jnp.asarray(model.equalities.anchor[k]), strict=True)
    ]
    rows = [
        (moved[:, 3:] + jnp.cross(moved[:, :3], jnp.broadcast_to(end, (model.nv, 3)))).T
        for moved, end in zip(_carried(model, k, columns), ends, strict=True)
    ]
    return Closure(ends[0] - ends[1], rows[0] - rows[1])


def _shared_orientation(model: Model, k: int, poses: Pose, columns: Array) -> Closure:
    """Fixed relative orientation: the small rotation between the two bodies, in world axes."""
    first, second = (_frame(poses, body).rotation for body in model.equalities.objects[k])
    kept = normalize(jnp.asarray(model.equalities.orientation[k]))
    off = first @ quaternion_matrix(kept) @ second.T
    violation = jnp.stack([off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]]) / 2
    moved = _carried(model, k, columns)
    return Closure(violation, (moved[0][:, :3] - moved[1][:, :3]).T)


def _coupling(model: Model, k: int, q: Array) -> Closure:
    """Joint coupling by a polynomial: `q1 - ref1 - p(q2 - ref2)`."""
    links = {link.joint: link for link in model.topology.links}
    first, second = model.equalities.objects[k]
    coefficients = jnp.asarray(model.equalities.coefficients[k])
    x = jnp.zeros(()) if second < 0 else q[links[second].q_start] - model.joints.ref[second]
    powers, derivatives = jnp.ones(5), jnp.zeros(5)
    for i in range(1, 5):
        powers = powers.at[i].set(powers[i - 1] * x)
        derivatives = derivatives.at[i].set(i * powers[i - 1])
    y = q[links[first].q_start] - model.joints.ref[first]
    J = jnp.zeros((1, model.nv)).at[0, links[first].v_start].set(1.0)
    if second >= 0:
        J = J.at[0, links[second].v_start].add(-coefficients @ derivatives)
    return Closure((y - coefficients @ powers)[None], J)
