"""Radius tensors of geoms at a contact point: derivative of the point on the surface by the outward normal.

They are those of `physics.constraints.surfaces`: zero for a vertex, infinite (`FLAT_RADIUS`) for a face, zero across
and infinite along an edge, the radius for a sphere.
"""

from collections.abc import Callable, Sequence

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import Operand, Value
from truesim.physics.routines.layout import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE
from truesim.physics.routines.vectors import dot, rotate_symmetric, subtract

FLAT_RADIUS = 1e8
"""Radius of curvature of a flat direction [m]; larger loses digits of the slide along it."""
_ON_FEATURE = 1e-6
"""Distance from an edge, relative to the size of the geom, below which a contact point is on it."""
Six = Sequence[Operand]
"""Symmetric matrix: xx, yy, zz, xy, xz, yz."""


def radius_tensor(k: TableRoutine, geom: Value, other: Value, x: list[Value], outward: list[Value]) -> list[Value]:
    """Radius tensor of a geom at the point x, in world axes; `other` is the geom that it touches."""
    t, p, w = k.table, k.parameter, k.work
    R = w.gmat.rows(geom, 9)
    columns = [[R[3 * i + j] for i in range(3)] for j in range(3)]
    offset = subtract(x, w.gpos.rows(geom, 3))
    local, normal = ([dot(c, v) for c in columns] for v in (offset, outward))
    size = p.geom_size.rows(geom, 3)
    on_plane = t.geom_type[other].equals(PLANE)
    found = [k.variable(FLAT_RADIUS) for _ in range(3)] + [k.variable(0.0) for _ in range(3)]

    def put(six: Six) -> None:
        for place, value in zip(found, six, strict=True):
            place.set(value)

    shapes: dict[int, Callable[[], Six]] = {
        CAPSULE: lambda: _capsule(k, size, local, normal),
        ELLIPSOID: lambda: _ellipsoid(k, size, normal),
        CYLINDER: lambda: _cylinder(k, size, local, normal, on_plane),
        BOX: lambda: _box(k, size, local, on_plane),
        MESH: lambda: [k.where(on_plane, k.real(0.0), FLAT_RADIUS)] * 3 + [0.0] * 3,
    }
    k.choose(t.geom_type[geom], {kind: lambda shape=shape: put(shape()) for kind, shape in shapes.items()})  # type: ignore[misc]
    is_sphere = t.geom_type[geom].equals(SPHERE)  # spheres have no orientation
    rotated, ball = rotate_symmetric(R, [place.get() for place in found]), [size[0]] * 3 + [k.real(0.0)] * 3
    return [k.where(is_sphere, a, b) for a, b in zip(ball, rotated, strict=True)]


def _capsule(k: TableRoutine, size: list[Value], x: list[Value], n: list[Value]) -> Six:
    centre = k.abs(x[2] - size[0] * n[2])
    along = k.where(centre > (1 - _ON_FEATURE) * size[1], 0.0, k.real(FLAT_RADIUS))
    return [size[0], size[0], size[0] + along, 0.0, 0.0, 0.0]


def _ellipsoid(k: TableRoutine, size: list[Value], n: list[Value]) -> Six:
    """`A / h - (A n)(A n)' / h^3` with `A = diag(size^2)` and `h = sqrt(n' A n)`."""
    squared = [s * s for s in size]
    An = [s * c for s, c in zip(squared, n, strict=True)]
    h = k.sqrt(k.maximum(dot(n, An), 1e-30))
    inverse, cubed = 1.0 / h, 1.0 / (h * h * h)
    diagonal = [s * inverse - c * c * cubed for s, c in zip(squared, An, strict=True)]
    return [*diagonal, *(-(An[i] * An[j] * cubed) for i, j in ((0, 1), (0, 2), (1, 2)))]


def _cylinder(k: TableRoutine, size: list[Value], x: list[Value], n: list[Value], on_plane: Value) -> Six:
    radial = k.sqrt(k.maximum(x[0] * x[0] + x[1] * x[1], 1e-30))
    out = x[0] / radial, x[1] / radial
    at_side, at_cap = radial > (1 - _ON_FEATURE) * size[0], k.abs(x[2]) > (1 - _ON_FEATURE) * size[1]
    rim = k.where(on_plane, k.mask(True), at_side & at_cap)
    sine = k.sqrt(k.maximum(n[0] * n[0] + n[1] * n[1], 1e-18))
    around = k.where(rim, size[0] / sine, size[0])
    is_round, along = rim | at_side, k.where(rim, 0.0, k.real(FLAT_RADIUS))
    curved = [around * out[1] * out[1], around * out[0] * out[0], along, -(around * out[0] * out[1])]
    flat = (FLAT_RADIUS, FLAT_RADIUS, FLAT_RADIUS, 0.0)
    xx, yy, zz, xy = (k.where(is_round, a, k.real(b)) for a, b in zip(curved, flat, strict=True))
    return [xx, yy, zz, xy, 0.0, 0.0]


def _box(k: TableRoutine, size: list[Value], x: list[Value], on_plane: Value) -> Six:
    """Flat along the directions in which the point is not at the end of the box; everywhere on a face."""
    ends = [k.where(k.abs(c) > (1 - _ON_FEATURE) * s, k.real(1.0), 0.0) for c, s in zip(x, size, strict=True)]
    ends = [k.where(on_plane, k.real(1.0), end) for end in ends]
    is_face = ends[0] + ends[1] + ends[2] < 1.5
    free = [k.where(is_face | (end < 0.5), k.real(FLAT_RADIUS), 0.0) for end in ends]
    return [*free, 0.0, 0.0, 0.0]
