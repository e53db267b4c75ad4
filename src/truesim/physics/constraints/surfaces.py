"""Local geometry of the surface of a geom at a contact point: radius tensor, and motion with the size."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float, Int

FLAT = 1e8
"""Radius of curvature of a flat direction [m]; larger loses digits of the slide along it."""
ON_FEATURE = 1e-6
"""Distance from an edge, relative to the size of the geom, below which a contact point is on it."""
PLANE_KIND = 0
"""Index of the plane among the shapes, which are in MuJoCo's order: sphere, capsule, ellipsoid, cylinder, box, mesh."""


class Surface(NamedTuple):
    """Surface at one point, in the geom's frame."""

    radius: Float[Array, "3 3"]
    """Hessian of the support function: derivative of the point with respect to the outward normal [m]."""
    growth: Float[Array, "3 3"]
    """Derivative of the point at a fixed normal with respect to the size parameters."""


def surface(
    kind: Int[Array, ""],
    size: Float[Array, "3"],
    x: Float[Array, "3"],
    n: Float[Array, "3"],
    against: Int[Array, ""],
) -> Surface:
    """Surface of a shape at the point x with the outward normal n.

    Args:
        kind: Index of the shape, from `PLANE_KIND` on.
        size: MuJoCo's size parameters.
        x: Contact point.
        n: Outward normal.
        against: Index of the other shape: against a plane, polyhedra touch with vertices.
    """
    face = Surface(FLAT * jnp.eye(3), jnp.zeros((3, 3)))
    shapes = [
        face,
        _sphere(size, n),
        _capsule(size, x, n),
        _ellipsoid(size, n),
        _cylinder(size, x, n, against == PLANE_KIND),
        _box(size, x, against == PLANE_KIND),
        Surface(jnp.where(against == PLANE_KIND, 0.0, FLAT) * jnp.eye(3), jnp.zeros((3, 3))),
        face,
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts)[jnp.minimum(kind, len(shapes) - 1)], *shapes)


def _sphere(size: Array, n: Array) -> Surface:
    return Surface(size[0] * jnp.eye(3), jnp.zeros((3, 3)).at[:, 0].set(n))


def _capsule(size: Array, x: Array, n: Array) -> Surface:
    """Half spheres at the ends, a cylinder between them."""
    center = x[2] - size[0] * n[2]
    at_end = jnp.abs(center) > (1 - ON_FEATURE) * size[1]
    along = jnp.zeros((3, 3)).at[2, 2].set(1.0)
    radius = size[0] * jnp.eye(3) + jnp.where(at_end, 0.0, FLAT) * along
    growth = jnp.zeros((3, 3)).at[:, 0].set(n).at[2, 1].set(jnp.where(at_end, jnp.sign(center), 0.0))
    return Surface(radius, growth)


def _ellipsoid(size: Array, n: Array) -> Surface:
    """Support point `A n / h` with `A = diag(size^2)` and `h = sqrt(n A n)`."""

    def support(size: Array, n: Array) -> Array:
        squared = size**2
        return squared * n / jnp.sqrt(jnp.maximum(jnp.sum(squared * n**2), 1e-30))

    return Surface(jax.jacfwd(support, 1)(size, n), jax.jacfwd(support, 0)(size, n))


def _cylinder(size: Array, x: Array, n: Array, on_plane: Array) -> Surface:
    """Side, caps, and rims whose radius is that of the rim over the sine between normal and axis."""
    radial = jnp.sqrt(jnp.maximum(x[0] ** 2 + x[1] ** 2, 1e-30))
    out = jnp.stack([x[0], x[1], jnp.zeros(())]) / radial
    around = jnp.stack([-out[1], out[0], jnp.zeros(())])
    across, along = jnp.outer(around, around), jnp.zeros((3, 3)).at[2, 2].set(1.0)
    at_side, at_cap = radial > (1 - ON_FEATURE) * size[0], jnp.abs(x[2]) > (1 - ON_FEATURE) * size[1]
    rim = on_plane | (at_side & at_cap)
    sine = jnp.sqrt(jnp.maximum(n[0] ** 2 + n[1] ** 2, 1e-18))
    smooth = jnp.where(at_side, size[0] * across + FLAT * along, FLAT * jnp.eye(3))
    radius = jnp.where(rim, size[0] / sine * across, smooth)
    up = jnp.where(at_cap, jnp.sign(x[2]), 0.0)
    growth = jnp.zeros((3, 3)).at[:, 0].set(jnp.where(at_side, 1.0, 0.0) * out).at[2, 1].set(up)
    return Surface(radius, growth)


def _box(size: Array, x: Array, on_plane: Array) -> Surface:
    """Faces, edges and vertices: flat along the directions in which the point is not at the end of the box."""
    at_end = (jnp.abs(x) > (1 - ON_FEATURE) * size) | on_plane
    faces = jnp.sum(at_end) == 1
    free = jnp.where(faces | ~jnp.any(at_end), jnp.ones(3), jnp.where(at_end, 0.0, 1.0))
    return Surface(FLAT * jnp.diag(free), jnp.diag(jnp.where(at_end, jnp.sign(x), 0.0)))
