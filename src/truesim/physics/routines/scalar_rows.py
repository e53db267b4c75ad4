"""Dry friction and limits of single degrees of freedom: rows of the constraint Jacobian with one entry, kept as lists.

Entry `i` of `friction` acts on degree of freedom `friction_dof[i]`; entry `i` of `limit` on `limit_dof[i]` in
direction `limit_sign[i]`.
"""

from collections.abc import Callable

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import LoopArray, Value, Variable

RowFunction = Callable[[Value, Value, Value, Value], None]
"""Gets the entry, its degree of freedom, its direction (plus or minus one) and its weight D."""


def each_friction(k: TableRoutine, write: Callable[[Value, Value], None]) -> None:
    """Loop over friction entries: number and degree of freedom."""
    with k.loop(0, k.size("nfriction")) as i:
        write(i, k.table.friction_dof[i])


def each_limit(k: TableRoutine, write: Callable[[Value, Value, Value], None]) -> None:
    """Loop over limit entries: number, degree of freedom and direction."""
    with k.loop(0, k.integer.limit_count[0]) as i:
        write(i, k.integer.limit_dof[i], k.work.limit_sign[i])


def friction_row(k: TableRoutine, i: Value, jar: Value) -> tuple[Value, Value, Value]:
    """Cost, force and second derivative of dry friction at a residual."""
    w = k.work
    D, loss, bound = w.friction_D[i], w.friction_loss[i], w.friction_bound[i]
    size = k.abs(jar)
    sticks = size < bound
    weight = k.where(sticks, D, 0.0)
    force = k.where(sticks, -(D * jar), k.where(jar > 0.0, -loss, loss))
    return k.where(sticks, 0.5 * D * jar * jar, loss * (size - 0.5 * bound)), force, weight


def limit_row(k: TableRoutine, i: Value, jar: Value) -> tuple[Value, Value, Value]:
    """Cost, force and second derivative of a limit at a residual."""
    weight = k.where(jar < 0.0, k.work.limit_D[i], 0.0)
    force = -(weight * jar)
    return -0.5 * force * jar, force, weight


def subtract_scalar_forces(k: TableRoutine, gradient: LoopArray) -> None:
    """`gradient -= J' f` for friction and limits."""

    def friction(i: Value, d: Value) -> None:
        gradient[d] = gradient[d] - friction_row(k, i, k.work.friction_jar[i])[1]

    def limit(i: Value, d: Value, sign: Value) -> None:
        gradient[d] = gradient[d] - sign * limit_row(k, i, k.work.limit_jar[i])[1]

    each_friction(k, friction)
    each_limit(k, limit)


def add_scalar_hessians(k: TableRoutine) -> None:
    """`H += J' W J` for friction and limits: entries of the diagonal."""
    nv, H = k.size("nv"), k.work.H

    def friction(i: Value, d: Value) -> None:
        H[d * nv + d] = H[d * nv + d] + friction_row(k, i, k.work.friction_jar[i])[2]

    def limit(i: Value, d: Value, sign: Value) -> None:
        H[d * nv + d] = H[d * nv + d] + limit_row(k, i, k.work.limit_jar[i])[2]

    each_friction(k, friction)
    each_limit(k, limit)


def evaluate_scalar_rows(k: TableRoutine, step: Value, sums: tuple[Variable, Variable, Variable]) -> None:
    """Add cost, derivative and curvature of friction and limits at a step along `search`."""
    w = k.work

    def add(row: tuple[Value, Value, Value], x: Value) -> None:
        cost, force, weight = row
        sums[0].add(cost)
        sums[1].add(-(force * x))
        sums[2].add(weight * x * x)

    def friction(i: Value, d: Value) -> None:
        x = w.search[d]
        add(friction_row(k, i, w.friction_jar[i] + step * x), x)

    def limit(i: Value, d: Value, sign: Value) -> None:
        x = sign * w.search[d]
        add(limit_row(k, i, w.limit_jar[i] + step * x), x)

    each_friction(k, friction)
    each_limit(k, limit)


def scalar_costs(k: TableRoutine, friction_jar: LoopArray, limit_jar: LoopArray, total: Variable) -> None:
    """Add the costs of friction and limits."""
    each_friction(k, lambda i, d: total.add(friction_row(k, i, friction_jar[i])[0]))
    each_limit(k, lambda i, d, sign: total.add(limit_row(k, i, limit_jar[i])[0]))
