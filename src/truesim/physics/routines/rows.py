"""Rows of contacts: one block with its weights and reference acceleration for a slot (`mj_instantiateContact`)."""

from collections.abc import Callable, Sequence
from functools import partial

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, Operand, Value
from truesim.physics.routines.impedance import impedance, regularizer, stiffness_and_damping
from truesim.physics.routines.layout import ELLIPTIC_BLOCK, ELLIPTIC_CONE, UNILATERAL_BLOCK
from truesim.physics.routines.vectors import add, cross, dot, subtract

PYRAMID_ROWS = {1: 1, 3: 4, 4: 6, 6: 10}
"""Rows of a pyramidal contact by its condim: two edges for each friction direction."""


def write_contact_rows(module: RoutineModule) -> None:
    """Routines `open_block` and `contact_rows`."""
    _write_open_block(module)
    k = TableRoutine(module, "contact_rows")
    with k.loop(0, k.integer.slot_count[0]) as slot:
        _write_slot(k, slot)
    k.returns()


def _write_open_block(module: RoutineModule) -> None:
    """Routine `open_block(kind, dim, chain)`: append a block on a chain; returns its number, or -1 without room."""
    k = TableRoutine(module, "open_block", [INDEX_TYPE] * 3)
    n, t = k.integer, k.table
    kind, dim, chain = (Value(k, x) for x in k.extra)
    number, row, entry, dof = n.block_count[0], n.row_count[0], n.jacobian_count[0], n.block_dof_count[0]
    length = t.chain_num[chain]
    has_room = (number < k.size("block_capacity")) & (row + dim <= k.size("row_capacity"))
    has_room = (
        has_room & (entry + dim * length <= k.size("jacobian_capacity")) & (dof + length <= k.size("jacobian_capacity"))
    )
    with k.when(~has_room):
        n.overflow[0] = k.index(1)
    k.return_if(~has_room, -1)
    n.block_kind[number], n.block_dim[number], n.block_nd[number] = kind, dim, length
    n.block_rowadr[number], n.block_jacadr[number], n.block_dofadr[number] = row, entry, dof
    n.block_count[0], n.row_count[0], n.jacobian_count[0] = number + 1, row + dim, entry + dim * length
    n.block_dof_count[0] = dof + length
    n.coupled[0] = n.coupled[0] | t.chain_coupled[chain]
    with k.loop(0, length) as i:
        n.block_dofs[dof + i] = t.chain_dof[t.chain_adr[chain] + i]
    with k.loop(row, row + dim) as r:
        k.work.row_loss[r] = 0.0
        k.work.row_bound[r] = float("inf")
    k.returns(number)


class NewBlock:
    """A block that has been opened and is to be filled."""

    def __init__(self, k: TableRoutine, number: Value):
        n = k.integer
        self.number, self.nd, self.row = number, n.block_nd[number], n.block_rowadr[number]
        self.dofs = n.block_dofs.at(n.block_dofadr[number])
        self.J = k.work.jacobian.at(n.block_jacadr[number])


def with_new_block(
    k: TableRoutine, kind: Operand, dim: Operand, chain: Value, write: Callable[[NewBlock], None]
) -> None:
    """Open a block and fill it, if there is room."""
    number = k.call("open_block", k.index(kind), k.index(dim), chain)
    with k.when(number >= 0):
        write(NewBlock(k, number))


def point_jacobian(k: TableRoutine, dof: Value, sign: Value, arm: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Linear and angular velocity of a point, relative to the origin, by one degree of freedom."""
    axis = k.work.cdof.rows(dof, 6)
    linear = add(cross(axis[:3], arm), axis[3:])
    return [x * sign for x in linear], [x * sign for x in axis[:3]]


def _write_slot(k: TableRoutine, slot: Value) -> None:
    t = k.table
    pair = k.integer.slot_pair[slot]
    condim, chain = t.pair_dim[pair], t.pair_chain[pair]
    is_elliptic = k.size("cone").equals(ELLIPTIC_CONE)

    def elliptic(dim: int) -> None:
        kind = UNILATERAL_BLOCK if dim == 1 else ELLIPTIC_BLOCK
        with_new_block(k, kind, dim, chain, lambda block: _fill(k, slot, pair, block, dim, True))

    def pyramid(dim: int) -> None:
        rows = PYRAMID_ROWS[dim]
        with_new_block(k, UNILATERAL_BLOCK, rows, chain, lambda block: _fill(k, slot, pair, block, dim, False))

    with k.when(is_elliptic):
        k.choose(condim, {dim: partial(elliptic, dim) for dim in PYRAMID_ROWS})
    with k.when(~is_elliptic):
        k.choose(condim, {dim: partial(pyramid, dim) for dim in PYRAMID_ROWS})


def _fill(k: TableRoutine, slot: Value, pair: Value, block: NewBlock, dim: int, is_elliptic: bool) -> None:
    t, p, w = k.table, k.parameter, k.work
    touching = w.slot_touching[slot]
    arm = subtract(w.slot_pos.rows(slot, 3), w.origin.rows(0, 3))
    frame = w.slot_frame.rows(slot, 9)
    friction = p.pair_friction.rows(pair, 5)[: dim - 1]
    count = dim if is_elliptic else PYRAMID_ROWS[dim]
    velocity = [k.variable(0.0) for _ in range(count)]
    signs = t.chain_sign.at(t.chain_adr[t.pair_chain[pair]])
    with k.loop(0, block.nd) as i:
        dof = block.dofs[i]
        linear, angular = point_jacobian(k, dof, touching * k.to_real(signs[i]), arm)
        directions = [dot(frame[3 * r : 3 * r + 3], linear) for r in range(min(dim, 3))]
        directions += [dot(frame[3 * r : 3 * r + 3], angular) for r in range(dim - 3)]
        entries = directions if is_elliptic else _edges(directions, friction)
        block.J.put(i, entries)
        for total, entry in zip(velocity, entries, strict=True):
            total.add(entry * w.qvel[dof])
    _weigh(k, slot, pair, block, [v.get() for v in velocity], is_elliptic and dim > 1)


def _edges(directions: list[Value], friction: list[Value]) -> list[Value]:
    """Rows of a pyramid: normal plus and minus friction times each tangential direction."""
    if not friction:
        return directions
    return [
        directions[0] + mu * x if plus else directions[0] - mu * x
        for mu, x in zip(friction, directions[1:], strict=True)
        for plus in (True, False)
    ]


def _weigh(k: TableRoutine, slot: Value, pair: Value, block: NewBlock, velocity: list[Value], is_cone: bool) -> None:
    """Weights and reference acceleration of the rows of a contact."""
    t, p, w = k.table, k.parameter, k.work
    touching, dist = w.slot_touching[slot] > 0.0, w.slot_dist[slot]
    violation = dist - p.pair_margin[pair]
    solimp, solref = p.pair_solimp.rows(pair, 5), p.pair_solref.rows(pair, 2)
    d = impedance(k, solimp, violation)
    stiffness, damping = stiffness_and_damping(k, solref, solimp[1])
    bodies = [t.geom_bodyid[g] for g in (t.pair_geom1[pair], t.pair_geom2[pair])]
    inverse_weight = p.body_invweight0[bodies[0] * 2] + p.body_invweight0[bodies[1] * 2]
    spring = stiffness * d * violation
    friction = p.pair_friction.rows(pair, 5)
    mu = friction[0] / k.sqrt(p.impratio[0])
    if not is_cone:
        if len(velocity) > 1:  # edges of a pyramid
            inverse_weight = inverse_weight * (1.0 + friction[0] * friction[0])
        R = regularizer(k, d, inverse_weight)
        R = R * (2.0 * mu * mu) if len(velocity) > 1 else R
        D = k.where(touching, 1.0 / R, 0.0)
        w.row_D.put_block(block.row, [D] * len(velocity))
        w.row_aref.put_block(block.row, [-(damping * v) - spring for v in velocity])
        return
    solreffriction = p.pair_solreffriction.rows(pair, 2)
    _, slip_damping = stiffness_and_damping(k, solreffriction, solimp[1])
    has_own = solreffriction[0].differs(0.0) | solreffriction[1].differs(0.0)
    slip_damping = k.where(has_own, slip_damping, damping)
    D = k.where(touching, 1.0 / regularizer(k, d, inverse_weight), 0.0)
    ratios = [x / friction[0] for x in friction[: len(velocity) - 1]]
    w.row_D.put_block(block.row, [D, *(D * p.impratio[0] * r * r for r in ratios)])
    w.row_aref.put_block(block.row, [-(damping * velocity[0]) - spring, *(-(slip_damping * v) for v in velocity[1:])])
    w.row_scale.put_block(block.row, [mu, *friction[: len(velocity) - 1]])
    w.block_mu[block.number] = mu
