"""Pairs without a closed form here: MuJoCo's own collision function, called lane by lane.

MuJoCo exports `mjCOLLISIONFUNC[type1][type2](m, d, contacts, geom1, geom2, margin)`, which reads the poses of the two
geoms from an `mjData` and uses its stack. Each thread has an `mjData` of its own, whose addresses are in
`foreign_address`: model, data, `geom_xpos`, `geom_xmat`, contacts.
"""

from typing import Any

from llvmlite import ir

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import INDEX_TYPE, Value

MAX_PAIR_POINTS = 50
"""Maximum number of contacts of one pair of geoms (`mjMAXCONPAIR`)."""
PRECONTACT_NUMBERS = 10
"""Numbers of an `mjPreContact`: distance, position, normal, tangent."""
_DOUBLE, _INT = ir.DoubleType(), ir.IntType(32)


def collide_foreign(k: TableRoutine, pair: Any, near: Value) -> None:
    """Points of the pair in each lane of a mask, as slots by their number within the pair."""
    n, w = k.integer, k.work
    lanes = k.precision.lanes
    w.point[0] = k.where(near, k.real(1.0), 0.0)
    found = k.variable(k.index(0))
    with k.loop(0, lanes) as lane, k.when(_is_set(k, lane)):
        _copy_poses(k, pair, lane)
        count = _call(k, pair)
        with k.loop(found.get(), count) as i:  # rows that no lane has used yet
            w.hit[i * 11] = 0.0
        found.set(k.where(count > found.get(), count, found.get()))
        contacts = n.foreign_address[4]
        with k.loop(0, count) as i:
            place = i * (11 * lanes) + lane
            _store_scalar(k, w.hit.pointer, place, ir.Constant(k.precision.scalar, 1.0))
            for c in range(PRECONTACT_NUMBERS):
                source = Value(k, contacts.value) + (i * PRECONTACT_NUMBERS + c) * 8
                number = k.builder.load(_pointer(k, source), typ=_DOUBLE)
                _store_scalar(k, w.hit.pointer, place + (c + 1) * lanes, _narrow(k, number))
    with k.loop(0, found.get()) as i:
        on, *numbers = w.hit.rows(i, 11)
        w.point.put(0, [on, *numbers])
        k.call("add_slot", pair.number)


def _is_set(k: TableRoutine, lane: Value) -> Value:
    number = k.builder.load(_scalar_place(k, k.work.point.pointer, lane), typ=k.precision.scalar)
    return Value(k, k.builder.fcmp_ordered(">", number, ir.Constant(k.precision.scalar, 0.0)))


def _copy_poses(k: TableRoutine, pair: Any, lane: Value) -> None:
    """Write position and orientation of both geoms in one lane to the thread's `mjData`."""
    addresses = k.integer.foreign_address
    for geom in (pair.geom1, pair.geom2):
        for array, target, width in ((k.work.gpos, addresses[2], 3), (k.work.gmat, addresses[3], 9)):
            for i in range(width):
                place = _scalar_place(k, array.pointer, (geom * width + i) * k.precision.lanes + lane)
                number = k.builder.load(place, typ=k.precision.scalar)
                k.builder.store(_widen(k, number), _pointer(k, target + (geom * width + i) * 8))


def _call(k: TableRoutine, pair: Any) -> Value:
    b, addresses = k.builder, k.integer.foreign_address
    kind = ir.FunctionType(_INT, [ir.PointerType()] * 3 + [_INT, _INT, _DOUBLE])
    function = b.inttoptr(k.table.pair_address[pair.number].value, kind.as_pointer())
    arguments = [_pointer(k, addresses[0]), _pointer(k, addresses[1]), _pointer(k, addresses[4])]
    geoms = [b.trunc(g.value, _INT) for g in (pair.geom1, pair.geom2)]
    margin = _widen(k, k.lane(pair.detection, 0))
    count = b.call(function, [*arguments, *geoms, margin])
    return Value(k, b.sext(count, INDEX_TYPE))


def _scalar_place(k: TableRoutine, pointer: Any, index: Value) -> Any:
    return k.builder.gep(pointer, [index.value], source_etype=k.precision.scalar)


def _store_scalar(k: TableRoutine, pointer: Any, index: Value, number: Any) -> None:
    k.builder.store(number, _scalar_place(k, pointer, index))


def _pointer(k: TableRoutine, address: Value) -> Any:
    return k.builder.inttoptr(address.value, ir.PointerType())


def _widen(k: TableRoutine, number: Any) -> Any:
    return number if k.precision.bits == 64 else k.builder.fpext(number, _DOUBLE)


def _narrow(k: TableRoutine, number: Any) -> Any:
    return number if k.precision.bits == 64 else k.builder.fptrunc(number, k.precision.scalar)
