"""Rows of equality constraints and of fixed tendons (`mj_instantiateEquality`, tendon parts of friction and limits)."""

from collections.abc import Sequence
from dataclasses import dataclass

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import LoopArray, Value
from truesim.physics.routines.impedance import impedance, regularizer, stiffness_and_damping
from truesim.physics.routines.layout import (
    CONNECT,
    EQUALITY_BLOCK,
    FRICTION_BLOCK,
    JOINT_EQUALITY,
    TENDON_EQUALITY,
    UNILATERAL_BLOCK,
    WELD,
)
from truesim.physics.routines.rows import NewBlock, point_jacobian, with_new_block
from truesim.physics.routines.vectors import (
    add,
    conjugate,
    cross,
    dot,
    multiply_quaternions,
    rotate,
    scale,
    subtract,
)


def write_equality_rows(module: RoutineModule) -> None:
    """Routine `equality_rows`: blocks of equalities, tendon friction and tendon limits."""
    k = TableRoutine(module, "equality_rows")
    t = k.table
    with k.loop(0, k.size("neq")) as e:
        cases = {
            CONNECT: lambda: _write_connect(k, e),
            WELD: lambda: _write_weld(k, e),
            JOINT_EQUALITY: lambda: _write_polynomial(k, e, False),
            TENDON_EQUALITY: lambda: _write_polynomial(k, e, True),
        }
        k.choose(t.eq_type[e], cases)
    with k.loop(0, k.size("ntendon")) as i:
        with k.when(t.tendon_frictional[i].differs(0)):
            _write_tendon_friction(k, i)
        with k.when(t.tendon_limited[i].differs(0)):
            for side in (0, 1):
                _write_tendon_limit(k, i, side)
    k.returns()


def _body_point(k: TableRoutine, body: Value, local: Sequence[Value]) -> list[Value]:
    return add(k.work.xpos.rows(body, 3), rotate(k.work.xmat.rows(body, 9), local))


@dataclass(frozen=True)
class EqualityRows:
    """Violations, velocities, bias accelerations and inverse weights of the rows of an equality."""

    errors: Sequence[Value]
    velocity: Sequence[Value]
    bias: Sequence[Value | float]
    weights: Sequence[Value]

    def write(self, k: TableRoutine, e: Value, block: NewBlock) -> None:
        """Weights and reference accelerations; the impedance depends on the norm of all errors."""
        p, w = k.parameter, k.work
        solimp = p.eq_solimp.rows(e, 5)
        norm = self.errors[0] if len(self.errors) == 1 else k.sqrt(dot(self.errors, self.errors))
        imp = impedance(k, solimp, norm)
        stiffness, damping = stiffness_and_damping(k, p.eq_solref.rows(e, 2), solimp[1])
        w.row_D.put_block(block.row, [1.0 / regularizer(k, imp, x) for x in self.weights])
        rows = zip(self.velocity, self.errors, self.bias, strict=True)
        w.row_aref.put_block(block.row, [-(damping * v) - stiffness * imp * x - a for v, x, a in rows])


def _write_connect(k: TableRoutine, e: Value) -> None:
    t, p, w = k.table, k.parameter, k.work
    bodies = [t.eq_obj1id[e], t.eq_obj2id[e]]
    data = p.eq_data.rows(e, 12)
    points = [_body_point(k, b, data[3 * i : 3 * i + 3]) for i, b in enumerate(bodies)]
    arms = [subtract(x, w.origin.rows(0, 3)) for x in points]

    def fill(block: NewBlock) -> None:
        velocity = [k.variable(0.0) for _ in range(3)]
        with k.loop(0, block.nd) as i:
            dof = block.dofs[i]
            linear, _ = _difference(k, e, i, dof, arms)
            block.J.put(i, linear)
            for total, x in zip(velocity, linear, strict=True):
                total.add(x * w.qvel[dof])
        weight = p.body_invweight0[bodies[0] * 2] + p.body_invweight0[bodies[1] * 2]
        rows = EqualityRows(
            subtract(*points), [v.get() for v in velocity], _bias_acceleration(k, bodies, arms), [weight] * 3
        )
        rows.write(k, e, block)

    with_new_block(k, EQUALITY_BLOCK, 3, t.eq_chain[e], fill)


def _bias_acceleration(k: TableRoutine, bodies: list[Value], arms: list[list[Value]]) -> list[Value]:
    """Relative acceleration of the points at zero joint acceleration: `dJ/dt v`. Gravity cancels."""
    w, accelerations = k.work, []
    for body, arm in zip(bodies, arms, strict=True):
        v, a = w.cvel.rows(body, 6), w.cacc.rows(body, 6)
        speed = add(v[3:], cross(v[:3], arm))
        accelerations.append(add(add(a[3:], cross(a[:3], arm)), cross(v[:3], speed)))
    return subtract(*accelerations)


def _difference(
    k: TableRoutine, e: Value, i: Value, dof: Value, arms: list[list[Value]]
) -> tuple[list[Value], list[Value]]:
    """Jacobian of the first point minus that of the second; the chain says which bodies a coordinate moves."""
    t = k.table
    at = t.chain_adr[t.eq_chain[e]] + i
    first, second = k.to_real(t.chain_first[at]), k.to_real(t.chain_second[at])
    linear1, angular1 = point_jacobian(k, dof, first, arms[0])
    linear2, angular2 = point_jacobian(k, dof, second, arms[1])
    return subtract(linear1, linear2), subtract(angular1, angular2)


def _write_weld(k: TableRoutine, e: Value) -> None:
    t, p, w = k.table, k.parameter, k.work
    bodies = [t.eq_obj1id[e], t.eq_obj2id[e]]
    data = p.eq_data.rows(e, 12)
    points = [_body_point(k, bodies[0], data[3:6]), _body_point(k, bodies[1], data[0:3])]
    arms = [subtract(x, w.origin.rows(0, 3)) for x in points]
    torque = data[10]
    target = multiply_quaternions(w.xquat.rows(bodies[0], 4), data[6:10])
    back = conjugate(w.xquat.rows(bodies[1], 4))
    errors = [*subtract(*points), *scale(multiply_quaternions(back, target)[1:], torque)]

    def fill(block: NewBlock) -> None:
        velocity = [k.variable(0.0) for _ in range(6)]
        with k.loop(0, block.nd) as i:
            dof = block.dofs[i]
            linear, angular = _difference(k, e, i, dof, arms)
            entries = [*linear, *scale(_sandwich(k, back, angular, target)[1:], 0.5 * torque)]
            block.J.put(i, entries)
            for total, x in zip(velocity, entries, strict=True):
                total.add(x * w.qvel[dof])
        weights = [p.body_invweight0[bodies[0] * 2 + c] + p.body_invweight0[bodies[1] * 2 + c] for c in (0, 1)]
        bias = [*_bias_acceleration(k, bodies, arms), *scale(_bias_rotation(k, bodies, back, target), 0.5 * torque)]
        rows = EqualityRows(errors, [v.get() for v in velocity], bias, [weights[0]] * 3 + [weights[1]] * 3)
        rows.write(k, e, block)

    with_new_block(k, EQUALITY_BLOCK, 6, t.eq_chain[e], fill)


def _sandwich(k: TableRoutine, left: list[Value], vector: list[Value], right: list[Value]) -> list[Value]:
    """Quaternion product `left vector right`."""
    return multiply_quaternions(multiply_quaternions(left, [k.real(0.0), *vector]), right)


def _bias_rotation(k: TableRoutine, bodies: list[Value], back: list[Value], target: list[Value]) -> list[Value]:
    """Rate of `back (w1 - w2) target` at zero joint acceleration; `target` turns with w1, `back` against w2."""
    w = k.work
    (w1, a1), (w2, a2) = [(w.cvel.rows(b, 6)[:3], w.cacc.rows(b, 6)[:3]) for b in bodies]
    difference = subtract(w1, w2)
    moved_target = scale(multiply_quaternions([k.real(0.0), *w1], target), 0.5)
    moved_back = scale(multiply_quaternions(back, [k.real(0.0), *w2]), -0.5)
    parts = [
        _sandwich(k, back, subtract(a1, a2), target),
        _sandwich(k, moved_back, difference, target),
        _sandwich(k, back, difference, moved_target),
    ]
    return add(add(parts[0], parts[1]), parts[2])[1:]


def _write_polynomial(k: TableRoutine, e: Value, is_tendon: bool) -> None:
    """First coordinate = polynomial of the second; joints or tendons, measured from the reference configuration."""
    t, p, w = k.table, k.parameter, k.work
    one, two = t.eq_obj1id[e], t.eq_obj2id[e]
    data = p.eq_data.rows(e, 12)

    def coordinate(i: Value) -> Value:
        if is_tendon:
            return w.ten_length[i] - p.tendon_length0[i]
        return w.qpos[t.jnt_qposadr[i]] - p.qpos0[t.jnt_qposadr[i]]

    def inverse_weight(i: Value) -> Value:
        return p.tendon_invweight0[i] if is_tendon else p.dof_invweight0[t.jnt_dofadr[i]]

    error, rate = k.variable(coordinate(one) - data[0]), k.variable(0.0)
    weight = k.variable(inverse_weight(one))
    with k.when(two >= 0):
        x = coordinate(two)
        error.add(-(x * (data[1] + x * (data[2] + x * (data[3] + x * data[4])))))
        rate.set(data[1] + x * (2.0 * data[2] + x * (3.0 * data[3] + 4.0 * x * data[4])))
        weight.add(inverse_weight(two))

    def fill(block: NewBlock) -> None:
        velocity = k.variable(0.0)
        with k.loop(0, block.nd) as i:  # the chain has the coefficients of both objects
            at = t.chain_adr[t.eq_chain[e]] + i
            entry = _chain_coefficient(k, t.chain_first, at) - rate.get() * _chain_coefficient(k, t.chain_second, at)
            block.J[i] = entry
            velocity.add(entry * w.qvel[block.dofs[i]])
        EqualityRows([error.get()], [velocity.get()], [0.0], [weight.get()]).write(k, e, block)

    with_new_block(k, EQUALITY_BLOCK, 1, t.eq_chain[e], fill)


def _chain_coefficient(k: TableRoutine, table: LoopArray, at: Value) -> Value:
    """Coefficient number `table[at]` of `wrap_coef`; number 0 is zero and number 1 is one."""
    return k.parameter.wrap_coef[table[at]]


def _fill_tendon(k: TableRoutine, i: Value, block: NewBlock, sign: float) -> None:
    first = k.table.tendon_adr[i]
    with k.loop(0, block.nd) as n:
        block.J[n] = k.parameter.wrap_coef[first + n] * sign


def _write_tendon_friction(k: TableRoutine, i: Value) -> None:
    p, w = k.parameter, k.work

    def fill(block: NewBlock) -> None:
        solimp = p.tendon_solimp_fri.rows(i, 5)
        imp = impedance(k, solimp, k.real(0.0))
        _, damping = stiffness_and_damping(k, p.tendon_solref_fri.rows(i, 2), solimp[1])
        R, loss = regularizer(k, imp, p.tendon_invweight0[i]), p.tendon_frictionloss[i]
        _fill_tendon(k, i, block, 1.0)
        w.row_D[block.row] = 1.0 / R
        w.row_loss[block.row] = loss
        w.row_bound[block.row] = R * loss
        w.row_aref[block.row] = -(damping * w.ten_velocity[i])

    with_new_block(k, FRICTION_BLOCK, 1, k.table.tendon_chain[i], fill)


def _write_tendon_limit(k: TableRoutine, i: Value, side: int) -> None:
    p, w = k.parameter, k.work
    sign = 1.0 - 2.0 * side
    margin = p.tendon_margin[i]
    dist = (w.ten_length[i] - p.tendon_range[i * 2 + side]) * sign
    active = dist < margin

    def fill(block: NewBlock) -> None:
        solimp = p.tendon_solimp_lim.rows(i, 5)
        imp = impedance(k, solimp, dist - margin)
        stiffness, damping = stiffness_and_damping(k, p.tendon_solref_lim.rows(i, 2), solimp[1])
        _fill_tendon(k, i, block, sign)
        w.row_D[block.row] = k.where(active, 1.0 / regularizer(k, imp, p.tendon_invweight0[i]), 0.0)
        w.row_aref[block.row] = -(damping * sign * w.ten_velocity[i]) - stiffness * imp * (dist - margin)

    with k.when(k.any(active)):
        with_new_block(k, UNILATERAL_BLOCK, 1, k.table.tendon_chain[i], fill)
