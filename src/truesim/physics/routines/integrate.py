"""Integration over a step (`mj_Euler`, `mj_implicit`, `mj_RungeKutta`, `mj_integratePos`)."""

from truesim.native.loops.functions import sincos
from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import LoopArray, Value
from truesim.physics.routines.gyroscopic import restore_standalone_bodies, solve_standalone_bodies
from truesim.physics.routines.layout import BALL_JOINT, FREE_JOINT, HINGE_JOINT, IMPLICIT, SLIDE_JOINT
from truesim.physics.routines.vectors import add, cross, dot, multiply_quaternions, normalize, scale

RUNGE_KUTTA_STAGES = ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0))
"""Fraction of the time step at which each later stage of Runge-Kutta lies, and its weight against the first."""
_TINY = 1e-30
"""Added to the squared angular velocity, so that its root can be divided by."""


def write_integrate(module: RoutineModule) -> None:
    """Routine `integrate`: `qvel` and `qpos` at the end of the step, `warmstart` for the next one."""
    k = TableRoutine(module, "integrate")
    w, h = k.work, k.parameter.timestep[0]
    with k.loop(0, k.size("nv")) as d:
        w.warmstart[d] = w.qacc[d]
        w.search[d] = w.qacc[d]
    with k.when(k.size("implicit_damping").differs(0)):
        with k.loop(0, k.size("nv")) as d:
            w.search[d] = w.Ma[d] - w.grad[d]  # smooth force plus constraint force: equal to M a only at convergence
        solve_implicit(k)
    with k.loop(0, k.size("nv")) as d:
        w.qvel[d] = w.qvel[d] + h * w.search[d]
    _integrate_positions(k, w.qpos, w.qvel, h)
    k.returns()


def solve_implicit(k: TableRoutine) -> None:
    """Solve `(M + h D) search' = search`; the factors of `M + h D` stay in H."""
    k.call("damping")
    is_general = k.size("integrator").equals(IMPLICIT)
    with k.when(is_general):
        k.call("factor_general")
        k.call("solve_general")
    with k.when(~is_general):
        solve_standalone_bodies(k)
        k.call("factor_tree")
        k.call("solve_tree")
        restore_standalone_bodies(k)


def write_stages(module: RoutineModule) -> None:
    """Routine `stages`: the other evaluations of a Runge-Kutta step after `forward`, and the state after it.

    A stage reaches the configuration `q0 + dq`; the rate of a rotation vector dq is `dexp^-1(dq) w`. Every stage starts
    its solver from the same acceleration, and the next step from that of the last stage.
    """
    k = TableRoutine(module, "stages")
    w, h, nv = k.work, k.parameter.timestep[0], k.size("nv")
    with k.loop(0, k.size("nq")) as i:
        w.stage_qpos[i] = w.qpos[i]
    with k.loop(0, nv) as d:
        w.stage_qvel[d] = w.qvel[d]
        for array in (w.stage_rate, w.stage_rates):
            array[d] = w.qvel[d]
        w.stage_accelerations[d] = w.qacc[d]
    for part, weight in RUNGE_KUTTA_STAGES:
        step = h * part
        with k.loop(0, nv) as d:
            w.qvel[d] = w.stage_qvel[d] + step * w.qacc[d]
        _restart_positions(k)
        _integrate_positions(k, w.qpos, w.stage_rate, step)
        status = k.call("forward")
        k.return_if(status.differs(0), status)
        _write_rates(k, step)
        with k.loop(0, nv) as d:
            w.stage_rates[d] = w.stage_rates[d] + weight * w.stage_rate[d]
            w.stage_accelerations[d] = w.stage_accelerations[d] + weight * w.qacc[d]
    with k.loop(0, nv) as d:
        w.warmstart[d] = w.qacc[d]
        w.qvel[d] = w.stage_qvel[d] + h * (w.stage_accelerations[d] * (1 / 6))
        w.stage_rate[d] = w.stage_rates[d] * (1 / 6)
    _restart_positions(k)
    _integrate_positions(k, w.qpos, w.stage_rate, h)
    k.returns()


def _restart_positions(k: TableRoutine) -> None:
    with k.loop(0, k.size("nq")) as i:
        k.work.qpos[i] = k.work.stage_qpos[i]


def _write_rates(k: TableRoutine, step: Value) -> None:
    """Rates of the displacement `step * stage_rate` while the configuration there moves with `qvel`."""
    t, w = k.table, k.work
    with k.loop(0, k.size("njnt")) as j:
        dof, kind = t.jnt_dofadr[j], t.jnt_type[j]

        def copy(count: int, dof: Value = dof) -> None:
            for i in range(count):
                w.stage_rate[dof + i] = w.qvel[dof + i]

        def rotate(dof: Value) -> None:
            turn, omega = scale(w.stage_rate.block(dof, 3), step), w.qvel.block(dof, 3)
            once = cross(turn, omega)
            rate = add(omega, add(scale(once, 0.5), scale(cross(turn, once), 1 / 12)))
            w.stage_rate.put_block(dof, rate)

        def free(dof: Value = dof) -> None:
            copy(3)
            rotate(dof + 3)

        def ball(dof: Value = dof) -> None:
            rotate(dof)

        kinds = {FREE_JOINT: free, BALL_JOINT: ball, SLIDE_JOINT: lambda: copy(1), HINGE_JOINT: lambda: copy(1)}
        k.choose(kind, kinds)


def _integrate_positions(k: TableRoutine, qpos: LoopArray, rate: LoopArray, h: Value) -> None:
    """Move configurations by a rate over a time, in place."""
    with k.loop(0, k.size("njnt")) as j:
        _integrate_joint(k, j, qpos, rate, h)


def _integrate_joint(k: TableRoutine, j: Value, qpos: LoopArray, rate: LoopArray, h: Value) -> None:
    at, dof = k.table.jnt_qposadr[j], k.table.jnt_dofadr[j]

    def turn(q: Value, d: Value) -> None:
        """Rotate a quaternion by a body-frame angular velocity over the step."""
        omega = rate.block(d, 3)
        speed = k.sqrt(dot(omega, omega) + _TINY)
        s, c = sincos(k, speed * h * 0.5)
        new = multiply_quaternions(qpos.block(q, 4), [c, *scale(omega, s / speed)])
        qpos.put_block(q, normalize(k, new))

    def move() -> None:
        qpos[at] = qpos[at] + h * rate[dof]

    def free() -> None:
        for i in range(3):
            qpos[at + i] = qpos[at + i] + h * rate[dof + i]
        turn(at + 3, dof + 3)

    k.choose(
        k.table.jnt_type[j], {FREE_JOINT: free, BALL_JOINT: lambda: turn(at, dof), SLIDE_JOINT: move, HINGE_JOINT: move}
    )
