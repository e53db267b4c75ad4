"""MuJoCo's Newton method for the constrained acceleration, iteration by iteration (`mj_solNewton`).

Minimize `1/2 (a - a0)' M (a - a0) + s(J a - aref)` over the acceleration a, where a0 is the smooth acceleration and s
the constraint cost. A lane stops by MuJoCo's own rules, with `scale = 1 / trace(M)` of its island; others go on.
Literal repetition matters: a converged solution differs from MuJoCo's default one by 1e-6 to 1e-4 after 200 steps.
"""

from collections.abc import Callable

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import LoopArray, Value
from truesim.physics.routines.blocks import (
    add_hessians,
    block_costs,
    multiply_jacobian,
    prepare_line,
    subtract_forces,
    update_forces,
)
from truesim.physics.routines.factor import multiply_inertia_matrix
from truesim.physics.routines.line_search import LineSearch
from truesim.physics.routines.scalar_rows import (
    add_scalar_hessians,
    each_friction,
    each_limit,
    scalar_costs,
    subtract_scalar_forces,
)

_SHORTEST_SEARCH = 1e-15
"""Length of a search direction below which MuJoCo takes no step (`mjMINVAL`)."""


def write_newton(module: RoutineModule) -> None:
    """Routines of the solver; `newton` improves `qacc` for the degrees of freedom `dof_low` to `dof_high`."""
    _write_residuals(module)
    _write_start(module)
    _write_gradient(module)
    _write_direction(module)
    _write_search(module)
    _write_newton(module)


def each_dof(k: TableRoutine, write: Callable[[Value], None]) -> None:
    """Loop over the degrees of freedom of the island."""
    with k.loop(k.integer.dof_low[0], k.integer.dof_high[0]) as d:
        write(d)


def sum_dofs(k: TableRoutine, term: Callable[[Value], Value]) -> Value:
    """Sum over the degrees of freedom of the island."""
    total = k.variable(0.0)
    each_dof(k, lambda d: total.add(term(d)))
    return total.get()


def _write_residuals(module: RoutineModule) -> None:
    """Routine `residuals`: `Ma`, and `jar = J a - aref` of all rows."""
    k = TableRoutine(module, "residuals")
    w = k.work
    multiply_inertia_matrix(k, w.qacc, w.Ma)
    with k.loop(0, k.integer.row_count[0]) as r:
        w.row_jar[r] = -w.row_aref[r]
    multiply_jacobian(k, w.qacc, w.row_jar, w.row_jar)

    def friction(i: Value, d: Value) -> None:
        w.friction_jar[i] = w.qacc[d] - w.friction_aref[i]

    def limit(i: Value, d: Value, sign: Value) -> None:
        w.limit_jar[i] = sign * w.qacc[d] - w.limit_aref[i]

    each_friction(k, friction)
    each_limit(k, limit)
    k.returns()


def constraint_cost(k: TableRoutine, friction_jar: LoopArray, limit_jar: LoopArray, row_jar: LoopArray) -> Value:
    """Cost of all constraints at given residuals."""
    total = k.variable(0.0)
    scalar_costs(k, friction_jar, limit_jar, total)
    block_costs(k, row_jar, total)
    return total.get()


def _write_start(module: RoutineModule) -> None:
    """Routine `start`: `qacc_smooth`, and the warm start in `qacc` replaced by it where it costs less in all."""
    k = TableRoutine(module, "start")
    w = k.work
    copy_inertia(k)
    each_dof(k, lambda d: w.search.__setitem__(d, w.tau[d]))
    k.call("factor_tree")
    k.call("solve_tree")
    each_dof(k, lambda d: w.qacc_smooth.__setitem__(d, w.search[d]))
    cost = constraint_cost(k, w.friction_jar, w.limit_jar, w.row_jar)
    cost = cost + 0.5 * sum_dofs(k, lambda d: (w.Ma[d] - w.tau[d]) * (w.qacc[d] - w.search[d]))
    each_dof(k, lambda d: w.Mv.__setitem__(d, w.search[d] - w.qacc[d]))
    multiply_jacobian(k, w.Mv, w.row_other, w.row_jar)
    each_friction(k, lambda i, d: w.friction_other.__setitem__(i, w.friction_jar[i] + w.Mv[d]))
    each_limit(k, lambda i, d, s: w.limit_other.__setitem__(i, w.limit_jar[i] + s * w.Mv[d]))
    is_cold = k.size("warm").equals(0)
    smooth = constraint_cost(k, w.friction_other, w.limit_other, w.row_other) < cost
    smooth = k.where(is_cold, k.mask(True), smooth)

    def choose(array: LoopArray, other: LoopArray, i: Value) -> None:
        array[i] = k.where(smooth, other[i], array[i])

    with k.when(k.any(smooth)):
        each_dof(k, lambda d: choose(w.qacc, w.search, d))
        each_dof(k, lambda d: choose(w.Ma, w.tau, d))
        each_friction(k, lambda i, d: choose(w.friction_jar, w.friction_other, i))
        each_limit(k, lambda i, d, s: choose(w.limit_jar, w.limit_other, i))
        with k.loop(0, k.integer.row_count[0]) as r:
            choose(w.row_jar, w.row_other, r)
    k.returns()


def copy_inertia(k: TableRoutine) -> None:
    """`H = M` on the pattern of the tree."""
    t, w, nv = k.table, k.work, k.size("nv")

    def row(d: Value) -> None:
        w.H[d * nv + d] = w.M[d * nv + d]
        with k.loop(t.ancestor_adr[d], t.ancestor_adr[d] + t.ancestor_num[d]) as i:
            a = t.ancestor[i]
            w.H[d * nv + a] = w.M[d * nv + a]

    each_dof(k, row)


def _write_gradient(module: RoutineModule) -> None:
    """Routine `gradient`: `grad = M a - tau - J' f`, forces and Hessians of blocks."""
    k = TableRoutine(module, "gradient")
    w = k.work
    each_dof(k, lambda d: w.grad.__setitem__(d, w.Ma[d] - w.tau[d]))
    subtract_scalar_forces(k, w.grad)
    update_forces(k)
    subtract_forces(k, w.grad)
    k.returns()


def _write_direction(module: RoutineModule) -> None:
    """Routine `direction`: `search = -H^-1 grad` with `H = M + J' W J`."""
    k = TableRoutine(module, "direction")
    w, nv = k.work, k.size("nv")
    coupled = k.integer.coupled[0].differs(0)
    with k.when(coupled):  # entries outside of the tree's pattern
        fill = k.integer

        def clear(d: Value) -> None:
            with k.loop(fill.fill_adr[d], fill.fill_adr[d] + fill.fill_num[d]) as i:
                w.H[d * nv + fill.fill[i]] = 0.0

        each_dof(k, clear)
    copy_inertia(k)
    add_scalar_hessians(k)
    add_hessians(k)
    each_dof(k, lambda d: w.search.__setitem__(d, -w.grad[d]))
    with k.when(coupled):
        k.call("factor_filled")
        k.call("solve_filled")
    with k.when(~coupled):
        k.call("factor_tree")
        k.call("solve_tree")
    k.returns()


def _write_search(module: RoutineModule) -> None:
    """Routine `search_line`: step, improvement and number of points along `search`, in the lanes of `newton_active`."""
    k = TableRoutine(module, "search_line")
    w, p = k.work, k.parameter
    multiply_inertia_matrix(k, w.search, w.Mv)
    multiply_jacobian(k, w.search, w.row_Jv, None)
    prepare_line(k)
    derivative = sum_dofs(k, lambda d: w.search[d] * (w.Ma[d] - w.tau[d]))
    curvature = sum_dofs(k, lambda d: w.search[d] * w.Mv[d])
    w.line_start.put(0, [derivative, curvature, constraint_cost(k, w.friction_jar, w.limit_jar, w.row_jar)])
    norm = k.sqrt(sum_dofs(k, lambda d: w.search[d] * w.search[d]))
    tolerance = p.tolerance[0] * p.ls_tolerance[0] * norm / w.newton_scale[0]
    active = (w.newton_active[0] > 0.0) & (norm >= _SHORTEST_SEARCH)
    search = LineSearch(k, active, tolerance)
    result = search.run()
    w.newton_points[0] = w.newton_points[0] + k.where(active, search.count.get(), 0.0)
    w.newton_improvement[0] = -(result.cost * w.newton_scale[0])
    w.newton_active[0] = k.where(active & result.step.differs(0.0), k.real(1.0), 0.0)
    w.newton_step[0] = k.where(active, result.step, 0.0)
    k.returns()


def _take_step(k: TableRoutine) -> None:
    w = k.work
    step = w.newton_step[0]

    def move(array: LoopArray, i: Value, direction: Value) -> None:
        array[i] = array[i] + step * direction

    each_dof(k, lambda d: move(w.qacc, d, w.search[d]))
    each_dof(k, lambda d: move(w.Ma, d, w.Mv[d]))
    each_friction(k, lambda i, d: move(w.friction_jar, i, w.search[d]))
    each_limit(k, lambda i, d, sign: move(w.limit_jar, i, sign * w.search[d]))
    with k.loop(0, k.integer.row_count[0]) as r:
        move(w.row_jar, r, w.row_Jv[r])


def _write_newton(module: RoutineModule) -> None:
    k = TableRoutine(module, "newton")
    w, tolerance, nv = k.work, k.parameter.tolerance[0], k.size("nv")
    trace = sum_dofs(k, lambda d: k.where(w.dof_inside[d] > 0.0, w.M[d * nv + d], 0.0))
    w.newton_scale[0] = 1.0 / k.where(trace > 0.0, trace, 1.0)  # zero in lanes without this island
    active = k.variable(k.mask(True))
    improvement = k.variable(-1.0)
    limit = k.size("iterations")
    scale = w.newton_scale[0]

    def stop(mask: Value) -> None:
        active.set(active.get() & ~mask)

    with k.breakable_loop(0, limit + 1) as (iteration, leave_if):
        k.call("gradient")
        is_small = k.sqrt(sum_dofs(k, lambda d: w.grad[d] * w.grad[d])) * scale < tolerance
        is_first = iteration.equals(0)
        with k.when(~is_first):
            gain = improvement.get()
            stop(is_small | ((gain > 0.0) & (gain < tolerance)))
        with k.when(is_first & k.any(is_small)):
            copy_inertia(k)
            each_dof(k, lambda d: w.search.__setitem__(d, w.grad[d]))
            k.call("factor_tree")
            k.call("solve_tree")
            decrement = 0.5 * scale * sum_dofs(k, lambda d: w.grad[d] * w.search[d])
            stop(is_small & (decrement < tolerance))
        leave_if(~k.any(active.get()) | iteration.equals(limit))
        k.call("direction")
        decrement = -0.5 * scale * sum_dofs(k, lambda d: w.grad[d] * w.search[d])
        is_converged = decrement < tolerance
        stop(Value(k, k.builder.select(is_first.value, (is_converged & is_small).value, is_converged.value)))
        leave_if(~k.any(active.get()))
        w.newton_active[0] = k.where(active.get(), k.real(1.0), 0.0)
        k.call("search_line")  # a step of zero ends the solve and is not counted
        active.set(w.newton_active[0] > 0.0)
        w.newton_iterations[0] = w.newton_iterations[0] + w.newton_active[0]
        improvement.set(w.newton_improvement[0])
        _take_step(k)
    k.returns()
