"""Contact points with their parameters, as rows of a pyramid or as elliptic cones."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Bool, Float, Int
from truesim.math.soft_constraints.cones import Cones
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.physics.constraints.impedance import impedance, spring, stiffness
from truesim.physics.constraints.weights import InverseWeights
from truesim.physics.dynamics import carriers, motion_columns
from truesim.physics.model.model import Model

MIN_FRICTION = 1e-5
"""MuJoCo's lower bound of friction coefficients."""
MIN_SOLMIX = 1e-15
"""Weight of `solref` and `solimp` that counts as zero in MuJoCo."""


class ContactSlots(NamedTuple):
    """Contact points between geoms, a fixed number; unused ones have the geoms -1."""

    geoms: Int[Array, "slots 2"]
    """Geoms of each point; the normal points from the first to the second."""
    explicit: Int[Array, " slots"]
    """Index of the explicit pair of the file; -1 if the parameters come from the geoms."""
    distance: Float[Array, " slots"]
    """Distance between the surfaces, negative where they overlap [m]."""
    position: Float[Array, "slots 3"]
    """Midpoint between the surfaces [m]."""
    frame: Float[Array, "slots 3 3"]
    """Rows: normal and two tangents."""
    overflow: Int[Array, ""]
    """Number of contact points beyond the slots."""

    @property
    def used(self) -> Bool[Array, " slots"]:
        """True for slots with a contact point."""
        return self.geoms[:, 0] >= 0


class ContactParameters(NamedTuple):
    """Parameters of contact points."""

    dimension: Int[Array, " slots"]
    """MuJoCo's condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction."""
    friction: Float[Array, "slots 5"]
    margin: Float[Array, " slots"]
    """Distance below which forces act [m]."""
    solref: Float[Array, "slots 2"]
    solreffriction: Float[Array, "slots 2"]
    solimp: Float[Array, "slots 5"]


def contact_parameters(model: Model, slots: ContactSlots) -> ContactParameters:
    """Parameters of each contact point: those of its explicit pair, or the mix of its geoms, as in MuJoCo.

    The geom with higher priority decides. With equal priority, friction and condim are the larger ones, `solref` and
    `solimp` means weighted by `solmix` (the smaller `solref` if either is given directly); margins add up in any case.
    """
    geoms, explicit = jnp.maximum(slots.geoms, 0), jnp.maximum(slots.explicit, 0)
    if not model.contacts.names:
        return _mixed(model, geoms[:, 0], geoms[:, 1])
    contacts = model.contacts
    own = ContactParameters(
        jnp.asarray(contacts.dimensions)[explicit],
        *(jnp.asarray(x)[explicit] for x in (contacts.friction, contacts.margin, contacts.solref)),
        *(jnp.asarray(x)[explicit] for x in (contacts.solreffriction, contacts.solimp)),
    )
    given = slots.explicit >= 0
    return ContactParameters(
        *(
            jnp.where(given.reshape((-1,) + (1,) * (x.ndim - 1)), x, y)
            for x, y in zip(own, _mixed(model, geoms[:, 0], geoms[:, 1]), strict=True)
        )
    )


def _mixed(model: Model, a: Int[Array, " slots"], b: Int[Array, " slots"]) -> ContactParameters:
    geoms = model.geoms
    priority, condim = jnp.asarray(geoms.priority), jnp.asarray(geoms.condim)
    first, second = priority[a] > priority[b], priority[a] < priority[b]

    def decided(x: Array, y: Array, mixed: Array) -> Array:
        shape = (-1,) + (1,) * (mixed.ndim - 1)
        return jnp.where(first.reshape(shape), x, jnp.where(second.reshape(shape), y, mixed))

    friction = jnp.asarray(geoms.friction)[:, np.array([0, 0, 1, 2, 2])]
    weight = _first_weight(jnp.asarray(geoms.solmix)[a], jnp.asarray(geoms.solmix)[b])[:, None]
    solref, solimp = jnp.asarray(geoms.solref), jnp.asarray(geoms.solimp)
    standard = ((solref[a, 0] > 0) & (solref[b, 0] > 0))[:, None]
    mean = weight * solref[a] + (1 - weight) * solref[b]
    margin = jnp.asarray(geoms.margin)
    return ContactParameters(
        dimension=decided(condim[a], condim[b], jnp.maximum(condim[a], condim[b])),
        friction=decided(friction[a], friction[b], jnp.maximum(friction[a], friction[b])),
        margin=margin[a] + margin[b],
        solref=decided(solref[a], solref[b], jnp.where(standard, mean, jnp.minimum(solref[a], solref[b]))),
        solreffriction=jnp.zeros((a.shape[0], 2)),
        solimp=decided(solimp[a], solimp[b], weight * solimp[a] + (1 - weight) * solimp[b]),
    )


def _first_weight(x: Array, y: Array) -> Array:
    """Share of the first geom by `solmix`; all if only its weight is positive, half if none is."""
    valid_x, valid_y = x >= MIN_SOLMIX, y >= MIN_SOLMIX
    share = x / jnp.where(valid_x & valid_y, x + y, 1.0)
    return jnp.where(valid_x & valid_y, share, jnp.where(valid_x, 1.0, jnp.where(valid_y, 0.0, 0.5)))


class ContactRows(NamedTuple):
    """Jacobian and numbers that both kinds of cones share."""

    J: Float[Array, "slots 6 nv"]
    """Relative motion along normal and tangents, then rotation about them."""
    active: Bool[Array, " slots"]
    friction: Float[Array, "slots 5"]
    dimension: Int[Array, " slots"]
    strength: Float[Array, " slots"]
    """Impedance."""
    weight: Float[Array, " slots"]
    """Inverse weight of the two bodies [1/kg]."""
    push: Float[Array, " slots"]
    """Part of the reference acceleration due to the distance [m/s^2]."""
    damping: Float[Array, "slots 2"]
    """Damping of the reference acceleration along the normal and along friction [1/s]."""


def contact_rows(
    model: Model, q: Float[Array, " nq"], slots: ContactSlots, weights: InverseWeights, shortest: Float[Array, ""]
) -> ContactRows:
    """Jacobians and numbers of all contact points."""
    numbers = contact_parameters(model, slots)
    bodies = jnp.asarray(np.array([*model.geoms.bodies], dtype=int))[jnp.maximum(slots.geoms, 0)]
    weight = weights.bodies[bodies[:, 0], 0] + weights.bodies[bodies[:, 1], 0]
    return rows_of_numbers(numbers, _jacobian(model, q, slots, bodies), slots.distance, slots.used, (weight, shortest))


def rows_of_numbers(
    numbers: ContactParameters, J: Array, distance: Array, used: Array, weighing: tuple[Array, Array]
) -> ContactRows:
    """Rows of contact points with these parameters, Jacobians and distances; `weighing`: weights, shortest time."""
    weight, shortest = weighing
    over = distance - numbers.margin
    strength = impedance(numbers.solimp, over)
    k, b = spring(numbers.solref, numbers.solimp, shortest)
    own = jnp.any(numbers.solreffriction != 0, axis=1)[:, None]
    _, along = spring(jnp.where(own, numbers.solreffriction, numbers.solref), numbers.solimp, shortest)
    return ContactRows(
        J=J,
        active=used & (over < 0),
        friction=jnp.maximum(numbers.friction, MIN_FRICTION),
        dimension=numbers.dimension,
        strength=strength,
        weight=weight,
        push=-k * strength * over,
        damping=jnp.stack([b, along], axis=1),
    )


def _jacobian(model: Model, q: Array, slots: ContactSlots, bodies: Array) -> Float[Array, "slots 6 nv"]:
    """Motion of the second body relative to the first at each point, along normal and tangents."""
    moves = [carriers(model, body) for body in range(len(model.bodies.names))]
    mask = jnp.asarray(np.stack([*moves, np.zeros(model.nv, dtype=bool)]).astype(float))
    columns = motion_columns(model, q)
    angular, sign = columns[None, :, :3], mask[bodies[:, 1]] - mask[bodies[:, 0]]
    points = jnp.broadcast_to(slots.position[:, None], (slots.position.shape[0], model.nv, 3))
    linear = columns[None, :, 3:] + jnp.cross(jnp.broadcast_to(angular, points.shape), points)
    along = jnp.einsum("sij,svj->siv", slots.frame, linear)
    about = jnp.einsum("sij,vj->siv", slots.frame, columns[:, :3])
    return jnp.concatenate([along, about], axis=1) * sign[:, None]


def elliptic_cones(rows: ContactRows, v: Float[Array, " nv"], impratio: Float[Array, ""]) -> Cones:
    """Elliptic cones: stiffness of friction is `impratio` times that of the normal, scaled by the coefficients."""
    frictionless = rows.dimension == 1
    live = jnp.arange(6)[None] < rows.dimension[:, None]
    mu = jnp.where(frictionless, 1.0, rows.friction[:, 0] / jnp.sqrt(impratio))
    scale = jnp.where(live, jnp.concatenate([mu[:, None], rows.friction], axis=1), 0.0)
    D = jnp.where(rows.active, stiffness(rows.strength, rows.weight), 0.0)
    ratio = impratio * (rows.friction / rows.friction[:, :1]) ** 2
    along = jnp.concatenate([rows.damping[:, :1], jnp.repeat(rows.damping[:, 1:], 5, axis=1)], axis=1)
    reference = (-along * (rows.J @ v)).at[:, 0].add(rows.push)
    return Cones(
        J=rows.J,
        reference=reference,
        stiffness=jnp.where(live, D[:, None] * jnp.concatenate([jnp.ones_like(D)[:, None], ratio], axis=1), 0.0),
        mu=mu,
        scale=scale,
    )


def pyramid_rows(rows: ContactRows, v: Float[Array, " nv"], impratio: Float[Array, ""]) -> SoftConstraints:
    """Edges of pyramids: `J[0] + mu_k J[k]` and `J[0] - mu_k J[k]` for every friction direction; the normal if none."""
    normal, others = rows.J[:, :1], rows.friction[:, :, None] * rows.J[:, 1:]
    edges = jnp.stack([normal + others, normal - others], axis=2).reshape(rows.J.shape[0], 10, -1)
    frictionless = rows.dimension == 1
    edges = edges.at[:, 0].set(jnp.where(frictionless[:, None], normal[:, 0], edges[:, 0]))
    count = jnp.where(frictionless, 1, 2 * (rows.dimension - 1))
    live = (jnp.arange(10)[None] < count[:, None]) & rows.active[:, None]
    first = rows.friction[:, 0]
    ratio = 2 * (1 + first**2) * first**2 / impratio
    D = stiffness(rows.strength, rows.weight * jnp.where(frictionless, 1.0, ratio))
    reference = -rows.damping[:, :1] * (edges @ v) + rows.push[:, None]
    flat = edges.reshape(-1, edges.shape[2])
    size = flat.shape[0]
    return SoftConstraints(
        flat,
        reference.reshape(-1),
        jnp.where(live, D[:, None], 0.0).reshape(-1),
        jnp.zeros(size),
        jnp.full(size, jnp.inf),
    )
