"""Two convex solids that have no formula of their own: the direction that separates them most, and where they touch.

The separation along n is `n (b - a)` of the support points a and b of the solids. Solids that overlap are moved apart
along the best direction known; the nearest points there (Gilbert, Johnson and Keerthi 1988) give a direction that is at
least as good. The search passes no derivatives. They come from Newton's step on the condition that the nearest points
of both solids to a point between them lie opposite each other.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.contact.geometry.solids import Surface, direction
from truesim.contact.geometry.supports import Convex
from truesim.contact.geometry.touch import FAR, Touch
from truesim.core.typing import Array, Float
from truesim.numerics import dense
from truesim.spatial.transform import Pose

PASSES, ITERATIONS, REFINEMENTS = 4, 16, 3
"""Times that solids are moved apart, steps of the search for nearest points each time, Newton steps at the end."""
APART = 1e-3
"""How far solids are moved apart, in parts of their size."""
LIGHT, SHORT = 1e-9, 1e-6
"""Weight and length below which a corner takes no part in an edge or face; lengths in parts of the solid's size."""
FLAT = 1e-9
"""Stiffness that is added where faces are flat, in parts of that of a corner."""
STAYS = 0.01
"""How far Newton's method may lead, in parts of the distance that solids are moved apart and of a turn."""
TILT = 1e-2
"""Faces, edges and ends within this angle of touching flat touch in several points [rad]."""
SUBSETS = np.array([[i >> k & 1 for k in range(4)] for i in range(1, 15)], dtype=float)
"""Corners, edges and faces of a tetrahedron; solids that are apart never have the origin inside."""
FEWER = 1e-10
"""A face must be nearer than an edge, and an edge than a corner, by this part of the squared distance."""


class Placed(NamedTuple):
    """A convex solid in the world."""

    kind: Convex
    size: Float[Array, "3"]
    pose: Pose

    def support(self, n: Float[Array, "3"]) -> Float[Array, "3"]:
        """The farthest point along n."""
        return self.pose.point(self.kind.support(self.size, self.pose.rotation.T @ n))

    def follow(self, n: Float[Array, "3"]) -> Float[Array, "3"]:
        """The same, as a point of the solid that moves and grows with it."""
        own = jax.lax.stop_gradient(self.pose.rotation.T @ n)
        return self.pose.point(self.kind.support(self.size, own))

    def fixed(self) -> "Placed":
        """The solid without derivatives."""
        return self._replace(size=jax.lax.stop_gradient(self.size), pose=jax.lax.stop_gradient(self.pose))


class Nearest(NamedTuple):
    """The nearest points of two solids: weighted means of the support points along some directions."""

    ways: Float[Array, "4 3"]
    corners: Float[Array, "4 3"]
    """Support points of the second less those of the first [m]."""
    weights: Float[Array, "4"]


def convex_convex(a: Placed, b: Placed) -> Touch:
    """Where two convex solids touch; normals point from a to b."""
    apart = jax.lax.stop_gradient(APART * (a.kind.reach(a.size) + b.kind.reach(b.size)))
    normal, nearest = _separation(a.fixed(), b.fixed(), apart)
    touch = _refined(a, b, normal, nearest, apart)
    if not (a.kind.is_flat and b.kind.is_flat):
        return touch
    n = jax.lax.stop_gradient(touch.normal[0])
    mirrored = _extreme(b, a, -n)
    sides = _extreme(a, b, n), mirrored._replace(normal=-mirrored.normal)
    return Touch(*(jnp.concatenate(parts) for parts in zip(touch, *sides, strict=True)))


def _separation(a: Placed, b: Placed, apart: Array) -> tuple[Float[Array, "3"], Nearest]:
    """The direction along which two solids are separated most, or overlap least.

    Of solids that overlap there may be several to choose from; the search starts from the best direction of a face and
    from that between the centres.
    """

    def approach(_: int, carry: tuple[Array, Nearest]) -> tuple[Array, Nearest]:
        n = carry[0]
        nearest = _nearest_points(a, b, n, _shift(a, b, n, apart))
        found = direction(nearest.weights @ nearest.corners)
        better = _along(a, b, found) >= _along(a, b, n)
        return jnp.where(better, found, n), nearest

    def ascend(n: Array) -> tuple[Array, Nearest]:
        none = jnp.zeros((4, 3))
        return jax.lax.fori_loop(0, PASSES, approach, (n, Nearest(none, none, jnp.zeros(4))))

    centres = direction(b.pose.translation - a.pose.translation)
    normals, nearest = jax.vmap(ascend)(jnp.stack([_best_face(a, b, centres), centres]))
    second = _along(a, b, normals[1]) > _along(a, b, normals[0])
    return jax.tree.map(lambda x: jnp.where(second, x[1], x[0]), (normals, nearest))


def _best_face(a: Placed, b: Placed, otherwise: Float[Array, "3"]) -> Float[Array, "3"]:
    """The normal of a face that separates most, unless another direction does."""
    normals = jnp.concatenate([a.kind.normals @ a.pose.rotation.T, -b.kind.normals @ b.pose.rotation.T])

    def compare(i: int, best: tuple[Array, Array]) -> tuple[Array, Array]:
        n, most = best
        along = _along(a, b, normals[i])
        return jnp.where(along > most, normals[i], n), jnp.maximum(along, most)

    return jax.lax.fori_loop(0, len(normals), compare, (otherwise, _along(a, b, otherwise)))[0]


def _along(a: Placed, b: Placed, n: Float[Array, "3"]) -> Float[Array, ""]:
    """Separation along a direction."""
    return n @ (b.support(-n) - a.support(n))


def _shift(a: Placed, b: Placed, n: Float[Array, "3"], apart: Array) -> Float[Array, "3"]:
    """How far b is moved to be clear of a."""
    return jnp.maximum(apart - _along(a, b, n), 0.0) * n


def _nearest_points(a: Placed, b: Placed, n: Array, shift: Array) -> Nearest:
    """The nearest points of a and of b moved by a shift that separates them."""

    def corner(n: Array) -> Array:
        return b.support(-n) + shift - a.support(n)

    def iterate(_: int, found: Nearest) -> Nearest:
        n = direction(found.weights @ found.corners)
        new = (jnp.arange(4) == jnp.argmin(found.weights))[:, None]
        corners = jnp.where(new, corner(n)[None], found.corners)
        return Nearest(jnp.where(new, n[None], found.ways), corners, _weights(corners))

    first = Nearest(jnp.tile(n, (4, 1)), jnp.tile(corner(n), (4, 1)), jnp.eye(4)[0])
    return jax.lax.fori_loop(0, ITERATIONS, iterate, first)


def _weights(corners: Float[Array, "4 3"]) -> Float[Array, "4"]:
    """Weights of the point of a tetrahedron nearest to the origin.

    On the plane of some corners with Gram matrix G the nearest point has weights along `G^-1 1`, and the squared
    distance `1 / 1^T G^-1 1`; of all corners, edges and faces whose weights are positive, the nearest counts.
    """
    G = corners @ corners.T
    G = G + 1e-13 * jnp.max(jnp.diagonal(G)) * jnp.eye(4)

    def on(subset: Array) -> tuple[Array, Array]:
        x = subset * dense.solve(G * jnp.outer(subset, subset) + jnp.diag(1 - subset), subset)
        total = jnp.sum(x)
        inside = jnp.all(x >= 0) & (total > 0)
        weights = x / jnp.where(inside, total, 1.0)
        squared = (1 + FEWER * jnp.sum(subset)) / jnp.where(inside, total, 1.0)
        return jnp.where(inside, squared, jnp.inf), weights

    squared, weights = jax.vmap(on)(jnp.asarray(SUBSETS))
    return weights[jnp.argmin(squared)]


def _refined(a: Placed, b: Placed, n: Array, nearest: Nearest, apart: Array) -> Touch:
    """The touch in a direction that is all but the best, with derivatives.

    Where Newton's method does not stay near (which takes a search that ended early), the points of the search count.
    """
    first, along = n, jax.lax.stop_gradient(_along(a, b, n))
    far = jnp.maximum(apart - along, 0.0)
    near_a, near_b = _local(a, nearest.ways, nearest.weights), _local(b, -nearest.ways, nearest.weights)
    on_a, on_b = (nearest.weights @ jax.vmap(x.follow)(w) for x, w in ((a, nearest.ways), (b, -nearest.ways)))
    p = jax.lax.stop_gradient(on_a + on_b + far * n) / 2

    def missed(p: Array, n: Array) -> tuple[Array, Array]:
        """What the directions of p from either solid, which are opposite at the solution, are off by; their mean."""
        away_a, away_b = near_a(p)[1], near_b(p - far * n)[1]
        return away_a + away_b, direction(away_a - away_b)

    J = jax.jacfwd(lambda p: missed(p, n)[0])(p) + (jnp.outer(n, n) + FLAT * jnp.eye(3)) / apart
    J = jax.lax.stop_gradient(J)
    for _ in range(REFINEMENTS):
        p = p - dense.solve(J, missed(p, n)[0])
        n = missed(p, n)[1]
    height = near_a(p)[0]
    distance = height + near_b(p - far * n)[0] - far
    stays = (jnp.abs(distance - along) < STAYS * apart) & (n @ first > 1 - STAYS)
    distance = jnp.where(stays, distance, first @ (on_b - on_a))
    position = jnp.where(stays, p + (distance / 2 - height) * n, (on_a + on_b) / 2)
    return Touch(position[None], jnp.where(stays, n, first)[None], distance[None])


def _local(placed: Placed, ways: Array, weights: Array) -> Callable[[Array], Surface]:
    """Distance and direction of a point in the world near the place where a solid touches."""
    kind, size, pose = placed
    if kind.surface is not None:
        surface = kind.surface

        def curved(p: Array) -> Surface:
            distance, away = surface(size, pose.rotation.T @ (p - pose.translation))
            return distance, pose.rotation @ away

        return curved
    corners = jax.vmap(placed.follow)(ways)
    centre = weights @ corners
    spread = jnp.where((weights > LIGHT)[:, None], corners - centre[None], 0.0)
    along = _longest(spread, kind.reach(size))
    across = _longest(spread - jnp.outer(spread @ along, along), kind.reach(size))

    def polyhedral(p: Array) -> Surface:
        """From the corner, edge or face of the nearest points."""
        away = p - centre
        away = away - (away @ along) * along - (away @ across) * across
        distance = jnp.sqrt(jnp.maximum(away @ away, 1e-30))
        return distance, away / distance

    return polyhedral


def _longest(rows: Float[Array, "4 3"], reach: Float[Array, ""]) -> Float[Array, "3"]:
    """The longest row at unit length; zero if all are short."""
    squared = jnp.sum(rows**2, axis=1)
    longest = rows[jnp.argmax(squared)]
    short = longest @ longest < (SHORT * reach) ** 2
    safe = jnp.where(short, jnp.eye(3)[0], longest)
    return jnp.where(short, 0.0, safe / jnp.sqrt(safe @ safe))


def _extreme(a: Placed, b: Placed, n: Float[Array, "3"]) -> Touch:
    """Four extreme points of what a touches b with, against b."""
    helper = jnp.where(jnp.abs(n[0]) < 0.6, jnp.eye(3)[0], jnp.eye(3)[1])
    u = direction(jnp.cross(n, helper))
    w = jnp.cross(n, u)
    ways = jnp.stack([n + TILT * (i * u + k * w) for i in (-1, 1) for k in (-1, 1)])
    distance = b.kind.corner
    assert distance is not None, "solids that are nowhere flat touch in one point"

    def at(way: Array) -> tuple[Array, Array, Array]:
        corner = a.follow(way)
        height, away = distance(b.size, b.pose.rotation.T @ (corner - b.pose.translation))
        out = b.pose.rotation @ away
        return corner - jnp.where(height < FAR, height, 0.0) * out / 2, -out, height

    return Touch(*jax.vmap(at)(ways))
