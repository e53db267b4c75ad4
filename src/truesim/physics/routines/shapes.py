"""Contact points of pairs of shapes in closed form, in MuJoCo's order and with its conventions.

Each function gets a pair and the lanes in which it may touch, and hands points to `add_slot`. Distances are negative
in penetration, the normal points from the first geom to the second, the position is halfway between the surfaces.
"""

import math
from collections.abc import Callable, Sequence

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import Operand, Value
from truesim.physics.routines.foreign import collide_foreign
from truesim.physics.routines.vectors import add, column, cross, dot, rotate, scale, select, subtract

_PARALLEL = 1e-30
"""Squared length below which a plane and the cap of a cylinder are parallel."""

_COINCIDENT = 1e-15
"""Distance below which two points count as one (MuJoCo's `mjMINVAL`)."""


class TablePair:
    """A pair of geoms at run time."""

    def __init__(self, k: TableRoutine, number: Value):
        self.k, self.number = k, number
        self.geom1, self.geom2 = k.table.pair_geom1[number], k.table.pair_geom2[number]

    @property
    def detection(self) -> Value:
        """Distance below which a point is found [m]: margin plus gap."""
        return self.k.parameter.pair_margin[self.number] + self.k.parameter.pair_gap[self.number]

    def position(self, which: int) -> list[Value]:
        """Position of a geom."""
        return self.k.work.gpos.rows((self.geom1, self.geom2)[which], 3)

    def matrix(self, which: int) -> list[Value]:
        """Orientation of a geom."""
        return self.k.work.gmat.rows((self.geom1, self.geom2)[which], 9)

    def size(self, which: int) -> list[Value]:
        """Sizes of a geom."""
        return self.k.parameter.geom_size.rows((self.geom1, self.geom2)[which], 3)

    def touch(
        self,
        mask: Value,
        dist: Value,
        pos: Sequence[Operand],
        normal: Sequence[Operand],
        tangent: Sequence[Operand] = (0.0,) * 3,
    ) -> None:
        """Add a point in the lanes of a mask."""
        k = self.k
        with k.when(k.any(mask)):
            k.work.point.put(0, [k.where(mask, k.real(1.0), 0.0), dist, *pos, *normal, *tangent])
            k.call("add_slot", self.number)


def _plane_and_height(pair: TablePair) -> tuple[list[Value], Value]:
    """Normal of the plane, and height of the other geom's centre above it."""
    normal = column(pair.matrix(0), 2)
    return normal, dot(subtract(pair.position(1), pair.position(0)), normal)


def plane_sphere(k: TableRoutine, pair: TablePair, near: Value) -> None:
    """One point."""
    normal, height = _plane_and_height(pair)
    radius = pair.size(1)[0]
    dist = height - radius
    pair.touch(near, dist, subtract(pair.position(1), scale(normal, radius + 0.5 * dist)), normal)


def plane_capsule(k: TableRoutine, pair: TablePair, near: Value) -> None:
    """A point at each end; the first tangent is the axis."""
    normal, _ = _plane_and_height(pair)
    radius, half, _ = pair.size(1)
    axis, x1, x2 = column(pair.matrix(1), 2), pair.position(0), pair.position(1)
    for sign in (1.0, -1.0):
        centre = add(x2, scale(axis, half * sign))
        dist = dot(subtract(centre, x1), normal) - radius
        pair.touch(near, dist, subtract(centre, scale(normal, radius + 0.5 * dist)), normal, axis)


def plane_box(k: TableRoutine, pair: TablePair, near: Value) -> None:
    """The first four corners, in index order, that are below the detection distance and on the lower side."""
    normal, height = _plane_and_height(pair)
    R, half, x2 = pair.matrix(1), pair.size(1), pair.position(1)
    count = k.variable(0.0)
    for i in range(8):
        corner = rotate(R, [half[c] if i & (1 << c) else -half[c] for c in range(3)])
        lower = dot(corner, normal)
        dist = height + lower
        touching = near & (dist <= pair.detection) & (lower <= 0.0) & (count.get() < 4.0)
        count.add(k.where(touching, k.real(1.0), 0.0))
        pair.touch(touching, dist, subtract(add(x2, corner), scale(normal, 0.5 * dist)), normal)


def plane_cylinder(k: TableRoutine, pair: TablePair, near: Value) -> None:
    """Up to four points: the lowest of each cap, and two more on the lower cap."""
    normal, height = _plane_and_height(pair)
    R, x2 = pair.matrix(1), pair.position(1)
    radius, half, _ = pair.size(1)
    axis = column(R, 2)
    projection = dot(normal, axis)
    axis = select(k, projection > 0.0, [-a for a in axis], axis)  # the axis that points towards the plane
    projection = -k.abs(projection)
    rim = subtract(scale(axis, projection), normal)
    squared = dot(rim, rim)
    is_tilted = squared >= _PARALLEL
    factor = radius / k.sqrt(k.where(is_tilted, squared, 1.0))
    rim = select(k, is_tilted, scale(rim, factor), scale(column(R, 0), radius))
    down, axis, projection = dot(rim, normal), scale(axis, half), projection * half
    dist = height + projection + down
    touching = near & (dist <= pair.detection)
    centre = add(x2, axis)
    with k.when(k.any(touching)):
        pair.touch(touching, dist, subtract(add(centre, rim), scale(normal, 0.5 * dist)), normal)
        upper = height - projection + down
        low = subtract(add(subtract(x2, axis), rim), scale(normal, 0.5 * upper))
        pair.touch(touching & (upper <= pair.detection), upper, low, normal)
        side = height + projection - 0.5 * down
        with k.when(k.any(touching & (side <= pair.detection))):
            across = cross(rim, axis)
            across = scale(across, radius * (math.sqrt(3.0) / 2) / k.sqrt(dot(across, across)))
            middle = subtract(subtract(centre, scale(rim, 0.5)), scale(normal, 0.5 * side))
            for sign in (1.0, -1.0):
                pair.touch(touching & (side <= pair.detection), side, add(middle, scale(across, sign)), normal)


def sphere_sphere(k: TableRoutine, pair: TablePair, near: Value) -> None:
    """One point on the line of centres; along x where they coincide, as MuJoCo does for spheres that are not turned."""
    x1, r1, r2 = pair.position(0), pair.size(0)[0], pair.size(1)[0]
    apart = subtract(pair.position(1), x1)
    length = k.sqrt(dot(apart, apart))
    is_same = length < _COINCIDENT
    normal = scale(apart, 1.0 / k.where(is_same, 1.0, length))
    normal = [k.where(is_same, k.real(float(i == 0)), x) for i, x in enumerate(normal)]
    dist = length - (r1 + r2)
    pair.touch(near, dist, add(x1, scale(normal, r1 + 0.5 * dist)), normal)


PairFunction = Callable[[TableRoutine, TablePair, Value], None]
FOREIGN = 0
PAIR_FUNCTIONS: dict[int, PairFunction] = {
    FOREIGN: collide_foreign,
    1: plane_sphere,
    2: plane_capsule,
    3: plane_box,
    4: plane_cylinder,
    5: sphere_sphere,
}
"""Functions by the number that the tables give a pair."""
FUNCTION_OF_TYPES = {(0, 2): 1, (0, 3): 2, (0, 6): 3, (0, 5): 4, (2, 2): 5}
"""Number of the function of two geom types; other types have none in closed form."""
