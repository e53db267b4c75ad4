"""Sparse factorization H = L' D L from the leaves of the tree to its root, and its solves (Featherstone, section 6.5).

Row `k` of a symmetric matrix has entries at the columns of its list, all smaller than `k`, the nearest first. For the
joint-space inertia the list holds the ancestors of `k` in the tree, which produces no fill-in. Constraints between
branches add entries; `fill` extends the lists so that elimination in the same order stays within them. Entries that
are zero in a lane leave all of its results unchanged, so results do not depend on the other instances of a tile.
"""

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import INDEX_TYPE, LoopArray, Value


def write_factor(module: RoutineModule) -> None:
    """Routines `factor_tree` and `factor_filled`: H in place becomes L (below the diagonal) and 1/D (diagonal)."""
    for name in ("tree", "filled"):
        k = TableRoutine(module, f"factor_{name}")
        _factor(k, *_lists(k, name))
        k.returns()


def write_solve(module: RoutineModule) -> None:
    """Routines `solve_tree` and `solve_filled`: `search <- H^-1 search` with the factors in H."""
    for name in ("tree", "filled"):
        k = TableRoutine(module, f"solve_{name}")
        _solve(k, *_lists(k, name), k.work.search)
        k.returns()


def _lists(k: TableRoutine, name: str) -> tuple[LoopArray, LoopArray, LoopArray]:
    if name == "tree":
        return k.table.ancestor, k.table.ancestor_adr, k.table.ancestor_num
    return k.integer.fill, k.integer.fill_adr, k.integer.fill_num


def _factor(k: TableRoutine, columns: LoopArray, first: LoopArray, count: LoopArray) -> None:
    nv, H = k.size("nv"), k.work.H
    with k.loop(k.integer.dof_high[0] - 1, k.integer.dof_low[0] - 1, -1) as n:
        row, mine = H.at(n * nv), columns.at(first[n])
        inverse = 1.0 / row[n]
        row[n] = inverse
        length = count[n]
        with k.loop(0, length) as i:
            a = mine[i]
            x = row[a] * inverse
            other = H.at(a * nv)
            with k.loop(i, length) as j:  # the entries j > i of this row are not scaled yet
                c = mine[j]
                other[c] = other[c] - x * row[c]
            row[a] = x


def _solve(k: TableRoutine, columns: LoopArray, first: LoopArray, count: LoopArray, x: LoopArray) -> None:
    nv, H = k.size("nv"), k.work.H
    low, high = k.integer.dof_low[0], k.integer.dof_high[0]
    with k.loop(high - 1, low - 1, -1) as n:
        row, mine, value = H.at(n * nv), columns.at(first[n]), x[n]
        with k.loop(0, count[n]) as i:
            c = mine[i]
            x[c] = x[c] - row[c] * value
    with k.loop(low, high) as n:
        row, mine = H.at(n * nv), columns.at(first[n])
        total = k.variable(x[n] * row[n])
        with k.loop(0, count[n]) as i:
            c = mine[i]
            total.add(-(row[c] * x[c]))
        x[n] = total.get()


def write_general_factor(module: RoutineModule) -> None:
    """Routine `factor_general`: the same for a matrix on the pattern of the tree that is not symmetric.

    H in place becomes U (above the diagonal), 1/D (diagonal) and L, not scaled, with `H = (1 + U) (D + L)`.
    """
    k = TableRoutine(module, "factor_general")
    t, nv, H = k.table, k.size("nv"), k.work.H
    with k.loop(nv - 1, -1, -1) as n:
        row, mine, length = H.at(n * nv), t.ancestor.at(t.ancestor_adr[n]), t.ancestor_num[n]
        inverse = 1.0 / row[n]
        row[n] = inverse
        with k.loop(0, length) as i:
            other = H.at(mine[i] * nv)
            x = other[n] * inverse
            other[n] = x
            with k.loop(0, length) as j:
                c = mine[j]
                other[c] = other[c] - x * row[c]
    k.returns()


def write_general_solve(module: RoutineModule) -> None:
    """Routines `solve_general` and `solve_general_transposed`: `search <- H^-1 search`, or with H transposed."""
    for name, transposed in (("solve_general", False), ("solve_general_transposed", True)):
        k = TableRoutine(module, name)
        t, nv, H, x = k.table, k.size("nv"), k.work.H, k.work.search

        def entry(n: Value, a: Value, of_row: bool, H: LoopArray = H, nv: Value = nv) -> Value:
            return H[n * nv + a] if of_row else H[a * nv + n]

        with k.loop(nv - 1, -1, -1) as n:
            mine, value = t.ancestor.at(t.ancestor_adr[n]), x[n]
            if transposed:
                value = value * H[n * nv + n]
                x[n] = value
            with k.loop(0, t.ancestor_num[n]) as i:
                a = mine[i]
                x[a] = x[a] - entry(n, a, transposed) * value
        with k.loop(0, nv) as n:
            mine, total = t.ancestor.at(t.ancestor_adr[n]), k.variable(x[n])
            with k.loop(0, t.ancestor_num[n]) as i:
                a = mine[i]
                total.add(-(entry(n, a, not transposed) * x[a]))
            x[n] = total.get() if transposed else total.get() * H[n * nv + n]
        k.returns()


def multiply_inertia_matrix(k: TableRoutine, x: LoopArray, y: LoopArray) -> None:
    """`y = M x` for a matrix on the pattern of the tree."""
    t, nv, M = k.table, k.size("nv"), k.work.M
    with k.loop(k.integer.dof_low[0], k.integer.dof_high[0]) as d:
        row, mine, value = M.at(d * nv), t.ancestor.at(t.ancestor_adr[d]), x[d]
        total = k.variable(row[d] * value)
        with k.loop(0, t.ancestor_num[d]) as i:
            a = mine[i]
            entry = row[a]
            total.add(entry * x[a])
            y[a] = y[a] + entry * value
        y[d] = total.get()


def write_fill(module: RoutineModule) -> None:
    """Routine `fill`: lists of columns for M plus all blocks; sets of columns are bits of `pattern`."""
    k = TableRoutine(module, "fill")
    t, n = k.table, k.integer
    nv, words = k.size("nv"), k.size("words")
    with k.loop(0, nv * words) as i:
        n.pattern[i] = t.tree_pattern[i]
    with k.loop(0, n.block_count[0]) as b:
        dofs = n.block_dofs.at(n.block_dofadr[b])
        with k.loop(0, n.block_nd[b]) as i, k.loop(0, i) as j:  # lists of blocks ascend
            _insert(k, dofs[i], dofs[j])
    total = k.variable(k.index(0))
    with k.loop(nv - 1, -1, -1) as d:
        n.fill_adr[d] = total.get()
        with k.loop(d - 1, -1, -1) as c, k.when(_contains(k, d, c)):
            n.fill[total.get()] = c
            total.add(1)
        n.fill_num[d] = total.get() - n.fill_adr[d]
        with k.when(n.fill_num[d] > 1):  # the nearest column inherits the others
            parent = n.fill[n.fill_adr[d]]
            with k.loop(n.fill_adr[d] + 1, total.get()) as i:
                _insert(k, parent, n.fill[i])
    k.returns()


def _place(k: TableRoutine, row: Value, col: Value) -> tuple[Value, Value]:
    one = k.index(1)
    return row * k.size("words") + (col >> 6), Value(k, k.builder.shl(one.value, (col & 63).value))


def _insert(k: TableRoutine, row: Value, col: Value) -> None:
    place, bit = _place(k, row, col)
    k.integer.pattern[place] = k.integer.pattern[place] | bit


def _contains(k: TableRoutine, row: Value, col: Value) -> Value:
    place, bit = _place(k, row, col)
    return (k.integer.pattern[place] & bit).differs(0)


assert INDEX_TYPE.width == 64  # `pattern` stores 64 columns an integer
