"""Convex solids by their support points, the farthest along a direction, and by the distance of another's corners."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.contact.geometry import solids
from truesim.contact.geometry.hull import Hull
from truesim.contact.geometry.solids import Solid, Surface, direction, length
from truesim.contact.geometry.touch import FAR
from truesim.core.typing import Array, Float

BESIDE = 1e-9
"""A point is over a face if its foot is no farther than this out of the hull [m]."""

Support = Callable[[Float[Array, "3"], Float[Array, "3"]], Float[Array, "3"]]
"""The point of a solid of some size that is farthest along a direction."""


class Convex(NamedTuple):
    """A kind of convex solid, as functions of its size and of a point or direction in its own frame."""

    support: Support
    surface: Solid | None
    """Distance and direction of a point; None if the solid is a polyhedron."""
    corner: Solid | None
    """Distance and direction of another solid's corner; None if no part of the solid is flat."""
    reach: Callable[[Float[Array, "3"]], Float[Array, ""]]
    """Roughly how far it extends [m]."""
    normals: Float[np.ndarray, "faces 3"]
    """Directions of its faces, or of its axes, along which another solid may be separated most."""

    @property
    def is_flat(self) -> bool:
        """Whether some part of it is."""
        return self.corner is not None


def box_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """A corner."""
    return jnp.where(n < 0, -1.0, 1.0) * size


def ellipsoid_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """`a^2 n / |a n|`."""
    return size**2 * n / length(size * n)


def cylinder_support(size: Float[Array, "3"], n: Float[Array, "3"]) -> Float[Array, "3"]:
    """A point of a rim."""
    height = jnp.where(n[2] < 0, -1.0, 1.0) * size[1]
    return jnp.concatenate([size[0] * direction(n[:2]), height[None]])


def hull_support(hull: Hull, n: Float[Array, "3"]) -> Float[Array, "3"]:
    """A corner."""
    corners = jnp.asarray(hull.corners)
    return corners[jnp.argmax(corners @ n)]


def over_face(hull: Hull, p: Float[Array, "3"]) -> Surface:
    """Height of a point over the face above which it is highest, and its normal; far away if it is beside that face."""
    normals = jnp.asarray(hull.normals)
    offsets = jnp.asarray(np.sum(hull.normals * hull.faces[:, 0], axis=1))
    heights = normals @ p - offsets
    face = jnp.argmax(heights)
    height, normal = heights[face], normals[face]
    below = normals @ (p - height * normal) - offsets
    return jnp.where(jnp.all(below < BESIDE), height, FAR), normal


def hull_convex(hull: Hull) -> Convex:
    """A hull, whose size is its own."""
    reach = np.max(np.linalg.norm(hull.corners, axis=1))
    return Convex(
        support=lambda _, n: hull_support(hull, n),
        surface=None,
        corner=lambda _, p: over_face(hull, p),
        reach=lambda _: jnp.asarray(reach),
        normals=np.unique(np.round(hull.normals, 9), axis=0),
    )


AXES = np.concatenate([np.eye(3), -np.eye(3)])
CONVEX = {
    "ellipsoid": Convex(ellipsoid_support, solids.ellipsoid, None, length, AXES),
    "cylinder": Convex(cylinder_support, solids.cylinder, solids.cylinder, lambda size: length(size[:2]), AXES),
    "box": Convex(box_support, None, solids.box, length, AXES),
}
"""Solids that are not hulls of meshes."""
