"""Pairs of geoms that can touch, by MuJoCo's filters."""

import dataclasses

from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.physics.contact.geometry.colliders import SHAPE_ORDER, Collider, collider
from truesim.physics.contact.geometry.hull import Hull, hull
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class GeomPair:
    """Pair of geoms that can touch."""

    geoms: tuple[int, int]
    """Indices of the geoms, ordered by shape."""
    dimension: int
    """MuJoCo's condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction."""
    explicit: int
    """Index of its explicit pair in the file; -1 if the parameters come from the geoms."""
    points: int
    """Largest number of contact points."""


def touching_pairs(model: Model) -> tuple[GeomPair, ...]:
    """All pairs of geoms that can touch: the explicit pairs of the file, then those that pass its filters."""
    explicit = {_ordered(model, *geoms): k for k, geoms in enumerate(model.contacts.geoms)}
    count = len(model.geoms.names)
    free = [_ordered(model, i, j) for i in range(count) for j in range(i + 1, count) if may_touch(model, i, j)]
    found = [_pair(model, geoms, k) for geoms, k in explicit.items()]
    found += [_pair(model, geoms, -1) for geoms in free if geoms not in explicit]
    return tuple(pair for pair in found if pair is not None)


def unsupported_pairs(model: Model) -> tuple[tuple[str, str], ...]:
    """Names of the geoms that could touch but have no collision function."""
    count, names = len(model.geoms.names), model.geoms.names
    pairs = [_ordered(model, i, j) for i in range(count) for j in range(i + 1, count) if may_touch(model, i, j)]
    return tuple((names[a], names[b]) for a, b in pairs if _collider(model, (a, b)) is None)


def may_touch(model: Model, i: int, j: int) -> bool:
    """True if MuJoCo's filters let two geoms touch: masks, welded bodies, parents and children, excluded bodies."""
    geoms, contacts = model.geoms, model.contacts
    masks = geoms.contype[i] & geoms.conaffinity[j] or geoms.contype[j] & geoms.conaffinity[i]
    a, b = geoms.bodies[i], geoms.bodies[j]
    first, second = _welded_to(model, a), _welded_to(model, b)
    if not masks or first == second or "plane" == geoms.shapes[i] == geoms.shapes[j]:
        return False
    if (a, b) in contacts.excluded or (b, a) in contacts.excluded:
        return False
    related = (second >= 0 and _parent(model, first) == second) or (first >= 0 and _parent(model, second) == first)
    return contacts.parents_touch or not related


def hull_of(model: Model, geom: int) -> Hull | None:
    """Convex hull of a geom; None if it is not a mesh."""
    mesh = model.geoms.meshes[geom]
    return hull(mesh) if mesh is not None and model.geoms.shapes[geom] == "mesh" else None


def _pair(model: Model, geoms: tuple[int, int], explicit: int) -> GeomPair | None:
    found = _collider(model, geoms)
    if found is None:
        return None
    for g in geoms:
        _check_size(model, g)
    dimension = model.contacts.dimensions[explicit] if explicit >= 0 else _dimension(model, *geoms)
    return GeomPair(geoms, dimension, explicit, found[1])


def _collider(model: Model, geoms: tuple[int, int]) -> tuple[Collider, int] | None:
    shapes = model.geoms.shapes[geoms[0]], model.geoms.shapes[geoms[1]]
    if not set(shapes) <= set(SHAPE_ORDER):
        return None
    return collider(shapes, (hull_of(model, geoms[0]), hull_of(model, geoms[1])))


def _dimension(model: Model, i: int, j: int) -> int:
    """Larger condim of the two geoms, or that of the geom with higher priority."""
    priority, dimension = model.geoms.priority, model.geoms.condim
    if priority[i] != priority[j]:
        return dimension[i if priority[i] > priority[j] else j]
    return max(dimension[i], dimension[j])


def _check_size(model: Model, g: int) -> None:
    """Refuse a solid without size."""
    needed = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}.get(model.geoms.shapes[g], 0)
    if not is_traced(model.geoms.size) and any(x <= 0 for x in model.geoms.size[g][:needed]):
        shape, size = model.geoms.shapes[g], [float(x) for x in model.geoms.size[g][:needed]]
        raise TruesimError(f"Geom {model.geoms.names[g]!r} is a {shape} of size {size}: all must be positive.")


def _ordered(model: Model, i: int, j: int) -> tuple[int, int]:
    rank = {shape: k for k, shape in enumerate(SHAPE_ORDER)}
    key = lambda g: (rank.get(model.geoms.shapes[g], len(rank)), g)  # noqa: E731
    return (i, j) if key(i) <= key(j) else (j, i)


def _welded_to(model: Model, body: int) -> int:
    """Nearest body at or above this one that has a joint; -1 if it is welded to the world."""
    moved = set(model.joints.bodies)
    while body >= 0 and body not in moved:
        body = model.bodies.parents[body]
    return body


def _parent(model: Model, body: int) -> int:
    """Nearest moving body above a moving body; -1 for the world."""
    return _welded_to(model, model.bodies.parents[body]) if body >= 0 else -1
