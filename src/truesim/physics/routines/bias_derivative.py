"""Derivative of bias forces by velocities, column by column (`mjd_rne_vel`), for the integrator `implicit`."""

from collections.abc import Sequence

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value
from truesim.physics.routines.inertia import add_to, move_along_joints
from truesim.physics.routines.vectors import add, cross_force, cross_motion, dot, multiply_inertia, scale


def write_bias_derivative(module: RoutineModule) -> None:
    """Routine `bias_derivative`: `H <- H + h d bias / d qvel`, both triangles, from H below the diagonal.

    The derivative is zero where neither of two degrees of freedom moves the other, as in the inertia matrix.
    """
    k = TableRoutine(module, "bias_derivative")
    t, w = k.table, k.work
    h, nv, nbody = k.parameter.timestep[0], k.size("nv"), k.size("nbody")
    with k.loop(0, nv) as d, k.loop(t.ancestor_adr[d], t.ancestor_adr[d] + t.ancestor_num[d]) as i:
        w.H[t.ancestor[i] * nv + d] = w.H[d * nv + t.ancestor[i]]
    _write_rates_of_axes(k)
    with k.loop(0, nv) as column:
        own = t.dof_bodyid[column]
        with k.loop(0, nbody) as b:
            for array in (w.dvel, w.dacc, w.dfrc):
                array.put(b, [0.0] * 6)
        with k.loop(own, nbody) as b:
            _write_body(k, b, column)
        with k.loop(nbody - 1, 0, -1) as b:
            parent = t.body_parentid[b]
            with k.when(parent > 0):
                w.dfrc.put(parent, add(w.dfrc.rows(parent, 6), w.dfrc.rows(b, 6)))
        with k.loop(0, nv) as d, k.when(t.dof_related[d * nv + column].differs(0)):
            own_force = dot(w.cdof.rows(d, 6), w.dfrc.rows(t.dof_bodyid[d], 6))
            w.H[d * nv + column] = w.H[d * nv + column] + h * own_force
    k.returns()


def _write_rates_of_axes(k: TableRoutine) -> None:
    """Rate of change of every axis that turns, in `cdof_dot`."""
    t, w = k.table, k.work

    def keep(d: Value, base: Sequence[Value]) -> None:
        w.cdof_dot.put(d, cross_motion(base, w.cdof.rows(d, 6)))

    with k.loop(1, k.size("nbody")) as b:
        velocity = [k.variable(x) for x in w.cvel.rows(t.body_parentid[b], 6)]
        move_along_joints(k, b, velocity, lambda d: w.qvel[d], keep)


def _write_body(k: TableRoutine, b: Value, column: Value) -> None:
    """Derivatives of velocity, acceleration and force of a body by the velocity of one degree of freedom."""
    w = k.work
    parent = k.table.body_parentid[b]
    velocity = [k.variable(x) for x in w.dvel.rows(parent, 6)]
    acceleration = [k.variable(x) for x in w.dacc.rows(parent, 6)]

    def rate(d: Value) -> Value:
        return k.where(d.equals(column), k.real(1.0), 0.0)

    def turn(d: Value, base: Sequence[Value]) -> None:
        add_to(acceleration, scale(cross_motion(base, w.cdof.rows(d, 6)), w.qvel[d]))
        add_to(acceleration, scale(w.cdof_dot.rows(d, 6), rate(d)))

    move_along_joints(k, b, velocity, rate, turn)
    dvel, dacc = [x.get() for x in velocity], [x.get() for x in acceleration]
    w.dvel.put(b, dvel)
    w.dacc.put(b, dacc)
    inertia, cvel = w.cinert.rows(b, 10), w.cvel.rows(b, 6)
    turning = add(
        cross_force(dvel, multiply_inertia(inertia, cvel)), cross_force(cvel, multiply_inertia(inertia, dvel))
    )
    w.dfrc.put(b, add(multiply_inertia(inertia, dacc), turning))
