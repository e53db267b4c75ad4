"""Islands: trees that constraints join are solved together, others apart, each with its own stopping (`mj_island`).

Which trees belong together differs between lanes. Every tree has the smallest number of its island as a label, by
lane; the solver runs once for every label, with the degrees of freedom and rows of other islands masked: zero force,
zero acceleration, zero weight.
"""

from collections.abc import Callable

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value
from truesim.physics.routines.scalar_rows import each_friction, each_limit

_DOF_COPIES = ("tau", "qacc")
_ROW_COPIES = ("row_D", "row_loss", "row_bound")
_FRICTION_COPIES = ("friction_D", "friction_bound", "friction_loss")


def write_islands(module: RoutineModule) -> None:
    """Routine `solve_islands`: `qacc`, `Ma` and `grad` of all islands."""
    k = TableRoutine(module, "solve_islands")
    w, nv = k.work, k.size("nv")
    _mark_constrained_trees(k)
    _label_trees(k)
    _copy(k, keep=True)
    with k.loop(0, nv) as d:  # of trees without constraints
        w.qacc_result[d], w.Ma_result[d], w.grad_result[d] = w.qacc_smooth[d], w.tau[d], 0.0
    with k.loop(0, k.size("ntree")) as root:
        number = k.to_real(root)
        present = k.variable(k.mask(False))
        low, high = k.variable(nv), k.variable(k.index(0))
        with k.loop(0, nv) as d:
            tree = k.table.dof_treeid[d]
            inside = w.tree_label[tree].equals(number) & (w.tree_constrained[tree] > 0.0)
            w.dof_inside[d] = k.where(inside, k.real(1.0), 0.0)
            present.set(present.get() | inside)
            with k.when(k.any(inside)):
                low.set(k.where(d < low.get(), d, low.get()))
                high.set(d + 1)
        with k.when(k.any(present.get())):
            k.integer.dof_low[0], k.integer.dof_high[0] = low.get(), high.get()
            _copy(k, keep=False)
            k.call("residuals")
            k.call("newton")
            with k.loop(low.get(), high.get()) as d:
                inside = w.dof_inside[d] > 0.0
                for result, found in ((w.qacc_result, w.qacc[d]), (w.Ma_result, w.Ma[d]), (w.grad_result, w.grad[d])):
                    result[d] = k.where(inside, found, result[d])
    k.integer.dof_low[0], k.integer.dof_high[0] = k.index(0), nv
    with k.loop(0, nv) as d:
        w.qacc[d], w.Ma[d], w.grad[d] = w.qacc_result[d], w.Ma_result[d], w.grad_result[d]
        w.tau[d] = w.tau_all[d]
        w.dof_inside[d] = 1.0
    _restore_rows(k)
    k.returns()


def _mark_constrained_trees(k: TableRoutine) -> None:
    """Trees on which some row acts, by lane."""
    t, n, w = k.table, k.integer, k.work
    with k.loop(0, k.size("ntree")) as i:
        w.tree_constrained[i] = 0.0

    def mark(d: Value, weight: Value) -> None:
        tree = t.dof_treeid[d]
        w.tree_constrained[tree] = k.where(weight > 0.0, 1.0, w.tree_constrained[tree])

    each_friction(k, lambda i, d: mark(d, w.friction_D[i]))
    each_limit(k, lambda i, d, sign: mark(d, w.limit_D[i]))
    with k.loop(0, n.block_count[0]) as b, k.loop(n.block_dofadr[b], n.block_dofadr[b] + n.block_nd[b]) as i:
        mark(n.block_dofs[i], w.row_D[n.block_rowadr[b]])


def _label_trees(k: TableRoutine) -> None:
    """Smallest tree number of the island of every tree, by lane."""
    n, w = k.integer, k.work
    with k.loop(0, k.size("ntree")) as t:
        w.tree_label[t] = k.to_real(t)
    with k.repeat() as leave_if:
        changed = k.variable(k.mask(False))
        with k.loop(0, n.block_count[0]) as b:
            dofs = n.block_dofs.at(n.block_dofadr[b])
            active = w.row_D[n.block_rowadr[b]] > 0.0
            with k.loop(1, n.block_nd[b]) as i:
                one, two = k.table.dof_treeid[dofs[i - 1]], k.table.dof_treeid[dofs[i]]
                with k.when(one.differs(two)):
                    a, c = w.tree_label[one], w.tree_label[two]
                    changed.set(changed.get() | (active & a.differs(c)))
                    smaller = k.minimum(a, c)
                    w.tree_label[one] = k.where(active, smaller, a)
                    w.tree_label[two] = k.where(active, smaller, c)
        leave_if(~k.any(changed.get()))


def _copy(k: TableRoutine, keep: bool) -> None:
    """Keep all forces and weights (`keep`), or restore those of the island and set the others to zero."""
    w = k.work

    def move(name: str, i: Value, inside: Callable[[], Value]) -> None:
        array, stored = getattr(w, name), getattr(w, name + "_all")
        if keep:
            stored[i] = array[i]
        else:
            array[i] = k.where(inside(), stored[i], 0.0)

    def is_inside(d: Value) -> Callable[[], Value]:
        return lambda: w.dof_inside[d] > 0.0

    with k.loop(0, k.size("nv")) as d:
        for name in _DOF_COPIES:
            move(name, d, is_inside(d))
    _each_row(k, lambda name, i, d: move(name, i, is_inside(d)))


def _restore_rows(k: TableRoutine) -> None:
    """Weights of all rows, as before the islands."""
    w = k.work

    def restore(name: str, i: Value, d: Value) -> None:
        getattr(w, name)[i] = getattr(w, name + "_all")[i]

    _each_row(k, restore)


def _each_row(k: TableRoutine, write: Callable[[str, Value, Value], None]) -> None:
    """Loop over the weights of all rows: name of the array, entry, and a degree of freedom that the row acts on."""
    n = k.integer

    def friction(i: Value, d: Value) -> None:
        for name in _FRICTION_COPIES:
            write(name, i, d)

    each_friction(k, friction)
    each_limit(k, lambda i, d, sign: write("limit_D", i, d))
    with k.loop(0, n.block_count[0]) as b:
        first = n.block_dofs[n.block_dofadr[b]]
        with k.loop(n.block_rowadr[b], n.block_rowadr[b] + n.block_dim[b]) as r:
            for name in _ROW_COPIES:
                write(name, r, first)
