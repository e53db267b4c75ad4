"""Joint-space inertia by composite rigid bodies, and bias forces by recursive Newton-Euler (`mj_crb`, `mj_rne`)."""

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value
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
        first = t.body_jntadr[b]
        with k.loop(first, first + t.body_jntnum[b]) as j:
            kind, dof = t.jnt_type[j], t.jnt_dofadr[j]
            start = k.variable(dof)
            with k.when(kind.equals(FREE_JOINT)):
                _add_axes(k, dof, 3, velocity)
                start.set(dof + 3)
            base = [x.get() for x in velocity]
            is_ball = kind.equals(FREE_JOINT) | kind.equals(BALL_JOINT)
            count = k.where(is_ball, k.index(3), k.index(1))
            with k.loop(start.get(), start.get() + count) as d:  # all axes of a ball joint turn with the body before it
                axis, v = w.cdof.rows(d, 6), w.qvel[d]
                for place, x in zip(acceleration, scale(cross_motion(base, axis), v), strict=True):
                    place.add(x)
                for place, x in zip(velocity, scale(axis, v), strict=True):
                    place.add(x)
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


def _add_axes(k: TableRoutine, dof: Value, count: int, velocity: list) -> None:
    for i in range(count):
        for place, x in zip(velocity, scale(k.work.cdof.rows(dof + i, 6), k.work.qvel[dof + i]), strict=True):
            place.add(x)
