"""Constraint blocks: rows of the constraint Jacobian that share a list of degrees of freedom.

A block has `dim` rows over `nd` columns, stored column by column. Its kind says how force depends on the residual
`jar = J a - aref`: an equality is a spring, dry friction a bounded spring, a unilateral row (limit, edge of a
pyramidal cone, frictionless contact) pushes only, and the rows of an elliptic contact belong together. Dry friction
and limits of single degrees of freedom are no blocks but entries of the lists `friction` and `limit`.
"""

from collections.abc import Callable
from functools import partial

from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import LoopArray, Value, Variable
from truesim.physics.routines import cones
from truesim.physics.routines.layout import ELLIPTIC_BLOCK, UNILATERAL_BLOCK

BLOCK_DIMS = (1, 3, 4, 6, 10)
"""Numbers of rows of blocks: machine code is specialized for each."""
ELLIPTIC_DIMS = (3, 4, 6)
W_NUMBERS = 36
"""Room for the Hessian of a block."""


class Block:
    """A block at run time."""

    def __init__(self, k: TableRoutine, number: Value):
        n, w = k.integer, k.work
        self.k, self.number = k, number
        self.kind, self.dim, self.nd = n.block_kind[number], n.block_dim[number], n.block_nd[number]
        self.row = n.block_rowadr[number]
        self.dofs = n.block_dofs.at(n.block_dofadr[number])
        self.J = w.jacobian.at(n.block_jacadr[number])
        self.W = w.block_W.at(number * W_NUMBERS)
        self.line = w.block_line.at(number * cones.LINE_NUMBERS)

    @property
    def mu(self) -> Value:
        """Friction coefficient of the regularized cone."""
        return self.k.work.block_mu[self.number]

    def by_dim(self, write: Callable[[int], None], dims: tuple[int, ...] = BLOCK_DIMS) -> None:
        """Code for every number of rows."""
        self.k.choose(self.dim, {dim: partial(write, dim) for dim in dims})

    def rows(self, array: LoopArray, dim: int) -> list[Value]:
        """Entries of an array of rows."""
        return array.block(self.row, dim)

    def contact(self, dim: int) -> tuple[list[Value], list[Value], Value, list[Value]]:
        """Residuals, weights, friction and scales of an elliptic contact."""
        w = self.k.work
        return self.rows(w.row_jar, dim), self.rows(w.row_D, dim), self.mu, self.rows(w.row_scale, dim)


def each_block(k: TableRoutine, write: Callable[[Block], None]) -> None:
    """Loop over all blocks."""
    with k.loop(0, k.integer.block_count[0]) as b:
        write(Block(k, b))


def multiply_jacobian(k: TableRoutine, vector: LoopArray, out: LoopArray, start: LoopArray | None) -> None:
    """`out = J vector + start` for the rows of all blocks."""

    def write(block: Block) -> None:
        def rows(dim: int) -> None:
            sums = [k.variable(0.0 if start is None else start[block.row + r]) for r in range(dim)]
            with k.loop(0, block.nd) as i:
                x = vector[block.dofs[i]]
                for total, entry in zip(sums, block.J.rows(i, dim), strict=True):
                    total.add(entry * x)
            out.put_block(block.row, [total.get() for total in sums])

        block.by_dim(rows)

    each_block(k, write)


def scalar_row(k: TableRoutine, block: Block, row: Value, jar: Value) -> tuple[Value, Value, Value]:
    """Cost, force and second derivative of a row that is no elliptic contact, at a residual."""
    w = k.work
    D, loss, bound = w.row_D[row], w.row_loss[row], w.row_bound[row]  # the bound of rows without friction is infinite
    slides = ~(k.abs(jar) < bound)
    pushes = ((jar < 0.0) | _mask(k, block.kind.differs(UNILATERAL_BLOCK))) & ~slides
    weight = k.where(pushes, D, 0.0)
    force = k.where(slides, k.where(jar > 0.0, -loss, loss), -(weight * jar))
    cost = k.where(slides, loss * (k.abs(jar) - 0.5 * bound), 0.5 * weight * jar * jar)
    return cost, force, weight


def _mask(k: TableRoutine, flag: Value) -> Value:
    return Value(k, k.builder.select(flag.value, k.mask(True).value, k.mask(False).value))


def update_forces(k: TableRoutine) -> None:
    """Force of every row and Hessian of every block at the residuals `row_jar`."""
    w = k.work

    def write(block: Block) -> None:
        is_elliptic = block.kind.equals(ELLIPTIC_BLOCK)
        with k.when(is_elliptic):

            def elliptic(dim: int) -> None:
                force, W = cones.force_and_hessian(k, *block.contact(dim))
                w.row_force.put_block(block.row, force)
                for i in range(dim):
                    for j in range(dim):
                        block.W[i * dim + j] = W[max(i, j), min(i, j)]

            block.by_dim(elliptic, ELLIPTIC_DIMS)
        with k.when(~is_elliptic), k.loop(0, block.dim) as r:
            row = block.row + r
            _, force, weight = scalar_row(k, block, row, w.row_jar[row])
            w.row_force[row] = force
            block.W[r] = weight

    each_block(k, write)


def subtract_forces(k: TableRoutine, gradient: LoopArray) -> None:
    """`gradient -= J' f`."""

    def write(block: Block) -> None:
        def rows(dim: int) -> None:
            force = block.rows(k.work.row_force, dim)
            with k.loop(0, block.nd) as i:
                d = block.dofs[i]
                total = gradient[d]
                for entry, f in zip(block.J.rows(i, dim), force, strict=True):
                    total = total - entry * f
                gradient[d] = total

        block.by_dim(rows)

    each_block(k, write)


def add_hessians(k: TableRoutine) -> None:
    """`H += J' W J`, lower triangle."""

    def write(block: Block) -> None:
        def full(dim: int) -> None:
            W = block.W.block(0, dim * dim)
            _add_product(k, block, dim, lambda x: [_dot(W[r * dim : r * dim + dim], x) for r in range(dim)])

        def diagonal(dim: int) -> None:
            W = block.W.block(0, dim)
            _add_product(k, block, dim, lambda x: [a * b for a, b in zip(W, x, strict=True)])

        is_elliptic = block.kind.equals(ELLIPTIC_BLOCK)
        with k.when(is_elliptic):
            block.by_dim(full, ELLIPTIC_DIMS)
        with k.when(~is_elliptic):
            block.by_dim(diagonal)

    each_block(k, write)


def _dot(a: list[Value], b: list[Value]) -> Value:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _add_product(k: TableRoutine, block: Block, dim: int, weigh: Callable[[list[Value]], list[Value]]) -> None:
    nv, H = k.size("nv"), k.work.H
    with k.loop(0, block.nd) as i:
        weighted = weigh(block.J.rows(i, dim))
        row = H.at(block.dofs[i] * nv)
        with k.loop(0, i + 1) as j:
            c = block.dofs[j]
            total = row[c]
            for a, b in zip(weighted, block.J.rows(j, dim), strict=True):
                total = total + a * b
            row[c] = total


def prepare_line(k: TableRoutine) -> None:
    """Numbers of every elliptic contact along the search direction `row_Jv`."""

    def write(block: Block) -> None:
        def elliptic(dim: int) -> None:
            jar, D, mu, scales = block.contact(dim)
            block.line.put(0, cones.along_line(k, jar, block.rows(k.work.row_Jv, dim), D, mu, scales))

        with k.when(block.kind.equals(ELLIPTIC_BLOCK)):
            block.by_dim(elliptic, ELLIPTIC_DIMS)

    each_block(k, write)


def evaluate_blocks(k: TableRoutine, step: Value, sums: tuple[Variable, Variable, Variable]) -> None:
    """Add cost, derivative and curvature of all blocks at a step along the search direction."""
    w = k.work

    def write(block: Block) -> None:
        is_elliptic = block.kind.equals(ELLIPTIC_BLOCK)
        with k.when(is_elliptic):
            numbers = block.line.block(0, cones.LINE_NUMBERS)
            for total, x in zip(sums, cones.evaluate_on_line(k, numbers, block.mu, step), strict=True):
                total.add(x)
        with k.when(~is_elliptic), k.loop(0, block.dim) as r:
            row = block.row + r
            direction = w.row_Jv[row]
            cost, force, weight = scalar_row(k, block, row, w.row_jar[row] + step * direction)
            sums[0].add(cost)
            sums[1].add(-(force * direction))
            sums[2].add(weight * direction * direction)

    each_block(k, write)


def block_costs(k: TableRoutine, residuals: LoopArray, total: Variable) -> None:
    """Add the costs of all blocks at given residuals."""

    def write(block: Block) -> None:
        is_elliptic = block.kind.equals(ELLIPTIC_BLOCK)
        with k.when(is_elliptic):

            def elliptic(dim: int) -> None:
                _, D, mu, scales = block.contact(dim)
                total.add(cones.cost(k, block.rows(residuals, dim), D, mu, scales))

            block.by_dim(elliptic, ELLIPTIC_DIMS)
        with k.when(~is_elliptic), k.loop(0, block.dim) as r:
            row = block.row + r
            total.add(scalar_row(k, block, row, residuals[row])[0])

    each_block(k, write)
