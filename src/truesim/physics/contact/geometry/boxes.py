"""Box against box: the axis of largest separation, then the overlap of two faces or the closest points of two edges.

Separating axes and clipping after Ericson, Real-Time Collision Detection (2005), sections 4.4.1 and 8.3. Between boxes
that are apart, the points are those of the faces or edges that separate them most, not always the nearest ones.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.solids import direction
from truesim.physics.contact.geometry.touch import UNUSED_DISTANCE, Touch

MAX_BOX_POINTS = 8
"""Number of contact points: two rectangles overlap in a polygon of at most eight corners."""
FACE_PREFERENCE = 1e-6
"""Separation by which an edge axis must exceed a face axis, relative to the size of the boxes; larger prefers faces."""


class Face(NamedTuple):
    """Rectangle: center, outward normal, two axes and half lengths along them."""

    center: Float[Array, "3"]
    normal: Float[Array, "3"]
    axes: Float[Array, "2 3"]
    half: Float[Array, "2"]


def box_box(size_a: Float[Array, "3"], a: Pose, size_b: Float[Array, "3"], b: Pose) -> Touch:
    """Contact points of two boxes, up to eight; normals point from a to b."""
    R, t = a.rotation.T @ b.rotation, a.rotation.T @ (b.translation - a.translation)
    by_a = jnp.abs(t) - size_a - jnp.abs(R) @ size_b
    by_b = jnp.abs(R.T @ t) - size_b - jnp.abs(R).T @ size_a
    faces, edges = jnp.concatenate([by_a, by_b]), _edge_separations(size_a, size_b, R, t)
    best, best_edge = jnp.argmax(faces), jnp.argmax(edges)
    on_a = best < 3
    reference = jax.tree.map(lambda x, y: jnp.where(on_a, x, y), (size_a, a), (size_b, b))
    other = jax.tree.map(lambda x, y: jnp.where(on_a, y, x), (size_a, a), (size_b, b))
    touch = _faces(reference, other, best % 3)
    touch = touch._replace(normal=jnp.where(on_a, 1.0, -1.0) * touch.normal)
    crossing = _edges((size_a, a), (size_b, b), best_edge, R, t)
    slack = FACE_PREFERENCE * (jnp.max(size_a) + jnp.max(size_b))
    by_edges = edges[best_edge] > faces[best] + slack
    return jax.tree.map(lambda x, y: jnp.where(by_edges, x, y), crossing, touch)


def _edge_separations(size_a: Array, size_b: Array, R: Array, t: Array) -> Float[Array, "9"]:
    """Separation along the cross product of each edge of a with each of b; parallel edges are excluded."""
    axes = jnp.cross(jnp.repeat(jnp.eye(3), 3, axis=0), jnp.tile(R.T, (3, 1)))
    squared = jnp.sum(axes**2, axis=1)
    parallel = squared < 1e-8
    norm = jnp.sqrt(jnp.where(parallel, 1.0, squared))
    gap = jnp.abs(axes @ t) - jnp.abs(axes) @ size_a - jnp.abs(axes @ R) @ size_b
    return jnp.where(parallel, -UNUSED_DISTANCE, gap / norm)


def _face(size: Array, pose: Pose, axis: Array, sign: Array) -> Face:
    """Face of a box along one of its axes."""
    pick, first, second = (jax.nn.one_hot((axis + k) % 3, 3, dtype=size.dtype) for k in range(3))
    normal = sign * (pose.rotation @ pick)
    axes = jnp.stack([pose.rotation @ first, pose.rotation @ second])
    return Face(pose.translation + normal * (size @ pick), normal, axes, jnp.stack([size @ first, size @ second]))


def _faces(reference: tuple[Array, Pose], other: tuple[Array, Pose], axis: Array) -> Touch:
    """Polygon in which a reference face overlaps the most opposed face of the other box.

    If the faces do not overlap, it is the lowest corner of the other face.
    """
    along = reference[1].rotation.T @ (other[1].translation - reference[1].translation)
    sign = jnp.where(along[axis] < 0, -1.0, 1.0)
    ground = _face(*reference, axis, sign)
    facing = other[1].rotation.T @ ground.normal
    k = jnp.argmax(jnp.abs(facing))
    face = _face(*other, k, jnp.where(facing[k] > 0, -1.0, 1.0))
    points, valid = _overlap(ground, face)
    beside = ~jnp.any(valid) & (jnp.arange(valid.shape[0]) == jnp.argmin(points[:4, 2]))
    heights = jnp.where(valid | beside, points[:, 2], UNUSED_DISTANCE)
    _, chosen = jax.lax.top_k(-jax.lax.stop_gradient(heights), MAX_BOX_POINTS)
    points, heights = points[chosen], heights[chosen]
    flat = ground.center[None] + points[:, :2] @ ground.axes
    midway = jnp.where(heights < UNUSED_DISTANCE, heights, 0.0)[:, None] * ground.normal[None] / 2
    return Touch(flat + midway, jnp.tile(ground.normal, (MAX_BOX_POINTS, 1)), heights)


def _overlap(ground: Face, face: Face) -> tuple[Float[Array, "12 3"], Array]:
    """Corners of the overlap, as coordinates along the ground's axes and height above it, and a mask of valid ones.

    Candidates are the points at which edges of the face enter or leave the ground's rectangle, and the corners of the
    ground below the face.
    """
    frame = jnp.concatenate([ground.axes, ground.normal[None]])
    center = frame @ (face.center - ground.center)
    axes = face.axes @ frame.T * face.half[:, None]
    signs = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])
    corners = center[None] + signs @ axes
    along = jnp.roll(corners, -1, axis=0) - corners
    enter, leave = jax.vmap(_clip, in_axes=(0, 0, None))(corners[:, :2], along[:, :2], ground.half)
    crosses = enter <= leave
    enter, leave = jnp.where(crosses, enter, 0.0), jnp.where(crosses, leave, 1.0)
    entries, exits = corners + enter[:, None] * along, corners + leave[:, None] * along
    below = signs * ground.half[None]
    (ux, uy), (wx, wy) = axes[0, :2], axes[1, :2]
    dx, dy = (below - center[None, :2]).T
    area = ux * wy - uy * wx
    inside = jnp.stack([dx * wy - dy * wx, ux * dy - uy * dx]) / area
    height = center[2] + inside[0] * axes[0, 2] + inside[1] * axes[1, 2]
    covered = jnp.all(jnp.abs(inside) < 1 - 1e-9, axis=0)
    points = jnp.concatenate([entries, exits, jnp.concatenate([below, height[:, None]], axis=1)])
    return points, jnp.concatenate([crosses, crosses & (leave < 1), covered])


def _clip(p: Float[Array, "2"], along: Float[Array, "2"], half: Float[Array, "2"]) -> tuple[Array, Array]:
    """Part of the segment from p to p + along inside a rectangle, as fractions (Liang and Barsky)."""
    still = jnp.abs(along) < 1e-14
    rate = jnp.where(still, 1.0, along)
    first, second = (-half - p) / rate, (half - p) / rate
    outside = jnp.abs(p) > half * (1 + 1e-12)
    enter = jnp.where(still, jnp.where(outside, 2.0, 0.0), jnp.minimum(first, second))
    leave = jnp.where(still, 1.0, jnp.maximum(first, second))
    return jnp.maximum(jnp.max(enter), 0.0), jnp.minimum(jnp.min(leave), 1.0)


def _edges(a: tuple[Array, Pose], b: tuple[Array, Pose], which: Array, R: Array, t: Array) -> Touch:
    """Closest points of the two edges whose cross product separates the boxes most."""
    (size_a, pose_a), (size_b, _) = a, b
    i, j = jax.nn.one_hot(which // 3, 3, dtype=t.dtype), jax.nn.one_hot(which % 3, 3, dtype=t.dtype)
    axis = direction(jnp.cross(i, R @ j))
    axis = jnp.where(axis @ t < 0, -1.0, 1.0) * axis
    on_a = jnp.where(axis < 0, -1.0, 1.0) * size_a * (1 - i)
    on_b = t + R @ (jnp.where(R.T @ axis > 0, -1.0, 1.0) * size_b * (1 - j))
    u, w = i, R @ j
    apart, cosine = on_b - on_a, u @ w
    sine2 = jnp.maximum(1 - cosine**2, 1e-8)
    near_a = on_a + u * ((apart @ u - cosine * (apart @ w)) / sine2)
    near_b = on_b + w * ((cosine * (apart @ u) - apart @ w) / sine2)
    distance = (near_b - near_a) @ axis
    position = pose_a.point((near_a + near_b) / 2)
    unused = jnp.full(MAX_BOX_POINTS - 1, UNUSED_DISTANCE)
    return Touch(
        jnp.tile(position, (MAX_BOX_POINTS, 1)),
        jnp.tile(pose_a.rotation @ axis, (MAX_BOX_POINTS, 1)),
        jnp.concatenate([distance[None], unused]),
    )
