"""Adjoint of one step for a batch, up to the derivative of the forces: what reverse mode needs of the solver.

A step solves `r0 = tau + J' f(J a - aref) - M a - c = 0` for the acceleration a of the constraints, and
`r1 = tau + J' f - (M + h D) b - c = 0` for the acceleration b of the integrator. For a cotangent g of b,

    (M + h D)' y = g,    z = H^-1 M y,    H = M + J' W J,

and the cotangent of any parameter is the derivative of `z' (tau + J' f) + (y - z)' (M a + c) - y' ((M + h D) b + c)`
at fixed a, b, y and z: the implicit function theorem with the factors of the solver.
"""

from enum import IntEnum

import numpy as np

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, POINTER_TYPE, LoopArray, Value
from truesim.physics.routines.factor import multiply_inertia_matrix
from truesim.physics.routines.gyroscopic import restore_standalone_bodies, solve_standalone_bodies
from truesim.physics.routines.integrate import solve_implicit
from truesim.physics.routines.layout import CAPSULE, IMPLICIT
from truesim.physics.routines.rollout import STATE_ENTRIES, gather, gather_parameters, scatter, tile_instances
from truesim.physics.routines.surfaces import radius_tensor
from truesim.physics.routines.vectors import dot, scale, subtract

_HINT_COSINE = 0.999999999
"""Cosine between MuJoCo's default tangent and the actual one below which the collision function gave a tangent."""


class AdjointTransfer(IntEnum):
    """Entries of the array of addresses and counts that `adjoint_batch` gets; the first are those of `Transfer`."""

    CTRL = 3
    SOLVED_OUT = 4
    INTEGRATED_OUT = 5
    SLOTS_OUT = 6
    COTANGENTS = 7
    FIRST = 8
    STOP = 9
    BATCH = 10
    COTANGENT_COUNT = 11
    CHANGE_COUNT = 12
    CHANGES = 13
    SLOT_CAPACITY = 14
    WEIGHTS_OUT = 15
    QPOS_OUT = 16
    """State after the step, if these are not zero."""
    QVEL_OUT = 17
    WARMSTART_OUT = 18
    SLOT_COUNT = 19


class SlotNumber(IntEnum):
    """First number of each part of a contact slot."""

    PAIR = 0
    DISTANCE = 1
    POSITION = 2
    FRAME = 5
    FIRST_RADIUS = 14
    SECOND_RADIUS = 20
    HINT = 26
    HINT_SIDE = 29
    FIRST_BODY = 30
    SECOND_BODY = 31
    DIMENSION = 32
    MARGIN = 33
    SOLREF = 34
    SOLREFFRICTION = 36
    SOLIMP = 38
    FRICTION = 43
    WEIGHT = 48


ADJOINT_SLOT_NUMBERS = 49
"""Numbers of a contact slot."""
IDLE_SLOT = np.zeros(ADJOINT_SLOT_NUMBERS)
"""Numbers of a slot where nothing touches: finite in every function of them."""
IDLE_SLOT[[SlotNumber.PAIR, SlotNumber.HINT_SIDE]] = -1
IDLE_SLOT[SlotNumber.FRAME : SlotNumber.FRAME + 9] = np.eye(3).ravel()
IDLE_SLOT[SlotNumber.HINT + 1] = 1
IDLE_SLOT[[SlotNumber.DIMENSION, SlotNumber.WEIGHT]] = 1
IDLE_SLOT[SlotNumber.SOLREF : SlotNumber.SOLREF + 2] = 0.02, 1
IDLE_SLOT[SlotNumber.SOLIMP : SlotNumber.SOLIMP + 5] = 0.9, 0.95, 0.001, 0.5, 2
IDLE_SLOT[SlotNumber.FRICTION : SlotNumber.FRICTION + 5] = 1


def write_adjoint_batch(module: RoutineModule) -> None:
    """Routine `adjoint_batch`: a, b, contact slots, and y (in place of the cotangents) and z, tile by tile.

    Returns the number of instances that are done: fewer than asked if the workspace is too small for the next tile.
    """
    k = TableRoutine(module, "adjoint_batch", [POINTER_TYPE])
    w = k.work
    entries = LoopArray(k, k.extra[0], INDEX_TYPE)
    io = {entry: entries[int(entry)] for entry in AdjointTransfer}
    nv, count = k.size("nv"), io[AdjointTransfer.COTANGENT_COUNT]
    with k.loop(io[AdjointTransfer.FIRST], io[AdjointTransfer.STOP], k.precision.lanes) as first:
        instances = tile_instances(k, first, io[AdjointTransfer.BATCH])
        _gather_state(k, entries, instances)
        gather(k, w.ctrl, k.size("nu"), io[AdjointTransfer.CTRL], [i * k.size("nu") for i in instances])
        gather_parameters(k, io[AdjointTransfer.CHANGE_COUNT], io[AdjointTransfer.CHANGES], instances)
        status = k.call("forward")
        k.return_if(status.differs(0), first)
        with k.when(io[AdjointTransfer.QPOS_OUT].differs(0)):
            _step_and_return(k, entries, instances)
        scatter(k, w.qacc, nv, io[AdjointTransfer.SOLVED_OUT], [i * nv for i in instances])
        _write_slots(k, entries, instances)
        _integrator_solve(k)
        scatter(k, w.search, nv, io[AdjointTransfer.INTEGRATED_OUT], [i * nv for i in instances])
        with k.loop(0, count) as r:
            starts = [(i * count + r) * nv for i in instances]
            gather(k, w.search, nv, io[AdjointTransfer.COTANGENTS], starts)
            _integrator_solve_transposed(k)
            scatter(k, w.search, nv, io[AdjointTransfer.COTANGENTS], starts)
        for name in ("residuals", "gradient", "direction"):  # leaves the factors of H
            k.call(name)
        coupled = k.integer.coupled[0].differs(0)
        with k.loop(0, count) as r:
            starts = [(i * count + r) * nv for i in instances]
            gather(k, w.Mv, nv, io[AdjointTransfer.COTANGENTS], starts)
            multiply_inertia_matrix(k, w.Mv, w.search)
            with k.when(coupled):
                k.call("solve_filled")
            with k.when(~coupled):
                k.call("solve_tree")
            scatter(k, w.search, nv, io[AdjointTransfer.WEIGHTS_OUT], starts)
    k.returns(io[AdjointTransfer.STOP])


def _gather_state(k: TableRoutine, entries: LoopArray, instances: list[Value]) -> None:
    for name, size, entry in STATE_ENTRIES:
        count = k.size(size)
        gather(k, getattr(k.work, name), count, entries[int(entry)], [i * count for i in instances])


def _step_and_return(k: TableRoutine, entries: LoopArray, instances: list[Value]) -> None:
    """State after the step; then the state before it, with the solver started at its own solution."""
    w = k.work
    k.call("integrate")
    outputs = AdjointTransfer.QPOS_OUT, AdjointTransfer.QVEL_OUT, AdjointTransfer.WARMSTART_OUT
    for (name, size, _), entry in zip(STATE_ENTRIES, outputs, strict=True):
        count = k.size(size)
        scatter(k, getattr(w, name), count, entries[int(entry)], [i * count for i in instances])
    _gather_state(k, entries, instances)
    with k.loop(0, k.size("nv")) as d:
        w.warmstart[d] = w.qacc[d]
    k.call("constrain")


def _integrator_solve(k: TableRoutine) -> None:
    """Acceleration of the integrator in `search`, and the factors of `M + h D` in H."""
    w = k.work
    with k.loop(0, k.size("nv")) as d:
        w.search[d] = w.Ma[d] - w.grad[d]
    solve_implicit(k)
    with k.when(k.size("implicit_damping").equals(0)), k.loop(0, k.size("nv")) as d:
        w.search[d] = w.qacc[d]


def _integrator_solve_transposed(k: TableRoutine) -> None:
    """Solve with the transposed `M + h D`, whose factors are in H."""
    is_general = k.size("integrator").equals(IMPLICIT)
    with k.when(is_general):
        k.call("solve_general_transposed")
    with k.when(~is_general):
        with k.when(k.size("nfree") > 0):
            k.call("damping")
            solve_standalone_bodies(k, transposed=True)
            k.call("factor_tree")
        k.call("solve_tree")
        restore_standalone_bodies(k)


def _write_slots(k: TableRoutine, entries: LoopArray, instances: list[Value]) -> None:
    """Numbers of all contact slots; `SLOT_COUNT` becomes the largest number of slots of a tile."""
    w = k.work
    count, capacity = k.integer.slot_count[0], entries[int(AdjointTransfer.SLOT_CAPACITY)]
    with k.when(count > entries[int(AdjointTransfer.SLOT_COUNT)]):
        entries[int(AdjointTransfer.SLOT_COUNT)] = count
    with k.loop(0, k.where(count < capacity, count, capacity)) as slot:
        _write_slot(k, slot)
        starts = [(i * capacity + slot) * ADJOINT_SLOT_NUMBERS for i in instances]
        scatter(k, w.contact, k.index(ADJOINT_SLOT_NUMBERS), entries[int(AdjointTransfer.SLOTS_OUT)], starts)


def _write_slot(k: TableRoutine, slot: Value) -> None:
    t, p, w = k.table, k.parameter, k.work
    pair = k.integer.slot_pair[slot]
    geoms = t.pair_geom1[pair], t.pair_geom2[pair]
    bodies = [t.geom_bodyid[g] for g in geoms]
    frame, position, distance = w.slot_frame.rows(slot, 9), w.slot_pos.rows(slot, 3), w.slot_dist[slot]
    half = scale(frame[:3], 0.5 * distance)
    first = radius_tensor(k, *geoms, subtract(position, half), frame[:3])
    second = radius_tensor(k, geoms[1], geoms[0], subtract(position, scale(half, -1.0)), scale(frame[:3], -1.0))
    parts = {
        SlotNumber.PAIR: [k.to_real(pair)],
        SlotNumber.DISTANCE: [distance],
        SlotNumber.POSITION: position,
        SlotNumber.FRAME: frame,
        SlotNumber.FIRST_RADIUS: first,
        SlotNumber.SECOND_RADIUS: second,
        SlotNumber.HINT: _tangent_hint(k, geoms, frame),
        SlotNumber.FIRST_BODY: [k.to_real(bodies[0])],
        SlotNumber.SECOND_BODY: [k.to_real(bodies[1])],
        SlotNumber.DIMENSION: [k.to_real(t.pair_dim[pair])],
        SlotNumber.MARGIN: [p.pair_margin[pair]],
        SlotNumber.SOLREF: p.pair_solref.rows(pair, 2),
        SlotNumber.SOLREFFRICTION: p.pair_solreffriction.rows(pair, 2),
        SlotNumber.SOLIMP: p.pair_solimp.rows(pair, 5),
        SlotNumber.FRICTION: p.pair_friction.rows(pair, 5),
        SlotNumber.WEIGHT: [p.body_invweight0[bodies[0] * 2] + p.body_invweight0[bodies[1] * 2]],
    }
    touching = w.slot_touching[slot] > 0.0
    for entry, values in parts.items():
        idle = IDLE_SLOT[int(entry) : int(entry) + len(values)].tolist()  # geometry of idle lanes may be NaN
        w.contact.put_block(int(entry), [k.where(touching, x, d) for x, d in zip(values, idle, strict=True)])


def _tangent_hint(k: TableRoutine, geoms: tuple[Value, Value], frame: list[Value]) -> list[Value]:
    """Direction from which the first tangent was made, and the body with which it turns: -1 (none), 0 or 1.

    MuJoCo takes the axis y (or z, if the normal is near y), or what the collision function gives: a capsule's axis.
    """
    w = k.work
    n, tangent = frame[:3], frame[3:6]
    near = (n[1] < 0.5) & (n[1] > -0.5)
    default = [k.real(0.0), k.where(near, k.real(1.0), 0.0), k.where(near, 0.0, k.real(1.0))]

    def alignment(axis: list[Value]) -> tuple[Value, Value]:
        across = subtract(axis, scale(n, dot(axis, n)))
        return dot(across, tangent), k.sqrt(k.maximum(dot(across, across), 1e-30))

    cosine, length = alignment(default)
    is_default = cosine > _HINT_COSINE * length
    is_second = k.table.geom_type[geoms[1]].equals(CAPSULE)
    carrier = k.where(is_second, geoms[1], geoms[0])
    axis = [w.gmat[carrier * 9 + 3 * i + 2] for i in range(3)]
    cosine, length = alignment(axis)
    given = k.abs(cosine) > _HINT_COSINE * length
    hint = [k.where(is_default, d, k.where(given, a, t)) for d, a, t in zip(default, axis, tangent, strict=True)]
    return [*hint, k.where(is_default, -1.0, k.to_real(k.where(is_second, k.index(1), k.index(0))))]
