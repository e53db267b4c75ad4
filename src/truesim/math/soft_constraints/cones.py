"""Elliptic friction cones of MuJoCo's constraint model: force, cost and Hessian of each contact.

With `y = J a - reference` and `U = scale * y`, `N = U[0]` and `T = |U[1:]|`, a contact is in one of three zones
(MuJoCo documentation, "Computation", section on friction cones):

    top:     N >= mu T          no force
    bottom:  mu N + T <= 0      force -D y
    middle:  otherwise          cost Dm (N - mu T)^2 / 2 with Dm = D[0] / (mu^2 (1 + mu^2))
"""

from typing import NamedTuple

import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float

MIN_SQUARED_SLIP = 1e-30
"""Added to the squared tangential part, so that its root has a derivative at zero."""


class Cones(NamedTuple):
    """Elliptic friction cones on an acceleration; contacts without force have zero stiffness."""

    J: Float[Array, "contacts 6 n"]
    """Jacobian: normal, two tangents, torsion about the normal and rolling about the tangents."""
    reference: Float[Array, "contacts 6"]
    """Value of `J a` at which the force is zero."""
    stiffness: Float[Array, "contacts 6"]
    """Force per deviation (D); zero beyond the contact's dimension."""
    mu: Float[Array, " contacts"]
    """Regularized friction coefficient of the cone."""
    scale: Float[Array, "contacts 6"]
    """`mu`, then the friction coefficient of each direction; zero beyond the contact's dimension."""

    @classmethod
    def none(cls, n: int) -> "Cones":
        """No contacts."""
        empty = jnp.zeros((0, 6))
        return cls(jnp.zeros((0, 6, n)), empty, empty, jnp.zeros(0), empty)


class Zones(NamedTuple):
    """Zone of each contact, and the quantities that decide it."""

    top: Bool[Array, " contacts"]
    bottom: Bool[Array, " contacts"]
    U: Float[Array, "contacts 6"]
    N: Float[Array, " contacts"]
    T: Float[Array, " contacts"]

    @property
    def middle(self) -> Bool[Array, " contacts"]:
        """True on the surface of the cone."""
        return ~self.top & ~self.bottom


def deviations(cones: Cones, a: Float[Array, " n"]) -> Float[Array, "contacts 6"]:
    """`J a - reference` of every contact."""
    return cones.J @ a - cones.reference


def zones(cones: Cones, y: Float[Array, "contacts 6"]) -> Zones:
    """Zone of every contact at the deviations y."""
    U = cones.scale * y
    N, T = U[:, 0], jnp.sqrt(jnp.sum(U[:, 1:] ** 2, axis=1) + MIN_SQUARED_SLIP)
    top = cones.mu * T <= N
    return Zones(top, (cones.mu * N + T <= 0) & ~top, U, N, T)


def forces(cones: Cones, y: Float[Array, "contacts 6"]) -> Float[Array, "contacts 6"]:
    """Force of every contact along its directions, the negative derivative of its cost."""
    zone = zones(cones, y)
    normal = -_middle_stiffness(cones) * (zone.N - cones.mu * zone.T) * cones.mu
    along = -(normal / zone.T)[:, None] * zone.U[:, 1:] * cones.scale[:, 1:]
    surface = jnp.concatenate([normal[:, None], along], axis=1)
    inside = jnp.where(zone.bottom[:, None], -cones.stiffness * y, surface)
    return jnp.where(zone.top[:, None], 0.0, inside)


def cost(cones: Cones, y: Float[Array, "contacts 6"]) -> Float[Array, ""]:
    """Sum of the costs of all contacts."""
    zone = zones(cones, y)
    surface = _middle_stiffness(cones) * (zone.N - cones.mu * zone.T) ** 2
    inside = jnp.where(zone.bottom, jnp.sum(cones.stiffness * y**2, axis=1), surface)
    return jnp.sum(jnp.where(zone.top, 0.0, inside)) / 2


def hessian_blocks(cones: Cones, y: Float[Array, "contacts 6"]) -> Float[Array, "contacts 6 6"]:
    """Second derivative of the cost in y.

    In the middle zone, with `t = U[1:] / T`, `S = diag(scale)`:
    `Dm S [[1, -mu t'], [-mu t, mu N/T t t' + (mu^2 - mu N/T) 1]] S`.
    """
    zone = zones(cones, y)
    t, mu = zone.U[:, 1:] / zone.T[:, None], cones.mu
    ratio = mu * zone.N / zone.T
    turned = ratio[:, None, None] * t[:, :, None] * t[:, None, :]
    tangential = turned + (mu**2 - ratio)[:, None, None] * jnp.eye(5)[None]
    side = -mu[:, None] * t
    top = jnp.concatenate([jnp.ones_like(mu)[:, None], side], axis=1)[:, None, :]
    inner = jnp.concatenate([top, jnp.concatenate([side[:, :, None], tangential], axis=2)], axis=1)
    scaled = (_middle_stiffness(cones)[:, None, None] * cones.scale[:, :, None]) * inner * cones.scale[:, None, :]
    bottom = cones.stiffness[:, :, None] * jnp.eye(6)[None]
    blocks = jnp.where(zone.bottom[:, None, None], bottom, scaled)
    return jnp.where(zone.top[:, None, None], 0.0, blocks)


def _middle_stiffness(cones: Cones) -> Float[Array, " contacts"]:
    """`Dm = D[0] / (mu^2 (1 + mu^2))`."""
    return cones.stiffness[:, 0] / (cones.mu**2 * (1 + cones.mu**2))
