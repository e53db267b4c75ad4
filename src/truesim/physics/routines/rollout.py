"""One step, and many steps of all tiles of a batch in one call."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, POINTER_TYPE, LoopArray, Value
from truesim.physics.routines.integrate import write_stages
from truesim.physics.routines.layout import RK4


class Transfer(IntEnum):
    """Entries of the array of addresses and counts that `rollout` gets."""

    QPOS = 0
    QVEL = 1
    WARMSTART = 2
    CTRL = 3
    QPOS_OUT = 4
    QVEL_OUT = 5
    WARMSTART_OUT = 6
    ITERATIONS_OUT = 7
    FIRST = 8
    STOP = 9
    BATCH = 10
    STEPS = 11
    CHANGE_COUNT = 12
    CHANGES = 13


class Change(IntEnum):
    """Numbers of a change of parameters that differ between instances; `CHANGES` is the address of such rows."""

    PLACE = 0
    """First vector within the parameters of a tile."""
    LENGTH = 1
    SOURCE = 2
    """Address of the values of the first instance."""
    STRIDE = 3
    """Numbers between instances."""


def write_step(module: RoutineModule) -> None:
    """Routines `constrain`, `forward` and `step`; the last two return 1 if the workspace is too small."""
    _write_constrain(module)
    k = TableRoutine(module, "forward")
    n = k.integer
    k.call("kinematics")
    k.call("inertia")
    k.call("collision")
    k.return_if(n.slot_count[0] > k.size("slot_capacity"), 1)
    k.call("forces")
    for count in (n.block_count, n.row_count, n.jacobian_count, n.block_dof_count, n.overflow, n.coupled, n.dof_low):
        count[0] = k.index(0)
    n.dof_high[0] = k.size("nv")
    for name in ("equality_rows", "limit_rows", "contact_rows"):
        k.call(name)
    k.return_if(n.overflow[0].differs(0), 1)
    with k.when(n.coupled[0].differs(0)):
        k.call("fill")
    k.call("constrain")
    k.returns()

    write_stages(module)
    k = TableRoutine(module, "step")
    status = k.call("forward")
    k.return_if(status.differs(0), status)
    in_stages = k.size("integrator").equals(RK4)
    with k.when(in_stages):
        k.return_if(k.call("stages").differs(0), 1)
    with k.when(~in_stages):
        k.call("integrate")
    k.returns()


def _write_constrain(module: RoutineModule) -> None:
    """Routine `constrain`: the constrained acceleration from the rows of a state, starting at `warmstart`."""
    k = TableRoutine(module, "constrain")
    w = k.work
    with k.loop(0, k.size("nv")) as d:
        w.qacc[d] = w.warmstart[d]
        w.dof_inside[d] = 1.0
    w.newton_iterations[0] = 0.0
    w.newton_points[0] = 0.0
    k.call("residuals")
    k.call("start")
    has_islands = (k.size("ntree") > 1) & k.size("islands").differs(0)
    with k.when(has_islands):
        k.call("solve_islands")
    with k.when(~has_islands):
        k.call("newton")
    k.returns()


STATE_ENTRIES = (("qpos", "nq", Transfer.QPOS), ("qvel", "nv", Transfer.QVEL), ("warmstart", "nv", Transfer.WARMSTART))
"""Arrays of a state: name, size and entry."""


def write_rollout(module: RoutineModule) -> None:
    """Routine `rollout`: steps of instances `FIRST` to `STOP`, tile by tile.

    State arrays are changed in place, one tile at a time. Returns the number of instances that are done: fewer than
    asked if the workspace is too small for the next tile, which is then unchanged.
    """
    k = TableRoutine(module, "rollout", [POINTER_TYPE])
    w = k.work
    entries = LoopArray(k, k.extra[0], INDEX_TYPE)
    io = {entry: entries[int(entry)] for entry in Transfer}
    steps, nu = io[Transfer.STEPS], k.size("nu")
    with k.loop(io[Transfer.FIRST], io[Transfer.STOP], k.precision.lanes) as first:
        instances = tile_instances(k, first, io[Transfer.BATCH])
        for name, size, entry in STATE_ENTRIES:
            gather(k, getattr(w, name), k.size(size), io[entry], [i * k.size(size) for i in instances])
        gather_parameters(k, io[Transfer.CHANGE_COUNT], io[Transfer.CHANGES], instances)
        with k.loop(0, steps) as step:
            rows = [i * steps + step for i in instances]
            gather(k, w.ctrl, nu, io[Transfer.CTRL], [r * nu for r in rows])
            status = k.call("step")
            k.return_if(status.differs(0), first)
            for array, width, entry in (
                (w.qpos, k.size("nq"), Transfer.QPOS_OUT),
                (w.qvel, k.size("nv"), Transfer.QVEL_OUT),
                (w.warmstart, k.size("nv"), Transfer.WARMSTART_OUT),
                (w.newton_iterations, k.index(1), Transfer.ITERATIONS_OUT),
            ):
                with k.when(io[entry].differs(0)):
                    scatter(k, array, width, io[entry], [r * width for r in rows])
        for name, size, entry in STATE_ENTRIES:
            scatter(k, getattr(w, name), k.size(size), io[entry], [i * k.size(size) for i in instances])
    k.returns(io[Transfer.STOP])


def gather_parameters(k: TableRoutine, count: Value, address: Value, instances: Sequence[Value]) -> None:
    """Values of parameters that differ between instances to the lanes of a tile; the others stay."""
    if not k.parameters_per_lane:
        return
    rows = LoopArray(k, _scalars(k, address), INDEX_TYPE)
    whole = LoopArray(k, k.arguments[1], k.precision.vector)
    with k.loop(0, count) as c:
        place, length, source, stride = (rows[c * len(Change) + int(entry)] for entry in Change)
        gather(k, whole.at(place), length, source, [i * stride for i in instances])


def tile_instances(k: TableRoutine, first: Value, batch: Value) -> list[Value]:
    """Instances of the lanes of a tile; lanes beyond the batch repeat its last instance."""
    last = batch - 1
    return [k.where(first + lane < last, first + lane, last) for lane in range(k.precision.lanes)]


def _scalars(k: TableRoutine, address: Value) -> Any:
    return k.builder.inttoptr(address.value, POINTER_TYPE)


def gather(k: TableRoutine, array: LoopArray, count: Value, address: Value, starts: Sequence[Value]) -> None:
    """Rows of one array per instance to lanes: element i of lane n comes from `starts[n] + i`."""
    base, kind = _scalars(k, address), k.precision.scalar
    with k.loop(0, count) as i:
        places = [k.builder.gep(base, [(s + i).value], source_etype=kind) for s in starts]
        array[i] = k.from_lanes([k.builder.load(p, typ=kind) for p in places])


def scatter(k: TableRoutine, array: LoopArray, count: Value, address: Value, starts: Sequence[Value]) -> None:
    """Lanes to rows of one array per instance; lanes that repeat the last instance write the same values."""
    base, kind = _scalars(k, address), k.precision.scalar
    with k.loop(0, count) as i:
        x = array[i]
        for lane, start in enumerate(starts):
            place = k.builder.gep(base, [(start + i).value], source_etype=kind)
            k.builder.store(k.lane(x, lane), place)
