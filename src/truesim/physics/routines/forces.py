"""Smooth forces: springs, dampers, tendons, gravity compensation and actuators (`mj_passive`, `mj_fwdActuation`)."""

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value
from truesim.physics.routines.layout import (
    BALL_JOINT,
    FREE_JOINT,
    HINGE_JOINT,
    IMPLICIT,
    IMPLICITFAST,
    JOINT_TRANSMISSION,
    SLIDE_JOINT,
)
from truesim.physics.routines.vectors import (
    add,
    conjugate,
    cross,
    dot,
    multiply_quaternions,
    rotate,
    rotation_axis,
    scale,
    subtract,
)


def write_forces(module: RoutineModule) -> None:
    """Routine `forces`: `qfrc_smooth = actuators + passive - bias`, and `actuator_clamped` for the integrator."""
    k = TableRoutine(module, "forces")
    _write_tendons(k)
    _write_passive(k)
    with k.when(k.size("has_gravcomp").differs(0)):
        _write_gravity_compensation(k)
    _write_actuation(k)
    k.returns()


def _write_tendons(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    with k.loop(0, k.size("ntendon")) as i:
        length, velocity = k.variable(0.0), k.variable(0.0)
        with k.loop(t.tendon_adr[i], t.tendon_adr[i] + t.tendon_num[i]) as n:
            length.add(p.wrap_coef[n] * w.qpos[t.wrap_qposadr[n]])
            velocity.add(p.wrap_coef[n] * w.qvel[t.wrap_dofadr[n]])
        w.ten_length[i] = length.get()
        w.ten_velocity[i] = velocity.get()


def _write_passive(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    with k.loop(0, k.size("nv")) as d:
        w.tau[d] = -w.bias[d] - p.dof_damping[d] * w.qvel[d]
        w.qfrc_actuator[d] = 0.0
        w.qfrc_gravcomp[d] = 0.0
    with k.loop(0, k.size("njnt")) as j, k.when(t.jnt_springy[j].differs(0)):
        _write_spring(k, j)
    with k.loop(0, k.size("ntendon")) as i:
        length = w.ten_length[i]
        low, high = p.tendon_lengthspring.rows(i, 2)
        elongation = k.where(length > high, high - length, k.where(length < low, low - length, 0.0))
        force = p.tendon_stiffness[i] * elongation - p.tendon_damping[i] * w.ten_velocity[i]
        with k.loop(t.tendon_adr[i], t.tendon_adr[i] + t.tendon_num[i]) as n:
            d = t.wrap_dofadr[n]
            w.tau[d] = w.tau[d] + p.wrap_coef[n] * force


def _write_spring(k: TableRoutine, j: Value) -> None:
    """Force of the spring of a joint; rotations deflect it by their rotation vector from rest."""
    t, p, w = k.table, k.parameter, k.work
    at, dof, stiffness = t.jnt_qposadr[j], t.jnt_dofadr[j], p.jnt_stiffness[j]

    def pull(dof: Value, deflection: Value) -> None:
        w.tau[dof] = w.tau[dof] - stiffness * deflection

    def move(count: int) -> None:
        for i in range(count):
            pull(dof + i, w.qpos[at + i] - p.qpos_spring[at + i])

    def turn(at: Value, dof: Value) -> None:
        rest = [p.qpos_spring[at + i] for i in range(4)]
        angle, axis = rotation_axis(k, multiply_quaternions(conjugate(rest), w.qpos.block(at, 4)))
        for i, x in enumerate(axis):
            pull(dof + i, angle * x)

    def free() -> None:
        move(3)
        turn(at + 3, dof + 3)

    kinds = {FREE_JOINT: free, BALL_JOINT: lambda: turn(at, dof), SLIDE_JOINT: lambda: move(1)}
    k.choose(t.jnt_type[j], {**kinds, HINGE_JOINT: lambda: move(1)})


def _write_gravity_compensation(k: TableRoutine) -> None:
    """Force `-m g` times the compensated fraction, at the centre of mass of each body; summed from leaves to root."""
    t, p, w = k.table, k.parameter, k.work
    origin, gravity = w.origin.rows(0, 3), p.gravity.rows(0, 3)
    with k.loop(0, k.size("nbody")) as b:
        centre = add(w.xpos.rows(b, 3), rotate(w.xmat.rows(b, 9), p.body_ipos.rows(b, 3)))
        force = scale(gravity, -(p.body_mass[b] * p.body_gravcomp[b]))
        w.cgrav.put(b, cross(subtract(centre, origin), force) + force)
    with k.loop(k.size("nbody") - 1, 0, -1) as b:
        parent = t.body_parentid[b]
        w.cgrav.put(parent, add(w.cgrav.rows(parent, 6), w.cgrav.rows(b, 6)))
    with k.loop(0, k.size("nv")) as d:
        lift = dot(w.cdof.rows(d, 6), w.cgrav.rows(t.dof_bodyid[d], 6))
        to_actuator = t.jnt_actgravcomp[t.dof_jntid[d]].differs(0)
        w.qfrc_gravcomp[d] = k.where(to_actuator, lift, k.real(0.0))
        w.tau[d] = w.tau[d] + k.where(to_actuator, k.real(0.0), lift)


def _write_actuation(k: TableRoutine) -> None:
    t, p, w = k.table, k.parameter, k.work
    acts = k.size("actuation").differs(0)
    with k.loop(0, k.size("nu")) as i:
        length, velocity = transmission(k, i)
        low, high = p.actuator_ctrlrange.rows(i, 2)
        control = k.clip(w.ctrl[i], low, high)
        gain, bias = p.actuator_gainprm.rows(i, 3), p.actuator_biasprm.rows(i, 3)
        force = (gain[0] + gain[1] * length + gain[2] * velocity) * control
        force = force + (bias[0] + bias[1] * length + bias[2] * velocity)
        low, high = p.actuator_forcerange.rows(i, 2)
        is_clamped = (force <= low) | (force >= high)
        derivative = k.where(is_clamped, 0.0, gain[2] * control + bias[2])  # d force / d velocity
        w.actuator_derivative[i] = k.where(acts, derivative, k.real(0.0))
        force = k.where(acts, k.clip(force, low, high) * p.actuator_gear[i], k.real(0.0))
        with k.loop(t.actuator_wrapadr[i], t.actuator_wrapadr[i] + t.actuator_wrapnum[i]) as n:
            d = t.wrap_dofadr[n]
            w.qfrc_actuator[d] = w.qfrc_actuator[d] + p.wrap_coef[n] * force
        with k.when(t.actuator_trntype[i].equals(JOINT_TRANSMISSION)):
            d = t.jnt_dofadr[t.actuator_trnid[i]]
            w.qfrc_actuator[d] = w.qfrc_actuator[d] + force
    with k.loop(0, k.size("nv")) as d:
        low, high = p.dof_actfrcrange.rows(d, 2)
        force = k.where(acts, w.qfrc_actuator[d] + w.qfrc_gravcomp[d], k.real(0.0))
        w.dof_clamped[d] = k.where((force <= low) | (force >= high), k.real(1.0), 0.0)
        w.tau[d] = w.tau[d] + k.clip(force, low, high)


def transmission(k: TableRoutine, i: Value) -> tuple[Value, Value]:
    """Length and velocity of an actuator's transmission: a scalar joint or a fixed tendon, times its gear."""
    t, w = k.table, k.work
    gear, target = k.parameter.actuator_gear[i], t.actuator_trnid[i]
    length, velocity = k.variable(0.0), k.variable(0.0)
    is_joint = t.actuator_trntype[i].equals(JOINT_TRANSMISSION)
    with k.when(is_joint):
        length.set(w.qpos[t.jnt_qposadr[target]])
        velocity.set(w.qvel[t.jnt_dofadr[target]])
    with k.when(~is_joint):
        length.set(w.ten_length[target])
        velocity.set(w.ten_velocity[target])
    return length.get() * gear, velocity.get() * gear


def write_damping(module: RoutineModule) -> None:
    """Routine `damping`: `H = M + h D`, where -D is the derivative of forces that the integrator treats implicitly.

    Euler takes the dampers of the joints; `implicit` and `implicitfast` also those of tendons and the velocity gains of
    actuators that are not clamped, where two degrees of freedom are related in the tree; `implicit` also bias forces.
    Bounds of a joint clamp the actuators on the joint, not those on tendons.
    """
    k = TableRoutine(module, "damping")
    t, p, w = k.table, k.parameter, k.work
    h, nv = p.timestep[0], k.size("nv")
    with k.loop(0, nv) as d:
        w.H[d * nv + d] = w.M[d * nv + d] + h * p.dof_damping[d] * k.to_real(k.size("implicit_damping"))
        with k.loop(t.ancestor_adr[d], t.ancestor_adr[d] + t.ancestor_num[d]) as i:
            a = t.ancestor[i]
            w.H[d * nv + a] = w.M[d * nv + a]
    is_general = k.size("integrator").equals(IMPLICIT)
    with k.when(k.size("integrator").equals(IMPLICITFAST) | is_general):
        with k.loop(0, k.size("ntendon")) as i:
            _add_product(k, t.tendon_adr[i], t.tendon_num[i], h * p.tendon_damping[i])
        with k.loop(0, k.size("nu")) as i:
            gear = p.actuator_gear[i]
            derivative = -(h * w.actuator_derivative[i] * gear * gear)
            with k.when(t.actuator_trntype[i].equals(JOINT_TRANSMISSION)):
                d = t.jnt_dofadr[t.actuator_trnid[i]]
                w.H[d * nv + d] = w.H[d * nv + d] + k.where(w.dof_clamped[d] > 0.0, 0.0, derivative)
            _add_product(k, t.actuator_wrapadr[i], t.actuator_wrapnum[i], derivative)
    with k.when(is_general):
        k.call("bias_derivative")
    k.returns()


def _add_product(k: TableRoutine, first: Value, count: Value, weight: Value) -> None:
    """Add `weight c c'` to H, where c are the coefficients of a tendon, for related degrees of freedom."""
    t, p, w = k.table, k.parameter, k.work
    nv = k.size("nv")
    with k.loop(first, first + count) as i, k.loop(first, first + count) as j:
        row, col = t.wrap_dofadr[i], t.wrap_dofadr[j]
        with k.when((row >= col) & t.dof_related[row * nv + col].differs(0)):
            w.H[row * nv + col] = w.H[row * nv + col] + weight * p.wrap_coef[i] * p.wrap_coef[j]
