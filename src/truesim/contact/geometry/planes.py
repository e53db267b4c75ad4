"""A plane against every solid: the solid's points that lie deepest. Normals point out of the plane."""

import jax
import jax.numpy as jnp

from truesim.contact.geometry.hull import Hull
from truesim.contact.geometry.solids import direction, length
from truesim.contact.geometry.touch import Touch
from truesim.core.typing import Array, Float
from truesim.spatial.transform import Pose

SPREAD = 10.0
"""Corners of a mesh count as lower than others by so many times less than they are farther apart."""


def plane_points(plane: Pose, points: Float[Array, "n 3"]) -> Touch:
    """Points of a solid against a plane."""
    normal = plane.rotation[:, 2]
    distance = (points - plane.translation[None]) @ normal
    return Touch(points - distance[:, None] * normal[None] / 2, jnp.tile(normal, (points.shape[0], 1)), distance)


def plane_ball(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """The lowest point."""
    return plane_points(plane, (solid.translation - size[0] * plane.rotation[:, 2])[None])


def plane_capsule(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """The lowest point of either end."""
    centre, reach = solid.translation - size[0] * plane.rotation[:, 2], size[1] * solid.rotation[:, 2]
    return plane_points(plane, jnp.stack([centre + reach, centre - reach]))


def plane_ellipsoid(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """The lowest point: `-a^2 n / |a n|` in the ellipsoid's axes."""
    n = solid.rotation.T @ plane.rotation[:, 2]
    return plane_points(plane, solid.point(-(size**2) * n / length(size * n))[None])


def plane_cylinder(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """The lowest point of either rim, and two more that make a triangle on the lower one."""
    normal, axis = plane.rotation[:, 2], solid.rotation[:, 2]
    axis = jnp.where(normal @ axis > 0, -1.0, 1.0) * axis
    across = -(normal - (normal @ axis) * axis)
    upright = across @ across < 1e-20
    down = size[0] * jnp.where(upright, solid.rotation[:, 0], direction(jnp.where(upright, axis, across)))
    side = jnp.cross(down, axis) * jnp.sqrt(0.75)
    lower, upper = solid.translation + size[1] * axis, solid.translation - size[1] * axis
    points = [lower + down, upper + down, lower - down / 2 + side, lower - down / 2 - side]
    return plane_points(plane, jnp.stack(points))


def plane_box(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """The corners of the face that looks down: the lowest corner and its lower neighbours are among them."""
    height = (plane.rotation[:, 2] @ solid.rotation) * size
    face = jnp.argmax(jnp.abs(height))
    down = jnp.where(height > 0, -1.0, 1.0)
    first, second = (jax.nn.one_hot((face + k) % 3, 3, dtype=size.dtype) for k in (1, 2))
    flips = [1 - 2 * (a * first + b * second) for a in (0, 1) for b in (0, 1)]
    corners = jnp.stack([down * flip * size for flip in flips])
    return plane_points(plane, solid.translation[None] + corners @ solid.rotation.T)


def plane_hull(plane: Pose, hull: Hull, solid: Pose) -> Touch:
    """Four corners: the lowest, and low ones far from it, from each other and from the line between them."""
    normal = plane.rotation[:, 2]
    corners = solid.translation[None] + jnp.asarray(hull.corners) @ solid.rotation.T
    height = (corners - plane.translation[None]) @ normal
    chosen = [jnp.argmin(height)]
    low = -SPREAD * (height - jnp.min(height))
    first = corners[chosen[0]]
    chosen.append(jnp.argmax(low + jnp.sqrt(jnp.sum((corners - first[None]) ** 2, axis=1))))
    side = jnp.cross(normal, direction(corners[chosen[1]] - first))
    offset = (corners - first[None]) @ side
    chosen += [jnp.argmax(low + offset), jnp.argmax(low - offset)]
    return plane_points(plane, corners[jnp.stack(chosen)])
