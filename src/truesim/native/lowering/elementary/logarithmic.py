"""Logarithms, powers and inverse hyperbolic functions."""

import numpy as np

from truesim.native.lowering.elementary.coefficients import LN2_HIGH, LN2_LOW, LOG, LOG_SHORT, LOG_TAIL, LOG_TAIL_SHORT
from truesim.native.lowering.elementary.exponential import exp_of_pair
from truesim.native.lowering.elementary.numbers import Expression, Pair, Real, Scope

_LN2_LOWEST = 1.1612227229362532e-26
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_SMALLEST_NORMAL = 2.2250738585072014e-308
_TWO_THIRDS_LOW = 3.700743415417188e-17


def _decompose(s: Scope, x: Expression) -> tuple[Expression, Expression]:
    """Numbers k and m with x = 2**k m and m in [sqrt(1/2), sqrt(2)), for positive finite x."""
    is_small = x < _SMALLEST_NORMAL
    scaled = s.select(is_small, x * 2.0**54, x)
    offset = scaled.bits() - _SQRT_HALF_BITS
    exponent = _upper_bits(offset)
    m = (scaled.bits() - (exponent << 52)).as_float()
    k = _small_integer(exponent)
    return s.select(is_small, k - 54.0, k), m


def _upper_bits(bits: Expression) -> Expression:
    """Signed value of the upper 12 bits."""
    return ((bits ^ -(2**63)) >> 52) - 2048


def _small_integer(n: Expression) -> Expression:
    """A small integer as a float."""
    return (n + 0x4338000000000000).as_float() - 1.5 * 2.0**52


def _log_core(s: Scope, k: Expression, f: Expression, correction: Expression) -> Expression:
    """`k log(2) + log(1 + f) + correction`, for 1 + f in [sqrt(1/2), sqrt(2))."""
    half_square = f * f * 0.5
    q = f / (2.0 + f)
    z = q * q
    series = z * s.polynomial(z, s.coefficients(LOG, LOG_SHORT))
    tail = q * (half_square + series) + (k * LN2_LOW + correction)
    return k * LN2_HIGH - ((half_square - tail) - f)


def _special(s: Scope, x: Expression, value: Expression, zero_at: Real) -> Expression:
    """Value of a logarithm, with infinities and NaN in the special cases."""
    value = s.select(x < np.inf, value, x)
    value = s.select(x.equals(zero_at), -np.inf, value)
    return s.select(x < zero_at, np.nan, value)


def log(s: Scope, x: Expression) -> Expression:
    """Natural logarithm."""
    k, m = _decompose(s, x)
    return _special(s, x, _log_core(s, k, m - 1.0, s.number(0.0)), 0.0)


def log1p(s: Scope, x: Expression) -> Expression:
    """Natural logarithm of 1 + x."""
    total, error = Scope(s.graph, s.has_fma).sum(s.number(1.0), x)
    k, m = _decompose(s, total)
    near = (x > -0.29) & (x < 0.41)
    f = s.select(near, x, m - 1.0)
    value = _log_core(s, s.select(near, 0.0, k), f, s.select(near, 0.0, error / total))
    value = s.select(abs(x) < 1e-17, x, value)
    return _special(s, x, value, -1.0)


def _log_pair(s: Scope, x: Expression) -> Pair:
    """Natural logarithm of a positive finite number, to about 70 bits."""
    k, m = _decompose(s, x)
    f = m - 1.0
    q, q_low = s.quotient((f, s.number(0.0)), s.ordered_sum(s.number(2.0), f))
    z, z_low = s.product(q, q)
    z_low = z_low + q * q_low * 2.0
    cubic, cubic_low = s.product(z, q)
    cubic_low = cubic_low + (z_low * q + z * q_low)
    third, third_low = s.product(cubic, 2.0 / 3.0)
    third_low = third_low + (cubic_low * (2.0 / 3.0) + cubic * _TWO_THIRDS_LOW)
    rest = cubic * (z * s.polynomial(z, s.coefficients(LOG_TAIL, LOG_TAIL_SHORT)))
    total, error = s.sum(k * LN2_HIGH, q * 2.0)
    error = error + q_low * 2.0
    total, more = s.sum(total, third)
    low, lower = s.product(k, LN2_LOW)
    total, most = s.sum(total, low)
    small = (error + more) + most + (third_low + (rest + (lower + k * _LN2_LOWEST)))
    return s.ordered_sum(total, small)


def pow(s: Scope, x: Expression, y: Expression) -> Expression:  # noqa: A001
    """`x**y`, with the special cases of the C library."""
    magnitude = abs(x)
    high, low = _log_pair(s, magnitude)
    exponent = _limit_exponent(s, y)
    p, e = s.product(high, exponent)
    value = exp_of_pair(s, p, _finite_or_zero(s, e + low * exponent))
    value = s.select(magnitude.equals(0.0), s.select(y < 0.0, np.inf, 0.0), value)
    is_infinite = magnitude.equals(np.inf)
    value = s.select(is_infinite, s.select(y < 0.0, 0.0, np.inf), value)
    grows = (magnitude > 1.0) & (y > 0.0) | ((magnitude < 1.0) & (y < 0.0))
    at_infinity = s.select(magnitude.equals(1.0), 1.0, s.select(grows, np.inf, 0.0))
    value = s.select(abs(y).equals(np.inf), at_infinity, value)
    is_integer = _rounded(s, y).equals(y)
    is_odd = is_integer & ~_rounded(s, y * 0.5).equals(y * 0.5) & (abs(y) < 2.0**53)
    is_negative = x.bits() < 0
    value = s.select(is_negative & is_odd, -value, value)
    finite_negative = (x < 0.0) & (x > -np.inf)
    value = s.select(finite_negative & ~is_integer, np.nan, value)
    value = s.select(x.is_nan() | y.is_nan(), np.nan, value)
    return s.select(y.equals(0.0) | x.equals(1.0), 1.0, value)


def _rounded(s: Scope, x: Expression) -> Expression:
    return Expression(s, s.graph.apply("floor", x.node))


def _limit_exponent(s: Scope, y: Expression) -> Expression:
    """Limit an exponent so that products with logarithms stay finite."""
    return s.select(y > 1e20, 1e20, s.select(y < -1e20, -1e20, y))


def _finite_or_zero(s: Scope, x: Expression) -> Expression:
    return s.select(abs(x) < 1.0, x, 0.0)


def cbrt(s: Scope, x: Expression) -> Expression:
    """Cube root."""
    magnitude = abs(x)
    high, low = _log_pair(s, magnitude)
    p, e = s.product(high, 1.0 / 3.0)
    root = exp_of_pair(s, p, e + low / 3.0 + high * 1.850371707708594e-17)
    root = s.select(magnitude < np.inf, root, magnitude)
    return s.with_sign(s.select(magnitude.equals(0.0), magnitude, root), x)


def asinh(s: Scope, x: Expression) -> Expression:
    """Inverse hyperbolic sine."""
    m = abs(x)
    square = m * m
    moderate = log1p(s, m + square / (1.0 + s.sqrt(square + 1.0)))
    large = log(s, m) + 0.6931471805599453
    return s.with_sign(s.select(m > 1e8, large, moderate), x)


def acosh(s: Scope, x: Expression) -> Expression:
    """Inverse hyperbolic cosine."""
    t = x - 1.0
    moderate = log1p(s, t + s.sqrt(t * 2.0 + t * t))
    large = log(s, x) + 0.6931471805599453
    return s.select(x < 1.0, np.nan, s.select(x > 1e8, large, moderate))


def atanh(s: Scope, x: Expression) -> Expression:
    """Inverse hyperbolic tangent."""
    m = abs(x)
    value = log1p(s, m * 2.0 / (1.0 - m)) * 0.5
    return s.with_sign(value, x)
