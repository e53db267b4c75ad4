"""Poses of bodies, joint axes as spatial vectors, and spatial inertias (`mj_kinematics`, `mj_comPos`).

Spatial vectors are angular first, in world axes, about the position of the first body (`origin`).
"""

from truesim.native.loops.functions import sincos
from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Operand, Value, Variable
from truesim.physics.routines.layout import BALL_JOINT, FREE_JOINT, HINGE_JOINT, SLIDE_JOINT
from truesim.physics.routines.vectors import (
    add,
    column,
    cross,
    multiply_quaternions,
    normalize,
    rotate,
    rotate_symmetric,
    rotation_matrix,
    scale,
    subtract,
)


def write_kinematics(module: RoutineModule) -> None:
    """Routine `kinematics`: `qpos` to `xpos`, `xquat`, `xmat`, `cdof`, `cinert`."""
    k = TableRoutine(module, "kinematics")
    w = k.work
    w.xpos.put(0, [0.0] * 3)
    w.xquat.put(0, [1.0, 0.0, 0.0, 0.0])
    w.xmat.put(0, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    with k.loop(1, k.size("nbody")) as b:
        _pose_body(k, b)
    w.origin.put(0, w.xpos.rows(1, 3))
    _move_axes_to_origin(k)
    _write_inertias(k)
    k.returns()


def _pose_body(k: TableRoutine, b: Value) -> None:
    t, p, w = k.table, k.parameter, k.work
    parent = t.body_parentid[b]
    R = w.xmat.rows(parent, 9)
    pos = [Variable(x) for x in add(w.xpos.rows(parent, 3), rotate(R, p.body_pos.rows(b, 3)))]
    quat = [Variable(x) for x in multiply_quaternions(w.xquat.rows(parent, 4), p.body_quat.rows(b, 4))]
    first = t.body_jntadr[b]
    with k.loop(first, first + t.body_jntnum[b]) as j:
        _apply_joint(k, j, pos, quat)
    q = [x.get() for x in quat]
    w.xpos.put(b, [x.get() for x in pos])
    w.xquat.put(b, q)
    R = rotation_matrix(q)
    w.xmat.put(b, R)
    with k.loop(first, first + t.body_jntnum[b]) as j:
        is_rotating = (t.jnt_type[j]).equals(FREE_JOINT) | (t.jnt_type[j]).equals(BALL_JOINT)
        with k.when(
            is_rotating
        ):  # axes of the body as it now stands, anchor in the linear part until `_move_axes_to_origin`
            dof = t.jnt_dofadr[j] + k.where((t.jnt_type[j]).equals(FREE_JOINT), k.index(3), k.index(0))
            for i in range(3):
                w.cdof.put(dof + i, column(R, i) + w.xanchor.rows(j, 3))


def _apply_joint(k: TableRoutine, j: Value, pos: list[Variable], quat: list[Variable]) -> None:
    t, p, w = k.table, k.parameter, k.work
    at, dof = t.jnt_qposadr[j], t.jnt_dofadr[j]

    def free() -> None:
        x = w.qpos.block(at, 3)
        q = normalize(k, w.qpos.block(at + 3, 4))
        for place, value in zip(pos + quat, x + q, strict=True):
            place.set(value)
        for i in range(3):
            w.cdof.put(dof + i, [0.0] * 3 + [float(i == c) for c in range(3)])
        w.xanchor.put(j, x)

    def axis_and_anchor() -> tuple[list[Value], list[Value]]:
        R = rotation_matrix([x.get() for x in quat])
        anchor = add([x.get() for x in pos], rotate(R, p.jnt_pos.rows(j, 3)))
        return rotate(R, p.jnt_axis.rows(j, 3)), anchor

    def turn(dq: list[Value], anchor: list[Value]) -> None:
        new = multiply_quaternions([x.get() for x in quat], dq)
        x = subtract(anchor, rotate(rotation_matrix(new), p.jnt_pos.rows(j, 3)))
        for place, value in zip(pos + quat, x + new, strict=True):
            place.set(value)

    def ball() -> None:
        _, anchor = axis_and_anchor()
        turn(normalize(k, w.qpos.block(at, 4)), anchor)
        w.xanchor.put(j, anchor)

    def slide() -> None:
        axis, _ = axis_and_anchor()
        x = w.qpos[at] - p.qpos0[at]
        for place, a in zip(pos, axis, strict=True):
            place.add(a * x)
        w.cdof.put(dof, [0.0] * 3 + axis)

    def hinge() -> None:
        axis, anchor = axis_and_anchor()
        s, c = sincos(k, (w.qpos[at] - p.qpos0[at]) * 0.5)
        turn([c, *scale(p.jnt_axis.rows(j, 3), s)], anchor)
        w.cdof.put(dof, axis + anchor)

    k.choose(t.jnt_type[j], {FREE_JOINT: free, BALL_JOINT: ball, SLIDE_JOINT: slide, HINGE_JOINT: hinge})


def _move_axes_to_origin(k: TableRoutine) -> None:
    w = k.work
    origin = w.origin.rows(0, 3)
    with k.loop(0, k.size("nv")) as d, k.when(k.table.dof_rotates[d].differs(0)):
        axis, anchor = w.cdof.block(d * 6, 3), w.cdof.block(d * 6 + 3, 3)
        w.cdof.put_block(d * 6 + 3, cross(subtract(anchor, origin), axis))


def _write_inertias(k: TableRoutine) -> None:
    p, w = k.parameter, k.work
    origin = w.origin.rows(0, 3)
    with k.loop(1, k.size("nbody")) as b:
        x = add(w.xpos.rows(b, 3), rotate(w.xmat.rows(b, 9), p.body_ipos.rows(b, 3)))
        c = subtract(x, origin)
        w.cinert.put(b, spatial_inertia(w.xmat.rows(b, 9), c, p.body_mass[b], p.body_inertia.rows(b, 6)))


def spatial_inertia(R: list[Value], c: list[Value], mass: Value, six: list[Value]) -> list[Operand]:
    """MuJoCo's ten numbers of a body with inertia `six` along the columns of R and its centre at c."""
    xx, yy, zz, xy, xz, yz = rotate_symmetric(R, six)

    cc = [[c[i] * c[j] for j in range(3)] for i in range(3)]
    return [
        xx + mass * (cc[1][1] + cc[2][2]),
        yy + mass * (cc[0][0] + cc[2][2]),
        zz + mass * (cc[0][0] + cc[1][1]),
        xy - mass * cc[0][1],
        xz - mass * cc[0][2],
        yz - mass * cc[1][2],
        *scale(c, mass),
        mass,
    ]
