"""Joint-space inertia by composite rigid bodies, and bias forces by recursive Newton-Euler (`mj_crb`, `mj_rne`)."""

from collections.abc import Callable, Sequence

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value, Variable
from truesim.physics.routines.layout import BALL_JOINT, FREE_JOINT
from truesim.physics.routines.vectors import add, cross_force, cross_motion, dot, multiply_inertia, scale


def write_inertia(module: RoutineModule) -> None:
    """Routine `inertia`: matrix `M` on the pattern of the tree, and `bias`, from `cdof`, `cinert` and `qvel`."""
    k = TableRoutine(module, "inertia")
    _write_mass_matrix(k)
    _write_bias(k)
    k.returns()


def _write_mass_matrix(k: TableRoutine) -> None:
    t, w = k.table, k.work
    nv, nbody = k.size("nv"), k.size("nbody")
    with k.loop(10, nbody * 10) as i:
        w.crb[i] = w.cinert[i]
    with k.loop(nbody - 1, 0, -1) as b:
        parent = t.body_parentid[b]
        with k.when(parent > 0):
            w.crb.put(parent, add(w.crb.rows(parent, 10), w.crb.rows(b, 10)))
    with k.loop(0, nv) as d:
        axis = w.cdof.rows(d, 6)
        force = multiply_inertia(w.crb.rows(t.dof_bodyid[d], 10), axis)
        row = w.M.at(d * nv)
        row[d] = dot(axis, force) + k.parameter.dof_armature[d]
        ancestors = t.ancestor.at(t.ancestor_adr[d])
        with k.loop(0, t.ancestor_num[d]) as i:
            a = ancestors[i]
            row[a] = dot(w.cdof.rows(a, 6), force)


def _write_bias(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    w.cvel.put(0, [0.0] * 6)
    w.cacc.put(0, [0.0, 0.0, 0.0] + [-g for g in p.gravity.rows(0, 3)])
    with k.loop(1, k.size("nbody")) as b:
        parent = t.body_parentid[b]
        velocity = [k.variable(x) for x in w.cvel.rows(parent, 6)]
        acceleration = [k.variable(x) for x in w.cacc.rows(parent, 6)]

        def turn(d: Value, base: Sequence[Value], acceleration: Sequence[Variable] = tuple(acceleration)) -> None:
            add_to(acceleration, scale(cross_motion(base, w.cdof.rows(d, 6)), w.qvel[d]))

        move_along_joints(k, b, velocity, lambda d: w.qvel[d], turn)
        cvel, cacc = [x.get() for x in velocity], [x.get() for x in acceleration]
        w.cvel.put(b, cvel)
        w.cacc.put(b, cacc)
        inertia = w.cinert.rows(b, 10)
        w.cfrc.put(b, add(multiply_inertia(inertia, cacc), cross_force(cvel, multiply_inertia(inertia, cvel))))
    with k.loop(k.size("nbody") - 1, 0, -1) as b:
        parent = t.body_parentid[b]
        with k.when(parent > 0):
            w.cfrc.put(parent, add(w.cfrc.rows(parent, 6), w.cfrc.rows(b, 6)))
    with k.loop(0, k.size("nv")) as d:
        w.bias[d] = dot(w.cdof.rows(d, 6), w.cfrc.rows(t.dof_bodyid[d], 6))


def move_along_joints(
    k: TableRoutine,
    b: Value,
    velocity: Sequence[Variable],
    rate: Callable[[Value], Value],
    turn: Callable[[Value, Sequence[Value]], None],
) -> None:
    """Add the axes of the joints of a body, times the rates of their degrees of freedom, to its velocity.

    `turn(d, base)` sees every axis that turns, with the velocity of what it turns with: all axes of a ball joint turn
    with the body before it; translations of a free joint do not turn.
    """
    t, w = k.table, k.work
    first = t.body_jntadr[b]
    with k.loop(first, first + t.body_jntnum[b]) as j:
        kind, dof = t.jnt_type[j], t.jnt_dofadr[j]
        start = k.variable(dof)
        with k.when(kind.equals(FREE_JOINT)):
            for i in range(3):
                add_to(velocity, scale(w.cdof.rows(dof + i, 6), rate(dof + i)))
            start.set(dof + 3)
        base = [x.get() for x in velocity]
        is_ball = kind.equals(FREE_JOINT) | kind.equals(BALL_JOINT)
        count = k.where(is_ball, k.index(3), k.index(1))
        with k.loop(start.get(), start.get() + count) as d:
            turn(d, base)
            add_to(velocity, scale(w.cdof.rows(d, 6), rate(d)))


def add_to(places: Sequence[Variable], values: Sequence[Value]) -> None:
    """Add to variables."""
    for place, x in zip(places, values, strict=True):
        place.add(x)
