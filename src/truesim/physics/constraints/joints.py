"""Rows of joints and tendons: friction with bounded force, and limits.

The Stribeck effect, which MuJoCo does not have, raises the bound of a joint's friction at low speed.
"""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.math.spatial.rotation import normalize, quaternion_log
from truesim.physics.constraints.impedance import impedance, spring, stiffness
from truesim.physics.model.kinds import BALL
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_jacobian, tendon_lengths
from truesim.physics.model.topology import Link


def friction_rows(
    model: Model, links: list[Link], moving: tuple[Array, Array], weight: Array, shortest: Array
) -> SoftConstraints:
    """Friction of every degree of freedom of these joints, given all velocities and bounds."""
    v, bound = moving
    dofs = np.concatenate([np.arange(link.v_start, link.v.stop) for link in links])
    j = np.concatenate([np.full(link.kind.nv, link.joint) for link in links])
    solimp = model.joints.solimpfriction[j]
    _, b = spring(model.joints.solreffriction[j], solimp, shortest)
    D = stiffness(impedance(solimp, jnp.zeros(len(dofs))), weight[dofs])
    limit = bound[dofs]
    return SoftConstraints(jnp.eye(model.nv)[dofs], -b * v[dofs], D, -limit, limit)


def limit_rows(
    model: Model, links: list[Link], state: tuple[Array, Array], weight: Array, shortest: Array
) -> SoftConstraints:
    """Two rows for every limited hinge or slide, one for every limited ball; inactive ones have no stiffness."""
    q, v = state
    scalar = [link for link in links if link.kind != BALL]
    balls = [link for link in links if link.kind == BALL]
    distance, J = _distances(model, scalar, balls, q)
    rows = [*scalar, *scalar, *balls]
    j, dofs = np.array([link.joint for link in rows]), np.array([link.v_start for link in rows])
    margin, solimp = jnp.asarray(model.joints.margin)[j], model.joints.solimplimit[j]
    return _unilateral((distance, margin), J, v, (model.joints.solreflimit[j], solimp, weight[dofs]), shortest)


def tendon_friction_rows(
    model: Model, tendons: np.ndarray, v: Float[Array, " nv"], weight: Array, shortest: Array
) -> SoftConstraints:
    """Friction along these tendons."""
    J, solimp = tendon_jacobian(model)[tendons], jnp.asarray(model.tendons.solimpfriction)[tendons]
    _, b = spring(jnp.asarray(model.tendons.solreffriction)[tendons], solimp, shortest)
    D = stiffness(impedance(solimp, jnp.zeros(len(tendons))), weight[tendons])
    limit = jnp.asarray(model.tendons.frictionloss)[tendons]
    return SoftConstraints(J, -b * (J @ v), D, -limit, limit)


def tendon_limit_rows(
    model: Model, tendons: np.ndarray, state: tuple[Array, Array], weight: Array, shortest: Array
) -> SoftConstraints:
    """Two rows for each of these tendons."""
    q, v = state
    length, bounds = tendon_lengths(model, q)[tendons], jnp.asarray(model.tendons.range)[tendons]
    J, both = tendon_jacobian(model)[tendons], np.tile(tendons, 2)
    distance = jnp.concatenate([length - bounds[:, 0], bounds[:, 1] - length])
    margin, solimp = jnp.asarray(model.tendons.margin)[both], jnp.asarray(model.tendons.solimplimit)[both]
    numbers = jnp.asarray(model.tendons.solreflimit)[both], solimp, weight[both]
    return _unilateral((distance, margin), jnp.concatenate([J, -J]), v, numbers, shortest)


def _unilateral(
    place: tuple[Array, Array], J: Array, v: Array, numbers: tuple[Array, Array, Array], shortest: Array
) -> SoftConstraints:
    """Rows that push where the distance is below the margin, given `solref`, `solimp` and inverse weights."""
    (distance, margin), (solref, solimp, weight) = place, numbers
    k, b = spring(solref, solimp, shortest)
    strength = impedance(solimp, distance - margin)
    reference = -b * (J @ v) - k * strength * (distance - margin)
    D = jnp.where(distance < margin, stiffness(strength, weight), 0.0)
    return SoftConstraints(J, reference, D, jnp.zeros(len(D)), jnp.full(len(D), jnp.inf))


SMALLEST_TURN = 2e-15
"""Angle of a ball joint below which MuJoCo takes x as its axis [rad]."""


def _distances(model: Model, scalar: list[Link], balls: list[Link], q: Array) -> tuple[Array, Array]:
    """Distances to the lower limits, upper limits and largest angles of balls, with their Jacobians."""
    j, dofs = (np.array([getattr(link, at) for link in scalar], dtype=int) for at in ("joint", "v_start"))
    bounds, unit = jnp.asarray(model.joints.range)[j], jnp.eye(model.nv)[dofs]
    position = q[np.array([link.q_start for link in scalar], dtype=int)]
    distances, jacobians = [position - bounds[:, 0], bounds[:, 1] - position], [unit, -unit]
    for link in balls:
        turn = quaternion_log(normalize(q[link.q]))
        turns = turn @ turn > SMALLEST_TURN**2
        angle = jnp.where(turns, jnp.sqrt(jnp.where(turns, turn @ turn, 1.0)), 0.0)
        axis = jnp.where(turns, turn / jnp.where(turns, angle, 1.0), np.array([1.0, 0.0, 0.0]))
        distances.append((jnp.max(model.joints.range[link.joint]) - angle)[None])
        jacobians.append(jnp.zeros((1, model.nv)).at[0, link.v].set(-axis))
    return jnp.concatenate(distances), jnp.concatenate(jacobians)
