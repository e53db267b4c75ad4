"""One evaluation for a batch with what derivatives need: acceleration, contacts, and solves with the Hessian.

With F(a) = M a - tau - J' f(J a - aref) = 0 at the solution, `H da = -dF`, where H = M + J' W J is the Hessian that the
solver factorizes. Forward derivatives need `H^-1` times a tangent of F, reverse ones `H^-1` times a cotangent of a.
"""

from enum import IntEnum

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, POINTER_TYPE, LoopArray
from truesim.physics.routines.rollout import STATE_ENTRIES, gather, gather_parameters, scatter, tile_instances


class ForwardTransfer(IntEnum):
    """Entries of the array of addresses and counts that `forward_batch` gets; the first are those of `Transfer`."""

    CTRL = 3
    QACC_OUT = 4
    SMOOTH_OUT = 5
    CONTACTS_OUT = 6
    RIGHT_SIDES = 7
    FIRST = 8
    STOP = 9
    BATCH = 10
    RIGHT_SIDE_COUNT = 11
    CHANGE_COUNT = 12
    CHANGES = 13
    CONTACT_CAPACITY = 14
    CONTACT_COUNT = 15


CONTACT_NUMBERS = 14
"""Numbers of a contact: pair (-1: does not touch), distance, position, frame."""


def write_forward_batch(module: RoutineModule) -> None:
    """Routine `forward_batch`: accelerations, contacts and `H^-1` times right sides, in place, tile by tile.

    Returns the number of instances that are done: fewer than asked if the workspace is too small for the next tile.
    The largest number of contact slots of a tile is stored in `CONTACT_COUNT`; slots beyond `CONTACT_CAPACITY` are
    left out.
    """
    k = TableRoutine(module, "forward_batch", [POINTER_TYPE])
    w, n = k.work, k.integer
    entries = LoopArray(k, k.extra[0], INDEX_TYPE)
    io = {entry: entries[int(entry)] for entry in ForwardTransfer}
    nv = k.size("nv")
    with k.loop(io[ForwardTransfer.FIRST], io[ForwardTransfer.STOP], k.precision.lanes) as first:
        instances = tile_instances(k, first, io[ForwardTransfer.BATCH])
        for name, size, entry in STATE_ENTRIES:
            gather(k, getattr(w, name), k.size(size), entries[int(entry)], [i * k.size(size) for i in instances])
        gather(k, w.ctrl, k.size("nu"), io[ForwardTransfer.CTRL], [i * k.size("nu") for i in instances])
        gather_parameters(k, io[ForwardTransfer.CHANGE_COUNT], io[ForwardTransfer.CHANGES], instances)
        status = k.call("forward")
        k.return_if(status.differs(0), first)
        for array, target in ((w.qacc, ForwardTransfer.QACC_OUT), (w.tau, ForwardTransfer.SMOOTH_OUT)):
            scatter(k, array, nv, io[target], [i * nv for i in instances])
        count, capacity = n.slot_count[0], io[ForwardTransfer.CONTACT_CAPACITY]
        with k.when(count > entries[int(ForwardTransfer.CONTACT_COUNT)]):
            entries[int(ForwardTransfer.CONTACT_COUNT)] = count
        with k.loop(0, k.where(count < capacity, count, capacity)) as slot:
            touching = w.slot_touching[slot] > 0.0
            w.contact[0] = k.where(touching, k.to_real(n.slot_pair[slot]), -1.0)
            w.contact[1] = w.slot_dist[slot]
            w.contact.put_block(2, w.slot_pos.rows(slot, 3))
            w.contact.put_block(5, w.slot_frame.rows(slot, 9))
            starts = [(i * capacity + slot) * CONTACT_NUMBERS for i in instances]
            scatter(k, w.contact, k.index(CONTACT_NUMBERS), io[ForwardTransfer.CONTACTS_OUT], starts)
        right_sides = io[ForwardTransfer.RIGHT_SIDE_COUNT]
        with k.when(right_sides > 0):
            for name in ("residuals", "gradient", "direction"):  # leaves the factors of H
                k.call(name)
            with k.loop(0, right_sides) as r:
                starts = [(i * right_sides + r) * nv for i in instances]
                gather(k, w.search, nv, io[ForwardTransfer.RIGHT_SIDES], starts)
                coupled = n.coupled[0].differs(0)
                with k.when(coupled):
                    k.call("solve_filled")
                with k.when(~coupled):
                    k.call("solve_tree")
                scatter(k, w.search, nv, io[ForwardTransfer.RIGHT_SIDES], starts)
    k.returns(io[ForwardTransfer.STOP])
