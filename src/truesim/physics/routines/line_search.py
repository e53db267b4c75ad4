"""MuJoCo's exact line search (`PrimalSearch`), for all lanes at once.

Newton steps from zero until the derivative changes its sign, then a bracket whose ends move to the best of three
candidates: a Newton step from each end and the midpoint. The search of a lane ends at the first point whose
derivative is below the tolerance; lanes that have ended keep their result.
"""

from dataclasses import dataclass

from truesim.native.loops.layout import RoutineModule, TableRoutine
from truesim.native.loops.values import Value, Variable
from truesim.physics.routines.blocks import evaluate_blocks
from truesim.physics.routines.scalar_rows import evaluate_scalar_rows
from truesim.physics.routines.vectors import select


def write_evaluate(module: RoutineModule) -> None:
    """Routine `evaluate`: cost relative to step zero, derivative and curvature at the step `line_point[0]`, behind it.

    `line_start` holds derivative and curvature of the Gauss term at zero and the constraint cost there.
    """
    k = TableRoutine(module, "evaluate")
    w = k.work
    step = w.line_point[0]
    derivative, curvature, cost = w.line_start.block(0, 3)
    sums = (
        k.variable(step * (derivative + 0.5 * step * curvature) - cost),
        k.variable(derivative + step * curvature),
        k.variable(curvature),
    )
    evaluate_scalar_rows(k, step, sums)
    evaluate_blocks(k, step, sums)
    w.line_point.put_block(1, [s.get() for s in sums])
    k.returns()


@dataclass
class LinePoint:
    """A step, and cost, derivative and curvature there."""

    step: Value
    cost: Value
    derivative: Value
    curvature: Value

    def fields(self) -> list[Value]:
        """The four numbers."""
        return [self.step, self.cost, self.derivative, self.curvature]

    @property
    def newton(self) -> Value:
        """Step at which a Newton step from here ends."""
        return self.step - self.derivative / self.curvature


class LinePointVariable:
    """A point that changes."""

    def __init__(self, k: TableRoutine, point: LinePoint):
        self._k, self._places = k, [Variable(x) for x in point.fields()]

    def get(self) -> LinePoint:
        """Present point."""
        return LinePoint(*[x.get() for x in self._places])

    def take(self, mask: Value, point: LinePoint) -> None:
        """Assign in the lanes of a mask."""
        for place, x in zip(self._places, select(self._k, mask, point.fields(), self.get().fields()), strict=True):
            place.set(x)


class LineSearch:
    """State of the search while its code is written."""

    def __init__(self, k: TableRoutine, active: Value, tolerance: Value):
        self.k, self.tolerance = k, tolerance
        start = self.evaluate(k.real(0.0))
        first = self.evaluate(start.newton)
        self.count = k.variable(2.0)
        self.result, self.p1, self.p2 = (LinePointVariable(k, p) for p in (first, first, start))
        is_done = (k.abs(first.derivative) < tolerance) & (first.step.equals(0.0) | (first.cost < 0.0))
        self.searching = k.variable(active & ~is_done)
        self.direction = k.where(first.derivative < 0.0, k.real(1.0), -1.0)
        self.limit = k.to_real(k.size("ls_iterations"))

    def evaluate(self, step: Value) -> LinePoint:
        """LinePoint at a step."""
        w = self.k.work
        w.line_point[0] = step
        self.k.call("evaluate")
        return LinePoint(step, *w.line_point.block(1, 3))

    def count_points(self, mask: Value) -> None:
        """Count one more point in the lanes of a mask."""
        self.count.add(self.k.where(mask, self.k.real(1.0), 0.0))

    def finish(self, mask: Value, point: LinePoint) -> None:
        """End the search in the lanes of a mask."""
        self.result.take(mask, point)
        self.searching.set(self.searching.get() & ~mask)

    def run(self) -> LinePoint:
        """Write the search; its result in every lane."""
        self._approach()
        exhausted = self.searching.get() & (self.count.get() >= self.limit)
        self.finish(exhausted, self.p1.get())
        with self.k.when(self.k.any(self.searching.get())):
            self._bracket()
        return self.result.get()

    def _before_sign_change(self, point: LinePoint) -> Value:
        return point.derivative * self.direction <= -self.tolerance

    def _approach(self) -> None:
        k = self.k
        moving = k.variable(self.searching.get() & self._before_sign_change(self.p1.get()))
        with k.repeat() as leave_if:
            now = moving.get()
            leave_if(~k.any(now))
            p1 = self.p1.get()
            self.p2.take(now, p1)
            new = self.evaluate(p1.newton)
            self.p1.take(now, new)
            self.count_points(now)
            is_done = now & (k.abs(new.derivative) < self.tolerance) & (new.cost < 0.0)
            self.finish(is_done, new)
            moving.set(now & ~is_done & self._before_sign_change(new) & (self.count.get() < self.limit))

    def _bracket(self) -> None:
        k = self.k
        p1 = self.p1.get()
        q2, q1 = LinePointVariable(k, p1), LinePointVariable(k, self.evaluate(p1.newton))
        self.count.add(1.0)
        bracketing = k.variable(self.searching.get() & (self.count.get() < self.limit))
        with k.repeat() as leave_if:
            leave_if(~k.any(bracketing.get()))
            middle = self.evaluate(0.5 * (self.p1.get().step + self.p2.get().step))
            self.count_points(bracketing.get())
            candidates = [q1.get(), q2.get(), middle]
            found, best = self._best(candidates)
            found = found & bracketing.get()
            self.finish(found, best)
            now = bracketing.get() & ~found
            moved = [self._improve(now, end, next_, candidates) for end, next_ in ((self.p1, q1), (self.p2, q2))]
            stuck = now & ~moved[0] & ~moved[1]
            self.finish(stuck, middle)
            bracketing.set(now & ~stuck & (self.count.get() < self.limit))
        p1, p2 = self.p1.get(), self.p2.get()
        zero = k.real(0.0)
        left = self.searching.get()
        first = (p1.cost <= p2.cost) & (p1.cost < 0.0)
        self.result.take(left, LinePoint(zero, zero, zero, zero))
        self.result.take(left & ~first & (p2.cost < 0.0), p2)
        self.result.take(left & first, p1)

    def _best(self, candidates: list[LinePoint]) -> tuple[Value, LinePoint]:
        """Mask of lanes in which a candidate is within the tolerance, and the cheapest of those."""
        k = self.k
        have, best = k.abs(candidates[0].derivative) < self.tolerance, candidates[0]
        for c in candidates[1:]:
            better = (k.abs(c.derivative) < self.tolerance) & (~have | (c.cost < best.cost))
            best = LinePoint(*select(k, better, c.fields(), best.fields()))
            have = have | better
        return have, best

    def _improve(
        self, mask: Value, end: LinePointVariable, following: LinePointVariable, candidates: list[LinePoint]
    ) -> Value:
        """Move one end of the bracket to better candidates on its side; returns the lanes that moved."""
        k = self.k
        moved = k.mask(False)
        for c in candidates:
            p = end.get()
            rises = (p.derivative < 0.0) & (c.derivative < 0.0) & (p.derivative < c.derivative)
            falls = (p.derivative > 0.0) & (c.derivative > 0.0) & (p.derivative > c.derivative)
            better = mask & (rises | falls)
            end.take(better, c)
            moved = moved | better
        with k.when(k.any(moved)):
            following.take(moved, self.evaluate(end.get().newton))
            self.count_points(moved)
        return moved
