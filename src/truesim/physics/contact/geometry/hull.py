"""Convex hulls of meshes, and the signed distance of a point."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.contact.geometry.solids import Surface, direction, length
from truesim.physics.model.model import Mesh

MAX_HULL_CORNERS = 64
"""Number of corners above which a hull is simplified to its extreme points in as many directions."""


@dataclasses.dataclass(frozen=True, eq=False)
class Hull:
    """Convex polyhedron with triangular faces."""

    corners: Float[np.ndarray, "corners 3"]
    faces: Float[np.ndarray, "faces 3 3"]
    """Corners of each triangle, counterclockwise seen from outside [m]."""
    normals: Float[np.ndarray, "faces 3"]
    """Outward unit normal of each triangle."""


def hull(mesh: Mesh) -> Hull:
    """Convex hull of a mesh; the mesh may have holes, but must enclose a volume."""
    points = np.asarray(mesh.vertices, dtype=float)
    found = _qhull(points, mesh.name)
    if len(found.vertices) > MAX_HULL_CORNERS:
        points = points[_extreme(points[found.vertices], found.vertices)]
        found = _qhull(points, mesh.name)
    normals, offsets = found.equations[:, :3], found.equations[:, 3]
    assert np.all(normals @ points.mean(axis=0) + offsets < 0), "normals of a hull point outwards"
    faces = points[found.simplices]
    turned = np.sum(np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0]) * normals, axis=1) < 0
    faces[turned] = faces[turned][:, ::-1]
    return Hull(points[found.vertices], faces, normals)


def _qhull(points: np.ndarray, name: str) -> "libraries.scipy.spatial.ConvexHull":
    try:
        return libraries.scipy.spatial.ConvexHull(points)
    except (libraries.scipy.spatial.QhullError, ValueError):
        raise TruesimError(
            f"Mesh {name!r} is flat or has fewer than four points: it encloses no volume and cannot touch anything."
        ) from None


def _extreme(corners: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Indices of the corners that are extreme along directions distributed evenly over the sphere."""
    k = np.arange(MAX_HULL_CORNERS) + 0.5
    height, turn = 1 - 2 * k / MAX_HULL_CORNERS, np.pi * (1 + 5**0.5) * k
    ring = np.sqrt(1 - height**2)
    directions = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], axis=1)
    return indices[np.unique(np.argmax(directions @ corners.T, axis=1))]


def polyhedron(solid: Hull, p: Float[Array, "3"]) -> Surface:
    """Signed distance and direction of a point: from the nearest face outside, from the nearest plane inside."""
    a, b, c = (jnp.asarray(solid.faces[:, k]) for k in range(3))
    normals = jnp.asarray(solid.normals)
    heights = jnp.sum((p[None] - a) * normals, axis=1)
    candidates = jnp.stack([_on_segment(p, *ends) for ends in ((a, b), (b, c), (c, a))])
    inside = jnp.all(
        jnp.stack([_left_of(p, *ends, normals) for ends in ((a, b), (b, c), (c, a))]) & (heights >= 0)[None], axis=0
    )
    projected = p[None] - heights[:, None] * normals
    gaps = jnp.sum((candidates - p[None, None]) ** 2, axis=2).reshape(-1)
    nearest = candidates.reshape(-1, 3)[jnp.argmin(gaps)]
    face = jnp.argmin(jnp.where(inside, heights, jnp.inf))
    above = jnp.any(inside) & (heights[face] ** 2 <= jnp.min(gaps))
    nearest = jnp.where(above, projected[face], nearest)
    top = jnp.argmax(heights)
    outside = heights[top] > 0
    away = jnp.where(above, normals[face], direction(p - nearest))
    return (
        jnp.where(outside, jnp.where(above, heights[face], length(p - nearest)), heights[top]),
        jnp.where(outside, away, normals[top]),
    )


def _on_segment(p: Array, a: Float[Array, "n 3"], b: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    along = b - a
    t = jnp.sum((p[None] - a) * along, axis=1) / jnp.sum(along**2, axis=1)
    return a + jnp.clip(t, 0.0, 1.0)[:, None] * along


def _left_of(p: Array, a: Array, b: Array, normals: Array) -> Array:
    """True if the point lies on the inner side of an edge of each triangle."""
    return jnp.sum((p[None] - a) * jnp.cross(normals, b - a), axis=1) >= 0
