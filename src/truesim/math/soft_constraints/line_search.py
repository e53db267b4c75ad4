"""MuJoCo's line search: Newton steps that approach from one end, then a bracket, until the derivative is small.

It repeats MuJoCo's rules point by point, since at the file's tolerance the accepted point depends on them.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int


class SearchPoint(NamedTuple):
    """Cost relative to the start of the line, with its derivatives, at one step length."""

    step: Float[Array, ""]
    cost: Float[Array, ""]
    derivative: Float[Array, ""]
    """First derivative."""
    curvature: Float[Array, ""]
    """Second derivative."""

    @property
    def newton(self) -> Float[Array, ""]:
        """Step length at which the derivative vanishes to first order."""
        return self.step - self.derivative / self.curvature


class LineSearchResult(NamedTuple):
    """Accepted point of a line search."""

    point: SearchPoint
    evaluations: Int[Array, ""]


class Bracket(NamedTuple):
    """Two points with derivatives of opposite signs, and the Newton point of each."""

    one: SearchPoint
    other: SearchPoint
    from_one: SearchPoint
    from_other: SearchPoint


Points = TypeVar("Points", SearchPoint, Bracket)
Evaluate = Callable[[Float[Array, ""]], SearchPoint]
"""From a step length to the point there."""


def line_search(evaluate: Evaluate, tolerance: Float[Array, ""], max_points: int) -> LineSearchResult:
    """Step length at which the derivative is below `tolerance`, or the best of `max_points` points."""
    start = evaluate(jnp.zeros(()))
    first = evaluate(start.newton)
    good = (jnp.abs(first.derivative) < tolerance) & ((first.step == 0.0) | (first.cost < 0.0))
    direction = jnp.where(first.derivative < 0, 1.0, -1.0)

    def far(point: SearchPoint) -> Bool[Array, ""]:
        return point.derivative * direction <= -tolerance

    def from_one_side(carry: tuple) -> tuple:
        point, _, _, count = carry
        new = evaluate(point.newton)
        return new, point, (jnp.abs(new.derivative) < tolerance) & (new.cost < 0.0), count + 1

    carry = first, start, good, jnp.asarray(2)
    reached, behind, good, count = jax.lax.while_loop(
        lambda carry: ~carry[2] & far(carry[0]) & (carry[3] < max_points), from_one_side, carry
    )
    done = good | (count >= max_points)
    bracket = Bracket(reached, behind, evaluate(reached.newton), reached)
    counted = jnp.where(done, count, count + 1)
    result, evaluations = _bracketed(evaluate, tolerance, max_points, bracket, (done, counted))
    return LineSearchResult(_select(done, reached, result), evaluations)


def _bracketed(
    evaluate: Evaluate, tolerance: Array, max_points: int, bracket: Bracket, state: tuple[Array, Array]
) -> tuple[SearchPoint, Int[Array, ""]]:
    """Shrink a bracket by its Newton points and its midpoint until one of them is good."""
    done, count = state

    def shrink(carry: tuple) -> tuple:
        bracket, _, _, count = carry
        middle = evaluate((bracket.one.step + bracket.other.step) / 2)
        candidates = (bracket.from_one, bracket.from_other, middle)
        found, best = jnp.zeros((), bool), middle
        for candidate in candidates:
            better = (jnp.abs(candidate.derivative) < tolerance) & (~found | (candidate.cost < best.cost))
            found, best = found | better, _select(better, candidate, best)
        one, moved_one = _tighten(bracket.one, candidates)
        other, moved_other = _tighten(bracket.other, candidates)
        smaller = Bracket(
            one,
            other,
            _select(moved_one, evaluate(one.newton), bracket.from_one),
            _select(moved_other, evaluate(other.newton), bracket.from_other),
        )
        more = jnp.where(found, 0, moved_one.astype(int) + moved_other.astype(int))
        stuck = ~moved_one & ~moved_other
        return _select(found, bracket, smaller), best, found | stuck, count + 1 + more

    carry = bracket, bracket.one, done, count
    bracket, best, found, count = jax.lax.while_loop(lambda carry: ~carry[2] & (carry[3] < max_points), shrink, carry)
    one, other = bracket.one, bracket.other
    stay = SearchPoint(*(jnp.zeros(()) for _ in SearchPoint._fields))
    ends = _select((one.cost <= other.cost) & (one.cost < 0), one, _select(other.cost < 0, other, stay))
    return _select(found, best, ends), count


def _tighten(end: SearchPoint, candidates: tuple[SearchPoint, ...]) -> tuple[SearchPoint, Bool[Array, ""]]:
    """End of a bracket moved to the candidate on its side whose derivative is nearest to zero."""
    moved = jnp.zeros((), bool)
    for candidate in candidates:
        below = (end.derivative < 0) & (candidate.derivative < 0) & (end.derivative < candidate.derivative)
        above = (end.derivative > 0) & (candidate.derivative > 0) & (end.derivative > candidate.derivative)
        nearer = below | above
        end, moved = _select(nearer, candidate, end), moved | nearer
    return end, moved


def _select(condition: Array, yes: Points, no: Points) -> Points:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
