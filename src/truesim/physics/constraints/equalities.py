"""Rows of equality constraints: connect, weld, and couplings of joints and tendons by polynomials."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.math.spatial.rotation import matrix_quaternion, normalize, quaternion_matrix
from truesim.math.spatial.transform import Pose
from truesim.physics.constraints.impedance import impedance, spring, stiffness
from truesim.physics.constraints.weights import InverseWeights
from truesim.physics.dynamics import body_poses, integrate, reference_configuration
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_lengths

ROWS_OF_EQUALITY = {"connect": 3, "weld": 6, "joint": 1, "tendon": 1}
"""Number of rows of each kind of equality constraint."""


def equality_rows(
    model: Model, state: tuple[Array, Array], weights: InverseWeights, shortest: Float[Array, ""]
) -> SoftConstraints:
    """Rows of all equality constraints, with forces of either sign."""
    q, v = state
    violation = violations(model, q)
    J = jax.jacfwd(lambda dq: violations(model, integrate(model, q, dq)))(jnp.zeros(model.nv))
    kinds = model.equalities.kinds
    own = np.repeat(np.arange(len(kinds)), [ROWS_OF_EQUALITY[kind] for kind in kinds])
    solimp = jnp.asarray(model.equalities.solimp)[own]
    k, b = spring(jnp.asarray(model.equalities.solref)[own], solimp, shortest)
    groups = (own[:, None] == own[None]).astype(float)
    squared = groups @ violation**2  # all rows of a constraint share the impedance at the norm of its violation
    size = jnp.sqrt(jnp.where(squared > 0, squared, 1.0))
    strength = impedance(solimp, jnp.where(squared > 0, size, 0.0))
    reference = -b * (J @ v) - k * strength * violation - _bias(model, q, v, own)
    D = stiffness(strength, _weights(model, weights))
    infinite = jnp.full(len(own), jnp.inf)
    return SoftConstraints(J, reference, D, -infinite, infinite)


def _bias(model: Model, q: Array, v: Array, own: np.ndarray) -> Float[Array, " rows"]:
    """`dJ/dt v` of connect and weld: acceleration of the violation at zero joint acceleration; MuJoCo has no others."""
    placed = np.array([model.equalities.kinds[k] in ("connect", "weld") for k in own])
    if not placed.any():
        return jnp.zeros(len(own))

    def rate(t: Array) -> Array:
        moved = lambda t: violations(model, integrate(model, q, t * v))  # noqa: E731
        return jax.jvp(moved, (t,), (jnp.ones(()),))[1]

    return jnp.where(placed, jax.jvp(rate, (jnp.zeros(()),), (jnp.ones(()),))[1], 0.0)


def violations(model: Model, q: Float[Array, " nq"]) -> Float[Array, " rows"]:
    """Violation of every row: difference of points [m], scaled rotation [m], difference of coordinates [m or rad]."""
    poses = body_poses(model, q)
    return jnp.concatenate([VIOLATIONS[kind](model, k, q, poses) for k, kind in enumerate(model.equalities.kinds)])


def _connect(model: Model, k: int, q: Array, poses: Pose) -> Float[Array, "3"]:
    anchors = jnp.asarray(model.equalities.anchor[k])
    ends = [_frame(poses, body).point(anchors[i]) for i, body in enumerate(model.equalities.objects[k])]
    return ends[0] - ends[1]


def _weld(model: Model, k: int, q: Array, poses: Pose) -> Float[Array, "6"]:
    """Difference of the anchors, and the vector part of the quaternion between the two frames times `torque_scale`."""
    first, second = (_frame(poses, body).rotation for body in model.equalities.objects[k])
    kept = quaternion_matrix(normalize(jnp.asarray(model.equalities.orientation[k])))
    turned = matrix_quaternion(second.T @ first @ kept)
    return jnp.concatenate([_connect(model, k, q, poses), model.equalities.torque_scale[k] * turned[1:]])


def _joints(model: Model, k: int, q: Array, poses: Pose) -> Float[Array, "1"]:
    links, ref = {link.joint: link for link in model.topology.links}, jnp.asarray(model.joints.ref)
    first, second = model.equalities.objects[k]
    y = q[links[first].q_start] - ref[first]
    return _coupled(model, k, y, jnp.zeros(()) if second < 0 else q[links[second].q_start] - ref[second])


def _tendons(model: Model, k: int, q: Array, poses: Pose) -> Float[Array, "1"]:
    stretched = tendon_lengths(model, q) - tendon_lengths(model, reference_configuration(model))
    first, second = model.equalities.objects[k]
    return _coupled(model, k, stretched[first], jnp.zeros(()) if second < 0 else stretched[second])


def _coupled(model: Model, k: int, y: Array, x: Array) -> Float[Array, "1"]:
    """`y - p(x)` with the polynomial of the coefficients."""
    c = jnp.asarray(model.equalities.coefficients[k])
    return (y - (c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * c[4])))))[None]


VIOLATIONS: dict[str, Callable[[Model, int, Array, Pose], Array]] = {
    "connect": _connect,
    "weld": _weld,
    "joint": _joints,
    "tendon": _tendons,
}
"""Violation of one constraint, by kind."""


def _frame(poses: Pose, body: int) -> Pose:
    return Pose.identity() if body < 0 else jax.tree.map(lambda x: x[body], poses)


def _weights(model: Model, weights: InverseWeights) -> Float[Array, " rows"]:
    """Inverse weight of every row: the sum over the two bodies, joints or tendons."""
    dof = {link.joint: link.v_start for link in model.topology.links}
    parts = []
    for kind, (first, second) in zip(model.equalities.kinds, model.equalities.objects, strict=True):
        if kind in ("connect", "weld"):
            both = weights.bodies[first] + weights.bodies[second]
            parts.append(jnp.repeat(both, 3)[: ROWS_OF_EQUALITY[kind]])
        elif kind == "joint":
            own = weights.dofs[dof[first]]
            parts.append((own if second < 0 else own + weights.dofs[dof[second]])[None])
        else:
            own = weights.tendons[first]
            parts.append((own if second < 0 else own + weights.tendons[second])[None])
    return jnp.concatenate(parts)
