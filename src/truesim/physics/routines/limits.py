"""Rows of joints: dry friction and limits (`mj_instantiateFriction`, `mj_instantiateLimit`)."""

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value
from truesim.physics.routines.impedance import impedance, regularizer, stiffness_and_damping
from truesim.physics.routines.layout import BALL_JOINT, HINGE_JOINT, SLIDE_JOINT, UNILATERAL_BLOCK
from truesim.physics.routines.rows import NewBlock, with_new_block
from truesim.physics.routines.vectors import rotation_axis


def write_limit_rows(module: RoutineModule) -> None:
    """Routine `limit_rows`: entries of `friction` and `limit`, and blocks of limited ball joints."""
    k = TableRoutine(module, "limit_rows")
    t = k.table
    _write_friction(k)
    k.integer.limit_count[0] = k.index(0)
    with k.loop(0, k.size("njnt")) as j, k.when(t.jnt_limited[j].differs(0)):
        is_scalar = t.jnt_type[j].equals(HINGE_JOINT) | t.jnt_type[j].equals(SLIDE_JOINT)
        with k.when(is_scalar):
            for side in (0, 1):
                _write_limit(k, j, side)
        with k.when(t.jnt_type[j].equals(BALL_JOINT)):
            _write_ball_limit(k, j)
    k.returns()


def _write_friction(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    with k.loop(0, k.size("nfriction")) as i:
        d = t.friction_dof[i]
        solimp = p.dof_solimp.rows(d, 5)
        imp = impedance(k, solimp, k.real(0.0))
        _, damping = stiffness_and_damping(k, p.dof_solref.rows(d, 2), solimp[1])
        R = regularizer(k, imp, p.dof_invweight0[d])
        loss = p.dof_frictionloss[d]
        w.friction_D[i] = 1.0 / R
        w.friction_bound[i] = R * loss
        w.friction_loss[i] = loss
        w.friction_aref[i] = -(damping * w.qvel[d])


def _write_limit(k: TableRoutine, j: Value, side: int) -> None:
    t, p, w = k.table, k.parameter, k.work
    sign = 1.0 - 2.0 * side
    d = t.jnt_dofadr[j]
    margin = p.jnt_margin[j]
    dist = (w.qpos[t.jnt_qposadr[j]] - p.jnt_range[j * 2 + side]) * sign
    active = dist < margin
    with k.when(k.any(active)):
        D, damping, spring = _weigh(k, j, d, dist - margin)
        i = k.integer.limit_count[0]
        k.integer.limit_count[0] = i + 1
        k.integer.limit_dof[i] = d
        w.limit_sign[i] = sign
        w.limit_D[i] = k.where(active, D, 0.0)
        w.limit_aref[i] = -(damping * sign * w.qvel[d]) - spring


def _weigh(k: TableRoutine, j: Value, dof: Value, violation: Value) -> tuple[Value, Value, Value]:
    """Weight, damping and spring term of a limit row."""
    p = k.parameter
    solimp = p.jnt_solimp.rows(j, 5)
    imp = impedance(k, solimp, violation)
    stiffness, damping = stiffness_and_damping(k, p.jnt_solref.rows(j, 2), solimp[1])
    return 1.0 / regularizer(k, imp, p.dof_invweight0[dof]), damping, stiffness * imp * violation


def _write_ball_limit(k: TableRoutine, j: Value) -> None:
    t, p, w = k.table, k.parameter, k.work
    at, dof = t.jnt_qposadr[j], t.jnt_dofadr[j]
    angle, axis = rotation_axis(k, w.qpos.block(at, 4))
    largest = k.maximum(p.jnt_range[j * 2], p.jnt_range[j * 2 + 1])
    margin = p.jnt_margin[j]
    dist = largest - angle
    active = dist < margin
    with k.when(k.any(active)):

        def fill(block: NewBlock) -> None:
            velocity = k.real(0.0)
            for i in range(3):
                block.J[i] = -axis[i]
                velocity = velocity - axis[i] * w.qvel[dof + i]
            D, damping, spring = _weigh(k, j, dof, dist - margin)
            w.row_D[block.row] = k.where(active, D, 0.0)
            w.row_aref[block.row] = -(damping * velocity) - spring

        with_new_block(k, UNILATERAL_BLOCK, 1, t.jnt_chain[j], fill)
