"""Exponential and hyperbolic functions."""

import numpy as np

from truesim.native.lowering.elementary.coefficients import EXP, EXP_SHORT, LN2_HIGH, LN2_LOW
from truesim.native.lowering.elementary.numbers import Expression, Pair, Real, Scope

_LOG2_E = 1.4426950408889634


def _clamp(s: Scope, x: Expression, low: Real, high: Real) -> Expression:
    """Clamp x to a range; NaN stays NaN."""
    return s.select(x > high, high, s.select(x < low, low, x))


def _reduce_argument(s: Scope, x: Expression) -> tuple[Expression, Pair]:
    """Integer n nearest to x / log(2), and x - n log(2) as a pair."""
    n, _ = s.nearest(x, _LOG2_E)
    high = x - n * LN2_HIGH
    return n, s.ordered_sum(high, -(n * LN2_LOW))


def _expm1_of_pair(s: Scope, r: Pair) -> Pair:
    """exp(r) - 1 as a pair, for |r| <= log(2) / 2."""
    high, low = r
    square = high * high
    tail = s.multiply_add(square, s.polynomial(high, s.coefficients(EXP, EXP_SHORT)), s.multiply_add(low, high, low))
    return s.ordered_sum(high, tail)


def _scale_by_power(s: Scope, value: Expression, n: Expression) -> Expression:
    """`value * 2**n`, rounded once, for any result in range."""
    first, first_bits = s.nearest(n, 0.5)
    _, second_bits = s.nearest(n - first, 1.0)
    return value * s.power_of_two(first_bits) * s.power_of_two(second_bits)


def exp_of_pair(s: Scope, x: Expression, low: Expression) -> Expression:
    """exp(x + low) for a small correction `low`."""
    n, (high, rest) = _reduce_argument(s, _clamp(s, x, -760.0, 720.0))
    grown, tail = _expm1_of_pair(s, (high, rest) if low.is_literal(0) else s.sum(high, rest + low))
    return _scale_by_power(s, 1.0 + (grown + tail), n)


def exp(s: Scope, x: Expression) -> Expression:
    """Exponential of x."""
    return exp_of_pair(s, x, s.number(0.0))


def exp2(s: Scope, x: Expression) -> Expression:
    """`2**x`."""
    limited = _clamp(s, x, -1100.0, 1030.0)
    n, _ = s.nearest(limited, 1.0)
    fraction = limited - n
    p, e = s.product(fraction, 0.6931471805599453)
    grown, tail = _expm1_of_pair(s, (p, e + fraction * 2.3190468138462996e-17))
    return _scale_by_power(s, 1.0 + (grown + tail), n)


def _expm1_pair(s: Scope, x: Expression) -> Pair:
    """exp(x) - 1 as a pair, for |x| < 709."""
    n, r = _reduce_argument(s, x)
    grown, tail = _expm1_of_pair(s, r)
    _, bits = s.nearest(n, 1.0)
    scale = s.power_of_two(bits)
    high, error = s.sum(scale - 1.0, grown * scale)
    lost = s.select(n < 53.5, 0.0, -1.0) if not s.short else s.number(0.0)
    lost = s.select(n > -53.5, lost, scale) if not s.short else lost
    return s.ordered_sum(high, error + tail * scale + lost)


def expm1(s: Scope, x: Expression) -> Expression:
    """exp(x) - 1, accurate near zero."""
    high, low = _expm1_pair(s, _clamp(s, x, -50.0, 709.0))
    value = s.select(x > 709.0, exp(s, x), high + low)
    return s.select(x.equals(0.0), x, value)


def tanh(s: Scope, x: Expression) -> Expression:
    """Hyperbolic tangent."""
    high, low = _expm1_pair(s, _clamp(s, abs(x) * 2.0, 0.0, 50.0))
    below = s.ordered_sum(high, s.number(2.0)) if s.short else s.sum(high, s.number(2.0))
    q, rest = s.quotient((high, low), (below[0], below[1] + low))
    small = abs(x) < 1e-9
    return s.with_sign(s.select(small, abs(x), q + rest), x)


def sinh(s: Scope, x: Expression) -> Expression:
    """Hyperbolic sine."""
    magnitude = abs(x)
    high, low = _expm1_pair(s, _clamp(s, magnitude, 0.0, 40.0))
    above, more = s.sum(s.number(1.0), high)
    q, rest = s.quotient((high, low), (above, more + low))
    total, error = s.sum(high, q)
    moderate = (total + (error + low + rest)) * 0.5
    large = _half_exp(s, magnitude)
    value = s.select(magnitude > 40.0, large, moderate)
    return s.with_sign(s.select(magnitude < 1e-9, magnitude, value), x)


def cosh(s: Scope, x: Expression) -> Expression:
    """Hyperbolic cosine."""
    magnitude = abs(x)
    high, low = _expm1_pair(s, _clamp(s, magnitude, 0.0, 40.0))
    above, more = s.sum(s.number(1.0), high)
    inverse, rest = s.quotient((s.number(1.0), s.number(0.0)), (above, more + low))
    total, error = s.sum(above, inverse)
    moderate = (total + (error + more + low + rest)) * 0.5
    return s.select(magnitude > 40.0, _half_exp(s, magnitude), moderate)


def _half_exp(s: Scope, x: Expression) -> Expression:
    """exp(x) / 2 without intermediate overflow."""
    limited = _clamp(s, x, 0.0, 720.0)
    n, r = _reduce_argument(s, limited)
    grown, tail = _expm1_of_pair(s, r)
    return _scale_by_power(s, 1.0 + (grown + tail), n - 1.0)


def logistic(s: Scope, x: Expression) -> Expression:
    """1 / (1 + exp(-x))."""
    small = exp(s, -abs(x))
    above = s.select(x < 0.0, small, 1.0)
    value = above / (1.0 + small)
    return s.select(x.is_nan(), np.nan, value)
