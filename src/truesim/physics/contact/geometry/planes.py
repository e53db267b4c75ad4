"""Contact points of a plane and a solid: the deepest points of the solid. Normals point out of the plane."""

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.hull import Hull
from truesim.physics.contact.geometry.solids import direction, length
from truesim.physics.contact.geometry.touch import Touch

HEIGHT_WEIGHT = 10.0
"""Weight of height against distance when corners of a mesh are chosen; larger prefers low corners."""


def plane_points(plane: Pose, points: Float[Array, "n 3"]) -> Touch:
    """Contact points from points of a solid."""
    normal = plane.rotation[:, 2]
    distance = (points - plane.translation[None]) @ normal
    return Touch(points - distance[:, None] * normal[None] / 2, jnp.tile(normal, (points.shape[0], 1)), distance)


def plane_ball(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """Lowest point of a sphere."""
    return plane_points(plane, (solid.translation - size[0] * plane.rotation[:, 2])[None])


def plane_capsule(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """Lowest point of either end of a capsule."""
    center, reach = solid.translation - size[0] * plane.rotation[:, 2], size[1] * solid.rotation[:, 2]
    return plane_points(plane, jnp.stack([center + reach, center - reach]))


def plane_ellipsoid(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """Lowest point of an ellipsoid: `-a^2 n / |a n|` in its axes."""
    n = solid.rotation.T @ plane.rotation[:, 2]
    return plane_points(plane, solid.point(-(size**2) * n / length(size * n))[None])


def plane_cylinder(plane: Pose, size: Float[Array, "3"], solid: Pose) -> Touch:
    """Lowest point of either rim of a cylinder, and two more that form a triangle on the lower rim."""
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
    """Corners of the box face that points down most, which include the lowest corner and its lower neighbors."""
    height = (plane.rotation[:, 2] @ solid.rotation) * size
    face = jnp.argmax(jnp.abs(height))
    down = jnp.where(height > 0, -1.0, 1.0)
    first, second = (jax.nn.one_hot((face + k) % 3, 3, dtype=size.dtype) for k in (1, 2))
    flips = [1 - 2 * (a * first + b * second) for a in (0, 1) for b in (0, 1)]
    corners = jnp.stack([down * flip * size for flip in flips])
    return plane_points(plane, solid.translation[None] + corners @ solid.rotation.T)


def plane_hull(plane: Pose, hull: Hull, solid: Pose) -> Touch:
    """Four corners of a hull: the lowest, and low ones far from it and from the line between the first two."""
    normal = plane.rotation[:, 2]
    corners = solid.translation[None] + jnp.asarray(hull.corners) @ solid.rotation.T
    height = (corners - plane.translation[None]) @ normal
    chosen = [jnp.argmin(height)]
    low = -HEIGHT_WEIGHT * (height - jnp.min(height))
    first = corners[chosen[0]]
    chosen.append(jnp.argmax(low + jnp.sqrt(jnp.sum((corners - first[None]) ** 2, axis=1))))
    side = jnp.cross(normal, direction(corners[chosen[1]] - first))
    offset = (corners - first[None]) @ side
    chosen += [jnp.argmax(low + offset), jnp.argmax(low - offset)]
    return plane_points(plane, corners[jnp.stack(chosen)])
