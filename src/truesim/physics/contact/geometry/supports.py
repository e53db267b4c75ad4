"""Convex solids by their support functions, and by the distance of another solid's corners."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.physics.contact.geometry import solids
from truesim.physics.contact.geometry.hull import Hull
from truesim.physics.contact.geometry.solids import Solid, Surface, direction, length
from truesim.physics.contact.geometry.touch import UNUSED_DISTANCE

FACE_TOLERANCE = 1e-9
"""Distance outside of the hull up to which a projected point counts as on a face [m]."""

Support = Callable[[Float[Array, "3"], Float[Array, "3"]], Float[Array, "3"]]
"""Support function: farthest point along a direction, for a size."""


class Convex(NamedTuple):
    """Kind of convex solid, as functions of its size and of a point or direction in its own frame."""

    support: Support
    surface: Solid | None
    """Distance and direction of a point; None if the solid is a polyhedron."""
    corner: Solid | None
    """Distance and direction of another solid's corner; None if no part of the solid is flat."""
    reach: Callable[[Float[Array, "3"]], Float[Array, ""]]
    """Approximate radius [m]."""
    normals: Float[np.ndarray, "faces 3"]
    """Face normals or axes, from which the direction of largest separation is initialized."""

    @property
    def is_flat(self) -> bool:
        """True if the solid has flat parts."""
        return self.corner is not None


def box_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """Corner farthest along n."""
    return jnp.where(n < 0, -1.0, 1.0) * size


def ellipsoid_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """`a^2 n / |a n|`, the point farthest along n."""
    return size**2 * n / length(size * n)


def cylinder_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """Point of a rim farthest along n."""
    height = jnp.where(n[2] < 0, -1.0, 1.0) * size[1]
    return jnp.concatenate([size[0] * direction(n[:2]), height[None]])


def hull_support(hull: Hull, n: Float[Array, "3"]) -> Float[Array, "3"]:
    """Corner farthest along n."""
    corners = jnp.asarray(hull.corners)
    return corners[jnp.argmax(corners @ n)]


def over_face(hull: Hull, p: Float[Array, "3"]) -> Surface:
    """Height of a point over the face above which it is highest, and its normal; unused if it is beside that face."""
    normals = jnp.asarray(hull.normals)
    offsets = jnp.asarray(np.sum(hull.normals * hull.faces[:, 0], axis=1))
    heights = normals @ p - offsets
    face = jnp.argmax(heights)
    height, normal = heights[face], normals[face]
    below = normals @ (p - height * normal) - offsets
    return jnp.where(jnp.all(below < FACE_TOLERANCE), height, UNUSED_DISTANCE), normal


def hull_convex(hull: Hull) -> Convex:
    """Convex solid of a hull, which has no size parameters."""
    reach = np.max(np.linalg.norm(hull.corners, axis=1))
    return Convex(
        support=lambda _, n: hull_support(hull, n),
        surface=None,
        corner=lambda _, p: over_face(hull, p),
        reach=lambda _: jnp.asarray(reach),
        normals=np.unique(np.round(hull.normals, 9), axis=0),
    )


AXES = np.concatenate([np.eye(3), -np.eye(3)])
"""Directions of the axes, both signs."""
CONVEX = {
    "ellipsoid": Convex(ellipsoid_support, solids.ellipsoid, None, length, AXES),
    "cylinder": Convex(cylinder_support, solids.cylinder, solids.cylinder, lambda size: length(size[:2]), AXES),
    "box": Convex(box_support, None, solids.box, length, AXES),
}
"""Convex solids other than hulls of meshes, by shape."""
