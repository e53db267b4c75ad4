"""Pairs of geoms to contact slots: bounding spheres, oriented boxes, then the function of the pair (`mj_collision`).

A slot is a point of a pair that touches in some lane of the tile. Lanes in which it does not touch get a harmless
position and frame; their weights are set to zero with the rows of the contact.
"""

from collections.abc import Sequence
from functools import partial

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, Operand, Value, Variable
from truesim.physics.routines.layout import PLANE, SPHERE
from truesim.physics.routines.shapes import PAIR_FUNCTIONS, PairFunction, TablePair
from truesim.physics.routines.vectors import (
    add,
    column,
    cross,
    dot,
    multiply_quaternions,
    rotate,
    rotation_matrix,
    scale,
    select,
    subtract,
)

SLOT_NUMBERS = 11
"""Numbers of a point: touching (1 or 0), distance, position, normal, tangent."""


def write_collision(module: RoutineModule) -> None:
    """Routines `add_slot` and `collision`: from `xpos`, `xquat` to the slots."""
    _write_add_slot(module)
    k = TableRoutine(module, "collision")
    t = k.table
    k.integer.slot_count[0] = k.index(0)
    _pose_geoms(k)
    with k.loop(0, k.size("npair")) as number:
        pair = TablePair(k, number)
        near = _sphere_test(k, pair)
        with k.when(k.any(near)):
            touching = k.variable(near)
            with k.when(t.pair_boxes[number].differs(0)):
                touching.set(_box_test(k, pair, near))
            with k.when(k.any(touching.get())):
                k.choose(
                    t.pair_function[number],
                    {n: partial(_collide, f, k, pair, touching) for n, f in PAIR_FUNCTIONS.items()},
                )
    k.returns()


def _collide(function: PairFunction, k: TableRoutine, pair: TablePair, touching: Variable) -> None:
    function(k, pair, touching.get())


def _pose_geoms(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    with k.loop(0, k.size("nused")) as i:
        g = t.used_geom[i]
        b = t.geom_bodyid[g]
        w.gpos.put(g, add(w.xpos.rows(b, 3), rotate(w.xmat.rows(b, 9), p.geom_pos.rows(g, 3))))
        with k.when(t.geom_type[g].differs(SPHERE)):
            w.gmat.put(g, rotation_matrix(multiply_quaternions(w.xquat.rows(b, 4), p.geom_quat.rows(g, 4))))


def _sphere_test(k: TableRoutine, pair: TablePair) -> Value:
    t, p, w = k.table, k.parameter, k.work
    apart = subtract(w.gpos.rows(pair.geom2, 3), w.gpos.rows(pair.geom1, 3))
    reach = p.geom_rbound[pair.geom2] + pair.detection
    near = k.variable(k.mask(False))
    is_plane = t.geom_type[pair.geom1].equals(PLANE)
    with k.when(is_plane):
        near.set(dot(apart, column(w.gmat.rows(pair.geom1, 9), 2)) <= reach)
    with k.when(~is_plane):
        reach = reach + p.geom_rbound[pair.geom1]
        near.set(dot(apart, apart) <= reach * reach)
    return near.get()


def _box_test(k: TableRoutine, pair: TablePair, near: Value) -> Value:
    """Separating axes along the faces of both bounding boxes."""
    p, w = k.parameter, k.work
    boxes = []
    for g in (pair.geom1, pair.geom2):
        R, box = w.gmat.rows(g, 9), p.geom_aabb.rows(g, 6)
        centre = add(w.gpos.rows(g, 3), rotate(R, box[:3]))
        boxes.append((centre, [column(R, i) for i in range(3)], box[3:]))
    (c1, axes1, half1), (c2, axes2, half2) = boxes
    apart = subtract(c2, c1)
    for axes, half, others, other_half in ((axes1, half1, axes2, half2), (axes2, half2, axes1, half1)):
        for axis, extent in zip(axes, half, strict=True):
            reach = extent + pair.detection
            for other, h in zip(others, other_half, strict=True):
                reach = reach + k.abs(dot(axis, other)) * h
            near = near & (k.abs(dot(axis, apart)) <= reach)
    return near


def _write_add_slot(module: RoutineModule) -> None:
    """Routine `add_slot(pair)`: append the point in `point` where it is within the margin in some lane."""
    k = TableRoutine(module, "add_slot", [INDEX_TYPE])
    n, w = k.integer, k.work
    pair = Value(k, k.extra[0])
    on, dist, *rest = w.point.block(0, SLOT_NUMBERS)
    pos, normal, tangent = rest[:3], rest[3:6], rest[6:]
    touching = (on > 0.0) & (dist < k.parameter.pair_margin[pair])
    k.return_if(~k.any(touching), 0)
    slot = n.slot_count[0]
    n.slot_count[0] = slot + 1
    k.return_if(slot >= k.size("slot_capacity"), 0)  # counted, so that the caller sees how many are needed
    n.slot_pair[slot] = pair
    w.slot_touching[slot] = k.where(touching, k.real(1.0), 0.0)
    w.slot_dist[slot] = k.where(touching, dist, 0.0)
    w.slot_pos.put(slot, select(k, touching, pos, w.origin.rows(0, 3)))
    normal = select(k, touching, normal, [0.0, 0.0, 1.0])
    w.slot_frame.put(slot, contact_frame(k, normal, select(k, touching, tangent, [0.0] * 3)))
    k.returns()


def contact_frame(k: TableRoutine, normal: Sequence[Value], tangent: Sequence[Value]) -> list[Operand]:
    """Normal and two tangents of a contact, the first near the given one, or near y or z (`mju_makeFrame`)."""
    is_given = dot(tangent, tangent) >= 0.25
    near_y = (normal[1] < 0.5) & (normal[1] > -0.5)
    default = [k.real(0.0), k.where(near_y, k.real(1.0), 0.0), k.where(near_y, k.real(0.0), 1.0)]
    t = select(k, is_given, tangent, default)
    t = subtract(t, scale(normal, dot(normal, t)))
    length = k.sqrt(dot(t, t))
    is_lost = length < 1e-15  # such as the axis of an upright capsule on a floor: MuJoCo then takes x
    t = scale(t, 1.0 / k.where(is_lost, 1.0, length))
    t = [k.where(is_lost, k.real(float(i == 0)), x) for i, x in enumerate(t)]
    return [*normal, *t, *cross(normal, t)]
