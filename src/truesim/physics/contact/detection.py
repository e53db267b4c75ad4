"""Contact detection: geometry and parameters of all contact points, culled to a fixed capacity."""

import functools
import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float, Int
from truesim.math.spatial.rotation import normalize
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.colliders import Collider, collider
from truesim.physics.contact.geometry.sweep import sweep
from truesim.physics.contact.geometry.touch import Touch
from truesim.physics.contact.pairs import GeomPair, hull_of, touching_pairs
from truesim.physics.dynamics import body_poses, carriers, motion_columns
from truesim.physics.model.model import Model


class ContactPoints(NamedTuple):
    """Contact points of bodies that touch or may soon touch; a fixed number."""

    position: Float[Array, "points 3"]
    """Midpoint between the surfaces, in the world [m]."""
    first: Float[Array, "points 3"]
    """Present position of the contact point on the first body [m]."""
    second: Float[Array, "points 3"]
    """Present position of the contact point on the second body [m]."""
    normal: Float[Array, "points 3"]
    """Unit vector from the first geom to the second."""
    distance: Float[Array, " points"]
    """Distance between the surfaces less the part of the margin in which forces act [m]."""
    friction: Float[Array, "points 5"]
    restitution: Float[Array, " points"]
    pair: Int[Array, " points"]
    """Index of the pair of geoms."""
    overflow: Int[Array, ""]
    """Number of touching points beyond the capacity, which exert no force."""


class Detector(eqx.Module):
    """Contact detector over the pairs of geoms that can touch."""

    pairs: tuple[GeomPair, ...] = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    """Largest number of contact points; the nearest ones are kept."""

    @classmethod
    def of(cls, model: Model, capacity: int | None = None) -> "Detector":
        """Detector of the pairs that the file lets touch, with capacity for all their points by default."""
        pairs = touching_pairs(model) if model.defaults.contact else ()
        points = sum(pair.points for pair in pairs)
        if capacity is not None and capacity < 1:
            raise TruesimError(f"The capacity for contacts is {capacity}; it must be at least 1.")
        return cls(pairs, points if capacity is None else min(capacity, points))

    @property
    def culls(self) -> bool:
        """True if there are more possible points than the capacity."""
        return self.capacity < sum(pair.points for pair in self.pairs)

    def pair_of_point(self) -> Int[np.ndarray, " points"]:
        """Index of the pair of every point, before culling."""
        return np.repeat(np.arange(len(self.pairs)), [pair.points for pair in self.pairs])

    def __call__(
        self, model: Model, q: Float[Array, " nq"], ahead: tuple[Float[Array, " nv"], Float[Array, ""]] | None = None
    ) -> ContactPoints:
        """Contact points at a configuration.

        Args:
            model: The robot.
            q: Configuration.
            ahead: Velocity and time over which spheres are swept, so that fast ones do not pass through other bodies.
        """
        if not self.pairs:
            none, zero, integer = jnp.zeros((0, 3)), jnp.zeros(0), jnp.zeros((), jnp.int32)
            return ContactPoints(
                none, none, none, none, zero, jnp.zeros((0, 5)), zero, jnp.zeros(0, jnp.int32), integer
            )
        (touch, first, second), of_pair = self._touch(model, q, ahead), self.pair_of_point()
        friction, restitution, inset = pair_parameters(model, self.pairs)
        points = ContactPoints(
            position=touch.position,
            first=first,
            second=second,
            normal=touch.normal,
            distance=touch.distance - inset[of_pair],
            friction=friction[of_pair],
            restitution=restitution[of_pair],
            pair=jnp.asarray(of_pair, dtype=jnp.int32),
            overflow=jnp.zeros((), jnp.int32),
        )
        return self._cull(points) if self.culls else points

    def _cull(self, points: ContactPoints) -> ContactPoints:
        """Nearest points, up to the capacity."""
        _, kept = jax.lax.top_k(-jax.lax.stop_gradient(points.distance), self.capacity)
        touching = jnp.sum((points.distance < 0).astype(jnp.int32))
        nearest = jax.tree.map(lambda x: x[kept], points._replace(overflow=points.pair))
        return nearest._replace(overflow=jnp.maximum(touching - self.capacity, 0))

    def _touch(self, model: Model, q: Array, ahead: tuple[Array, Array] | None) -> tuple[Touch, Array, Array]:
        """Geometry of all pairs in their order, evaluated in batches of equal shapes."""
        size, poses = jnp.asarray(model.geoms.size), geom_poses(model, q)
        moves = None if ahead is None else ahead[1] * geom_velocities(model, q, ahead[0], poses.translation)
        touches: dict[int, tuple[Touch, Array, Array]] = {}
        for function, members in _groups(model, self.pairs):
            sides: list[Any] = []
            paths: list[Array | None] = []
            for side in (0, 1):
                g = np.array([self.pairs[k].geoms[side] for k in members])
                sides.append((size[g], jax.tree.map(lambda x, g=g: x[g], poses)))
                paths.append(None if moves is None else moves[g])
            if moves is None or model.geoms.shapes[self.pairs[members[0]].geoms[0]] != "sphere":
                touch = jax.vmap(function)(*sides)
                found = (touch, touch.position, touch.position)
            else:
                found = jax.vmap(functools.partial(sweep, function))(*sides, *paths)
            touches |= {k: jax.tree.map(lambda x, i=i: x[i], found) for i, k in enumerate(members)}
        every = [touches[k] for k in range(len(self.pairs))]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *every)


def geom_poses(model: Model, q: Float[Array, " nq"]) -> Pose:
    """Pose of every geom in the world, stacked over geoms."""
    bodies = body_poses(model, q)
    with_world = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]]), bodies, Pose.identity())
    carriers = jax.tree.map(lambda x: x[np.array(model.geoms.bodies)], with_world)
    own = jax.vmap(lambda p, o: Pose.from_quaternion(p, normalize(o)))(
        jnp.asarray(model.geoms.position), jnp.asarray(model.geoms.orientation)
    )
    return jax.vmap(Pose.__matmul__)(carriers, own)


def geom_velocities(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], places: Float[Array, "geoms 3"]
) -> Float[Array, "geoms 3"]:
    """Velocity of the material point of each geom's body at `places` [m/s]."""
    moves = np.stack([carriers(model, body) for body in model.geoms.bodies]).astype(float)
    twists = moves @ (motion_columns(model, q) * v[:, None])
    return twists[:, 3:] + jnp.cross(twists[:, :3], places)


def pair_parameters(
    model: Model, pairs: tuple[GeomPair, ...]
) -> tuple[Float[Array, "pairs 5"], Float[Array, " pairs"], Float[Array, " pairs"]]:
    """Friction, restitution, and the distance at which forces set in (margin less gap) of every pair.

    An explicit pair has its own. Otherwise the geom with higher priority decides; with equal priority the larger
    friction and restitution apply, and margins and gaps are combined as in MuJoCo.
    """
    geoms, contacts = model.geoms, model.contacts
    slide, twist, roll = (jnp.asarray(geoms.friction)[:, k] for k in range(3))
    of_geoms = jnp.stack([slide, slide, twist, roll, roll], axis=1)
    friction, restitution, inset = [], [], []
    for pair in pairs:
        (i, j), k = pair.geoms, pair.explicit
        if k >= 0:
            friction.append(contacts.friction[k])
            restitution.append(contacts.restitution[k])
            inset.append(contacts.margin[k] - contacts.gap[k])
            continue
        first, second = geoms.priority[i], geoms.priority[j]
        a, b = (i if first >= second else j), (j if second >= first else i)
        friction.append(jnp.maximum(of_geoms[a], of_geoms[b]))
        restitution.append(jnp.maximum(geoms.restitution[a], geoms.restitution[b]))
        inset.append(jnp.maximum(geoms.margin[i], geoms.margin[j]) - jnp.maximum(geoms.gap[i], geoms.gap[j]))
    stacked = [jnp.stack([jnp.asarray(x) for x in column]) for column in (friction, restitution, inset)]
    return stacked[0], stacked[1], stacked[2]


def _groups(model: Model, pairs: tuple[GeomPair, ...]) -> list[tuple[Collider, list[int]]]:
    """Pairs that share a collision function; each mesh has functions of its own."""

    def key(k: int) -> tuple:
        return tuple((model.geoms.shapes[g], g if model.geoms.shapes[g] == "mesh" else -1) for g in pairs[k].geoms)

    groups = []
    for shapes, members in itertools.groupby(sorted(range(len(pairs)), key=key), key=key):
        hulls = tuple(hull_of(model, g) if g >= 0 else None for _, g in shapes)
        found = collider((shapes[0][0], shapes[1][0]), (hulls[0], hulls[1]))
        assert found is not None, "pairs without a function are left out"
        groups.append((found[0], list(members)))
    return groups
