"""Inverse trigonometric functions."""

import numpy as np

from truesim.native.lowering.elementary.coefficients import ATAN, ATAN_SHORT
from truesim.native.lowering.elementary.numbers import Expression, Pair, Scope

_TAN_EIGHTH = 0.41421356237309503
_PI = (3.141592653589793, 1.2246467991473532e-16)


def _angle(s: Scope, y: Pair, x: Pair) -> Pair:
    """atan(y / x) as a pair, for y and x not negative, not both zero, and of moderate size.

    The ratio of the smaller to the larger lies in [0, 1]; beyond tan(pi/8) it is rotated by pi/4.
    """
    swap = y[0] > x[0]
    a = tuple(s.select(swap, p, q) for p, q in zip(x, y, strict=True))
    b = tuple(s.select(swap, q, p) for p, q in zip(x, y, strict=True))
    turned = a[0] > b[0] * _TAN_EIGHTH
    difference, error = s.sum(a[0], -b[0])
    total, total_error = s.sum(a[0], b[0])
    above = (s.select(turned, difference, a[0]), s.select(turned, error + (a[1] - b[1]), a[1]))
    below = (s.select(turned, total, b[0]), s.select(turned, total_error + (a[1] + b[1]), b[1]))
    t, t_low = s.quotient(above, below)
    z = t * t
    tail = s.multiply_add(z * t, s.polynomial(z, s.coefficients(ATAN, ATAN_SHORT)), s.multiply_add(-z, t_low, t_low))
    base = tuple(s.select(turned, part / 4, 0.0) for part in _PI)
    high, low = s.ordered_sum(base[0], t) if s.short else s.sum(base[0], t)
    angle = s.ordered_sum(high, low + tail + base[1])
    mirrored_high, mirrored_low = s.ordered_sum(s.number(_PI[0] / 2), -angle[0])
    mirrored = s.ordered_sum(mirrored_high, mirrored_low - angle[1] + _PI[1] / 2)
    return s.select(swap, mirrored[0], angle[0]), s.select(swap, mirrored[1], angle[1])


def _supplement(s: Scope, angle: Pair) -> Pair:
    """Pi minus the angle, as a pair."""
    high, low = s.ordered_sum(s.number(_PI[0]), -angle[0])
    return high, low - angle[1] + _PI[1]


def atan2(s: Scope, y: Expression, x: Expression) -> Expression:
    """Angle of the point (x, y) [rad], in [-pi, pi]."""
    ax, ay = _moderate(s, abs(x), abs(y))
    zero = s.number(0.0)
    angle = _angle(s, (ay, zero), (ax, zero))
    back = _supplement(s, angle)
    behind = x.bits() < 0
    value = s.select(behind, back[0], angle[0]) + s.select(behind, back[1], angle[1])
    value = s.select(abs(x).is_nan() | abs(y).is_nan(), np.nan, value)
    return s.with_sign(value, y)


def _moderate(s: Scope, x: Expression, y: Expression) -> Pair:
    """Numbers in the ratio of x to y whose sums and products stay in range; (1, 0) for the origin."""
    larger = s.select(x > y, x, y)
    scale = s.select(larger > 1e150, 2.0**-600, s.select(larger < 1e-150, 2.0**600, 1.0))
    is_infinite = larger.equals(np.inf)
    scaled = [s.select(is_infinite, s.select(part.equals(np.inf), 1.0, 0.0), part * scale) for part in (x, y)]
    return s.select(larger.equals(0.0), 1.0, scaled[0]), scaled[1]


def atan(s: Scope, x: Expression) -> Expression:
    """Angle whose tangent is x [rad]."""
    magnitude = s.select(abs(x) > 1e17, 1e17, abs(x))
    zero = s.number(0.0)
    high, low = _angle(s, (magnitude, zero), (s.number(1.0), zero))
    value = s.select(abs(x) < 1e-9, abs(x), high + low)
    return s.with_sign(s.select(x.is_nan(), x, value), x)


def _complement(s: Scope, x: Expression) -> Pair:
    """sqrt(1 - x^2) as a pair."""
    (a, a_low), (b, b_low) = s.sum(s.number(1.0), -x), s.sum(s.number(1.0), x)
    p, e = s.product(a, b)
    rest = e + (a * b_low + b * a_low)
    root = s.sqrt(p)
    square, error = s.product(root, root)
    is_zero = root.equals(0.0)
    correction = (((p - square) - error) + rest) / (s.select(is_zero, 1.0, root) * 2.0)
    return root, s.number(0.0) if s.short else s.select(is_zero, 0.0, correction)


def asin(s: Scope, x: Expression) -> Expression:
    """Angle whose sine is x [rad]; NaN outside [-1, 1]."""
    magnitude = abs(x)
    high, low = _angle(s, (magnitude, s.number(0.0)), _complement(s, magnitude))
    value = s.select(magnitude < 1e-9, magnitude, high + low)
    return s.select(magnitude <= 1.0, s.with_sign(value, x), np.nan)


def acos(s: Scope, x: Expression) -> Expression:
    """Angle whose cosine is x [rad]; NaN outside [-1, 1]."""
    magnitude = abs(x)
    angle = _angle(s, _complement(s, magnitude), (magnitude, s.number(0.0)))
    back = _supplement(s, angle)
    value = s.select(x < 0.0, back[0], angle[0]) + s.select(x < 0.0, back[1], angle[1])
    return s.select(magnitude <= 1.0, value, np.nan)
