"""Collision functions by pair of shapes."""

import functools
from collections.abc import Callable

from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry import planes, solids
from truesim.physics.contact.geometry.boxes import box_box
from truesim.physics.contact.geometry.convex import Placed, convex_convex
from truesim.physics.contact.geometry.hull import Hull, polyhedron
from truesim.physics.contact.geometry.rounded import Around, ball_solid, capsule_solid
from truesim.physics.contact.geometry.supports import CONVEX, Convex, hull_convex
from truesim.physics.contact.geometry.touch import Touch

SHAPE_ORDER = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
"""Order of the shapes within a pair, as in MuJoCo."""
SURFACES: dict[str, solids.Solid] = {
    "sphere": solids.ball,
    "capsule": solids.capsule,
    "ellipsoid": solids.ellipsoid,
    "cylinder": solids.cylinder,
    "box": solids.box,
}
"""Signed distance function of each shape."""
ON_PLANE = {
    "sphere": (planes.plane_ball, 1),
    "capsule": (planes.plane_capsule, 2),
    "ellipsoid": (planes.plane_ellipsoid, 1),
    "cylinder": (planes.plane_cylinder, 4),
    "box": (planes.plane_box, 4),
}
"""Function and number of points of each shape against a plane."""

Sized = tuple[Float[Array, "3"], Pose]
"""A solid's size parameters and its pose in the world."""
Collider = Callable[[Sized, Sized], Touch]
"""Collision function of two solids."""


def collider(shapes: tuple[str, str], hulls: tuple[Hull | None, Hull | None]) -> tuple[Collider, int] | None:
    """Collision function of two shapes and its number of points; None if there is none.

    Args:
        shapes: Names of the shapes, in the order of `SHAPE_ORDER`.
        hulls: Convex hull of each shape that is a mesh.
    """
    first, second = shapes
    if first == "plane" and second in ON_PLANE:
        function, points = ON_PLANE[second]
        return lambda a, b: function(a[1], b[0], b[1]), points
    if first == "plane" and hulls[1] is not None:
        hull = hulls[1]
        return lambda a, b: planes.plane_hull(a[1], hull, b[1]), 4
    if first == "sphere":
        return lambda a, b: ball_solid(a[0][0], a[1].translation, b[1], _around(second, hulls[1], b[0])), 1
    if first == "capsule":
        return lambda a, b: capsule_solid(a[0], a[1], b[1], _around(second, hulls[1], b[0])), 3
    if shapes == ("box", "box"):
        return lambda a, b: box_box(*a, *b), 8
    one, other = (hull_convex(h) if h is not None else CONVEX.get(s) for s, h in zip(shapes, hulls, strict=True))
    if one is not None and other is not None:
        return functools.partial(_convex, one, other), 9 if one.is_flat and other.is_flat else 1
    return None


def _convex(first: Convex, second: Convex, a: Sized, b: Sized) -> Touch:
    return convex_convex(Placed(first, *a), Placed(second, *b))


def _around(shape: str, hull: Hull | None, size: Float[Array, "3"]) -> Around:
    """Signed distance function in the solid's frame."""
    if hull is not None:
        return lambda p: polyhedron(hull, p)
    return lambda p: SURFACES[shape](size, p)
