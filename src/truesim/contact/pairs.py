"""Which geoms can touch: MuJoCo's filters, applied once."""

import dataclasses

from truesim.contact.geometry.colliders import ORDER, Collider, collider
from truesim.contact.geometry.hull import Hull, hull
from truesim.core.errors import TruesimError
from truesim.model.model import Model


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two geoms that can touch."""

    geoms: tuple[int, int]
    """In the order of their shapes."""
    dimension: int
    """MuJoCo's condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction."""
    explicit: int
    """Index of the explicit pair it comes from; -1 if it takes its numbers from the geoms."""
    points: int
    """Number of points in which they can touch."""


def touching_pairs(model: Model) -> tuple[Pair, ...]:
    """All pairs of geoms that can touch: the file's explicit pairs, then those that its filters let pass."""
    explicit = {_ordered(model, *geoms): k for k, geoms in enumerate(model.contacts.geoms)}
    count = len(model.geoms.names)
    free = [_ordered(model, i, j) for i in range(count) for j in range(i + 1, count) if may_touch(model, i, j)]
    found = [_pair(model, geoms, k) for geoms, k in explicit.items()]
    found += [_pair(model, geoms, -1) for geoms in free if geoms not in explicit]
    return tuple(pair for pair in found if pair is not None)


def unsupported_pairs(model: Model) -> tuple[tuple[str, str], ...]:
    """Pairs of shapes that could touch but for which there is no collision function, by the names of the geoms."""
    count, names = len(model.geoms.names), model.geoms.names
    pairs = [_ordered(model, i, j) for i in range(count) for j in range(i + 1, count) if may_touch(model, i, j)]
    return tuple((names[a], names[b]) for a, b in pairs if _collider(model, (a, b)) is None)


def may_touch(model: Model, i: int, j: int) -> bool:
    """Whether MuJoCo's filters let two geoms touch: masks, welded bodies, parents and children, excluded bodies."""
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
    """The convex hull of a geom that is a mesh."""
    mesh = model.geoms.meshes[geom]
    return hull(mesh) if mesh is not None and model.geoms.shapes[geom] == "mesh" else None


def _pair(model: Model, geoms: tuple[int, int], explicit: int) -> Pair | None:
    found = _collider(model, geoms)
    if found is None:
        return None
    for g in geoms:
        _check_size(model, g)
    dimension = model.contacts.dimensions[explicit] if explicit >= 0 else _dimension(model, *geoms)
    return Pair(geoms, dimension, explicit, found[1])


def _collider(model: Model, geoms: tuple[int, int]) -> tuple[Collider, int] | None:
    shapes = model.geoms.shapes[geoms[0]], model.geoms.shapes[geoms[1]]
    if not set(shapes) <= set(ORDER):
        return None
    return collider(shapes, (hull_of(model, geoms[0]), hull_of(model, geoms[1])))


def _dimension(model: Model, i: int, j: int) -> int:
    """The larger of the two geoms' condim, or that of the geom with higher priority."""
    priority, dimension = model.geoms.priority, model.geoms.condim
    if priority[i] != priority[j]:
        return dimension[i if priority[i] > priority[j] else j]
    return max(dimension[i], dimension[j])


def _check_size(model: Model, g: int) -> None:
    """Refuse a solid without size."""
    needed = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}.get(model.geoms.shapes[g], 0)
    if any(x <= 0 for x in model.geoms.size[g][:needed]):
        shape, size = model.geoms.shapes[g], [float(x) for x in model.geoms.size[g][:needed]]
        raise TruesimError(f"Geom {model.geoms.names[g]!r} is a {shape} of size {size}: all must be positive.")


def _ordered(model: Model, i: int, j: int) -> tuple[int, int]:
    rank = {shape: k for k, shape in enumerate(ORDER)}
    key = lambda g: (rank.get(model.geoms.shapes[g], len(rank)), g)  # noqa: E731
    return (i, j) if key(i) <= key(j) else (j, i)


def _welded_to(model: Model, body: int) -> int:
    """The first body above, itself included, that a joint moves; -1 for what is welded to the world."""
    moved = set(model.joints.bodies)
    while body >= 0 and body not in moved:
        body = model.bodies.parents[body]
    return body


def _parent(model: Model, body: int) -> int:
    """The moved body above a moved body."""
    return _welded_to(model, model.bodies.parents[body]) if body >= 0 else -1
