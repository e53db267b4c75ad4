"""Free bodies without joints on them, in `implicitfast`: their block has the derivative of gyroscopic forces.

With B the block of `M + h D` and G the derivative of its bias forces by its velocity, `(B + h G) a = force`. The
block is not symmetric and is solved by elimination without pivots: G is small against B.
"""

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import Value
from truesim.physics.routines.vectors import add, cross_force, cross_motion, dot, multiply_inertia, scale


def solve_standalone_bodies(k: TableRoutine, *, transposed: bool = False) -> None:
    """Write the accelerations of standalone free bodies, from H before its factorization, to `free_result`."""
    t, w = k.table, k.work
    h, nv = k.parameter.timestep[0], k.size("nv")
    with k.loop(0, k.size("nfree")) as i:
        dof = t.jnt_dofadr[t.free_jnt[i]]
        G = _bias_derivative(k, dof)
        block = [[w.H[(dof + max(r, c)) * nv + dof + min(r, c)] for c in range(6)] for r in range(6)]
        for r in range(6):
            for c in range(3):
                block[r][3 + c] = block[r][3 + c] + h * G[c][r]
        if transposed:
            block = [list(row) for row in zip(*block, strict=True)]
        w.free_result.put(i, _solve(block, w.search.block(dof, 6)))


def restore_standalone_bodies(k: TableRoutine) -> None:
    """Put the accelerations of standalone free bodies into `search`."""
    t, w = k.table, k.work
    with k.loop(0, k.size("nfree")) as i:
        w.search.put_block(t.jnt_dofadr[t.free_jnt[i]], w.free_result.rows(i, 6))


def _bias_derivative(k: TableRoutine, dof: Value) -> list[list[Value]]:
    """Derivative of the six bias forces by each of the three angular velocities."""
    t, w = k.table, k.work
    axes = [w.cdof.rows(dof + i, 6) for i in range(6)]
    v = [w.qvel[dof + i] for i in range(6)]
    inertia = w.crb.rows(t.dof_bodyid[dof], 10)
    base = add(add(scale(axes[0], v[0]), scale(axes[1], v[1])), scale(axes[2], v[2]))
    velocity = base
    for i in range(3, 6):
        velocity = add(velocity, scale(axes[i], v[i]))
    momentum = multiply_inertia(inertia, velocity)
    columns = []
    for i in range(3, 6):
        force = multiply_inertia(inertia, cross_motion(base, axes[i]))
        force = add(force, cross_force(axes[i], momentum))
        force = add(force, cross_force(velocity, multiply_inertia(inertia, axes[i])))
        columns.append([dot(axis, force) for axis in axes])
    return columns


def _solve(A: list[list[Value]], b: list[Value]) -> list[Value]:
    """Solution of A x = b by elimination."""
    n = len(b)
    A, b = [list(row) for row in A], list(b)
    for c in range(n):
        inverse = 1.0 / A[c][c]
        for r in range(c + 1, n):
            factor = A[r][c] * inverse
            for j in range(c + 1, n):
                A[r][j] = A[r][j] - factor * A[c][j]
            b[r] = b[r] - factor * b[c]
    x: list[Value] = [b[0]] * n
    for r in reversed(range(n)):
        total = b[r]
        for c in range(r + 1, n):
            total = total - A[r][c] * x[c]
        x[r] = total / A[r][r]
    return x
