"""Contact points of two general convex solids: direction of largest separation, then the closest points.

The separation along n is `n (b - a)` of the support points a and b of the solids. Solids that overlap are moved apart
along the best known direction; their closest points there (Gilbert, Johnson and Keerthi 1988) give a direction that is
at least as good. No derivatives pass through this iteration. They come from Newton's step on the condition that the
closest points of both solids to a point between them lie opposite each other.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float, Int
from truesim.math import dense
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.solids import Surface, direction
from truesim.physics.contact.geometry.supports import Convex
from truesim.physics.contact.geometry.touch import UNUSED_DISTANCE, Touch

SEPARATION_PASSES, GJK_ITERATIONS, NEWTON_REFINEMENTS = 4, 16, 3
"""Number of times that solids are moved apart, GJK iterations each time, and final Newton steps."""
SEPARATED_GAP = 1e-3
"""Gap to which overlapping solids are moved apart, relative to their size."""
MIN_CORNER_WEIGHT, MIN_EDGE_LENGTH = 1e-9, 1e-6
"""Weight of a corner, and length relative to the solid's size, below which it is no part of an edge or face."""
FLAT_REGULARIZATION = 1e-9
"""Curvature added to flat faces, relative to that of a corner; larger is better conditioned but less exact."""
MAX_REFINEMENT = 0.01
"""Largest change by Newton's method, relative to the gap and to a unit normal; larger trusts it more."""
FLAT_CONTACT_ANGLE = 1e-2
"""Angle from parallel below which faces and edges touch in several points [rad]."""
SIMPLEX_SUBSETS = np.array([[i >> k & 1 for k in range(4)] for i in range(1, 15)], dtype=float)
"""Corners, edges and faces of a tetrahedron; the origin is never inside for separated solids."""
SIMPLEX_PREFERENCE = 1e-10
"""Relative squared distance by which a face must beat an edge, and an edge a corner; larger prefers corners."""


class Placed(NamedTuple):
    """Convex solid with a pose in the world."""

    kind: Convex
    size: Float[Array, "3"]
    pose: Pose

    def support(self, n: Float[Array, "3"]) -> Float[Array, "3"]:
        """Support point along n."""
        return self.pose.point(self.kind.support(self.size, self.pose.rotation.T @ n))

    def follow(self, n: Float[Array, "3"]) -> Float[Array, "3"]:
        """Support point along n as a material point, which moves and scales with the solid."""
        own = jax.lax.stop_gradient(self.pose.rotation.T @ n)
        return self.pose.point(self.kind.support(self.size, own))

    def fixed(self) -> "Placed":
        """Solid without derivatives."""
        return self._replace(size=jax.lax.stop_gradient(self.size), pose=jax.lax.stop_gradient(self.pose))


class Nearest(NamedTuple):
    """Closest points of two solids, as weighted means of support points."""

    ways: Float[Array, "4 3"]
    corners: Float[Array, "4 3"]
    """Support points of the second less those of the first [m]."""
    weights: Float[Array, "4"]


def convex_convex(a: Placed, b: Placed) -> Touch:
    """Contact points of two convex solids; normals point from a to b."""
    apart = jax.lax.stop_gradient(SEPARATED_GAP * (a.kind.reach(a.size) + b.kind.reach(b.size)))
    normal, nearest = _separation(a.fixed(), b.fixed(), apart)
    touch = _refined(a, b, normal, nearest, apart)
    if not (a.kind.is_flat and b.kind.is_flat):
        return touch
    n = jax.lax.stop_gradient(touch.normal[0])
    mirrored = _extreme(b, a, -n)
    sides = _extreme(a, b, n), mirrored._replace(normal=-mirrored.normal)
    return Touch(*(jnp.concatenate(parts) for parts in zip(touch, *sides, strict=True)))


def _separation(a: Placed, b: Placed, apart: Array) -> tuple[Float[Array, "3"], Nearest]:
    """Direction of largest separation or smallest overlap of two solids.

    For solids that overlap there may be several local optima; iterations start from the best face normal and from the
    direction between the centers.
    """

    def approach(_: Int[Array, ""], carry: tuple[Array, Nearest]) -> tuple[Array, Nearest]:
        n = carry[0]
        nearest = _nearest_points(a, b, n, _shift(a, b, n, apart))
        found = direction(nearest.weights @ nearest.corners)
        better = _along(a, b, found) >= _along(a, b, n)
        return jnp.where(better, found, n), nearest

    def ascend(n: Array) -> tuple[Array, Nearest]:
        none = jnp.zeros((4, 3))
        return jax.lax.fori_loop(0, SEPARATION_PASSES, approach, (n, Nearest(none, none, jnp.zeros(4))))

    centers = direction(b.pose.translation - a.pose.translation)
    normals, nearest = jax.vmap(ascend)(jnp.stack([_best_face(a, b, centers), centers]))
    second = _along(a, b, normals[1]) > _along(a, b, normals[0])
    return jax.tree.map(lambda x: jnp.where(second, x[1], x[0]), (normals, nearest))


def _best_face(a: Placed, b: Placed, otherwise: Float[Array, "3"]) -> Float[Array, "3"]:
    """Face normal of largest separation, or the given direction if it separates more."""
    normals = jnp.concatenate([a.kind.normals @ a.pose.rotation.T, -b.kind.normals @ b.pose.rotation.T])

    def compare(i: Int[Array, ""], best: tuple[Array, Array]) -> tuple[Array, Array]:
        n, most = best
        along = _along(a, b, normals[i])
        return jnp.where(along > most, normals[i], n), jnp.maximum(along, most)

    return jax.lax.fori_loop(0, len(normals), compare, (otherwise, _along(a, b, otherwise)))[0]


def _along(a: Placed, b: Placed, n: Float[Array, "3"]) -> Float[Array, ""]:
    """Separation along a direction."""
    return n @ (b.support(-n) - a.support(n))


def _shift(a: Placed, b: Placed, n: Float[Array, "3"], apart: Array) -> Float[Array, "3"]:
    """Translation of b that separates it from a."""
    return jnp.maximum(apart - _along(a, b, n), 0.0) * n


def _nearest_points(a: Placed, b: Placed, n: Array, shift: Array) -> Nearest:
    """Closest points of a and of b after a shift that separates them."""

    def corner(n: Array) -> Array:
        return b.support(-n) + shift - a.support(n)

    def iterate(_: Int[Array, ""], found: Nearest) -> Nearest:
        n = direction(found.weights @ found.corners)
        new = (jnp.arange(4) == jnp.argmin(found.weights))[:, None]
        corners = jnp.where(new, corner(n)[None], found.corners)
        return Nearest(jnp.where(new, n[None], found.ways), corners, _weights(corners))

    first = Nearest(jnp.tile(n, (4, 1)), jnp.tile(corner(n), (4, 1)), jnp.eye(4)[0])
    return jax.lax.fori_loop(0, GJK_ITERATIONS, iterate, first)


def _weights(corners: Float[Array, "4 3"]) -> Float[Array, "4"]:
    """Barycentric weights of the point of a tetrahedron closest to the origin.

    In the plane of some corners with Gram matrix G the closest point has weights along `G^-1 1` and the squared
    distance `1 / 1^T G^-1 1`; the result is the closest of all corners, edges and faces with positive weights.
    """
    G = corners @ corners.T
    G = G + 1e-13 * jnp.max(jnp.diagonal(G)) * jnp.eye(4)

    def on(subset: Array) -> tuple[Array, Array]:
        x = subset * dense.solve(G * (subset[:, None] * subset[None]) + jnp.diag(1 - subset), subset)
        total = jnp.sum(x)
        inside = jnp.all(x >= 0) & (total > 0)
        weights = x / jnp.where(inside, total, 1.0)
        squared = (1 + SIMPLEX_PREFERENCE * jnp.sum(subset)) / jnp.where(inside, total, 1.0)
        return jnp.where(inside, squared, jnp.inf), weights

    squared, weights = jax.vmap(on)(jnp.asarray(SIMPLEX_SUBSETS))
    return weights[jnp.argmin(squared)]


def _refined(a: Placed, b: Placed, n: Array, nearest: Nearest, apart: Array) -> Touch:
    """Contact point refined by Newton's method, with derivatives.

    If Newton's method leaves the neighborhood of the initial direction, the result is that of GJK.
    """
    first, along = n, jax.lax.stop_gradient(_along(a, b, n))
    far = jnp.maximum(apart - along, 0.0)
    near_a, near_b = _local(a, nearest.ways, nearest.weights), _local(b, -nearest.ways, nearest.weights)
    on_a, on_b = (nearest.weights @ jax.vmap(x.follow)(w) for x, w in ((a, nearest.ways), (b, -nearest.ways)))
    p = jax.lax.stop_gradient(on_a + on_b + far * n) / 2

    def missed(p: Array, n: Array) -> tuple[Array, Array]:
        """Sum of the directions of p from either solid, zero at the solution, and their mean direction."""
        away_a, away_b = near_a(p)[1], near_b(p - far * n)[1]
        return away_a + away_b, direction(away_a - away_b)

    J = jax.jacfwd(lambda p: missed(p, n)[0])(p) + (n[:, None] * n[None] + FLAT_REGULARIZATION * jnp.eye(3)) / apart
    J = jax.lax.stop_gradient(J)
    for _ in range(NEWTON_REFINEMENTS):
        p = p - dense.solve(J, missed(p, n)[0])
        n = missed(p, n)[1]
    height = near_a(p)[0]
    distance = height + near_b(p - far * n)[0] - far
    stays = (jnp.abs(distance - along) < MAX_REFINEMENT * apart) & (n @ first > 1 - MAX_REFINEMENT)
    distance = jnp.where(stays, distance, first @ (on_b - on_a))
    position = jnp.where(stays, p + (distance / 2 - height) * n, (on_a + on_b) / 2)
    return Touch(position[None], jnp.where(stays, n, first)[None], distance[None])


def _local(placed: Placed, ways: Array, weights: Array) -> Callable[[Array], Surface]:
    """Local signed distance function of a solid near its contact point, in the world."""
    kind, size, pose = placed
    if kind.surface is not None:
        surface = kind.surface

        def curved(p: Array) -> Surface:
            distance, away = surface(size, pose.rotation.T @ (p - pose.translation))
            return distance, pose.rotation @ away

        return curved
    corners = jax.vmap(placed.follow)(ways)
    center = weights @ corners
    offsets = jnp.where((weights > MIN_CORNER_WEIGHT)[:, None], corners - center[None], 0.0)
    along = _longest(offsets, kind.reach(size))
    across = _longest(offsets - (offsets @ along)[:, None] * along[None], kind.reach(size))

    def polyhedral(p: Array) -> Surface:
        """Distance and direction from the corner, edge or face of the closest points."""
        away = p - center
        away = away - (away @ along) * along - (away @ across) * across
        distance = jnp.sqrt(jnp.maximum(away @ away, 1e-30))
        return distance, away / distance

    return polyhedral


def _longest(rows: Float[Array, "4 3"], reach: Float[Array, ""]) -> Float[Array, "3"]:
    """Longest row scaled to unit length; zero if all are short."""
    squared = jnp.sum(rows**2, axis=1)
    longest = rows[jnp.argmax(squared)]
    short = longest @ longest < (MIN_EDGE_LENGTH * reach) ** 2
    safe = jnp.where(short, jnp.eye(3)[0], longest)
    return jnp.where(short, 0.0, safe / jnp.sqrt(safe @ safe))


def _extreme(a: Placed, b: Placed, n: Float[Array, "3"]) -> Touch:
    """Four extreme points of a near the contact, against b."""
    helper = jnp.where(jnp.abs(n[0]) < 0.6, jnp.eye(3)[0], jnp.eye(3)[1])
    u = direction(jnp.cross(n, helper))
    w = jnp.cross(n, u)
    ways = jnp.stack([n + FLAT_CONTACT_ANGLE * (i * u + k * w) for i in (-1, 1) for k in (-1, 1)])
    distance = b.kind.corner
    assert distance is not None, "only solids with flat parts have several contact points"

    def at(way: Array) -> tuple[Array, Array, Array]:
        corner = a.follow(way)
        height, away = distance(b.size, b.pose.rotation.T @ (corner - b.pose.translation))
        out = b.pose.rotation @ away
        return corner - jnp.where(height < UNUSED_DISTANCE, height, 0.0) * out / 2, -out, height

    return Touch(*jax.vmap(at)(ways))
