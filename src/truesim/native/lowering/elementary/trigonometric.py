"""Sine, cosine and tangent for arguments of any size."""

from functools import cache

import numpy as np

from truesim.native.lowering.elementary.coefficients import COS, COS_SHORT, SIN, SIN_SHORT
from truesim.native.lowering.elementary.numbers import Expression, Pair, Scope
from truesim.native.lowering.types import F64, I32, I64

_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
"""pi/2 as a sum of three numbers."""
_MAX_THREE_PRODUCT_ANGLE = 2.0**22
"""Largest angle [rad] whose remainder by pi/2 is computed from three products."""
_MAX_IDENTITY_ANGLE = 1e-9
"""Largest angle [rad] whose sine and tangent round to the angle itself."""
_TABLE_START = 1043
"""Smallest biased exponent that needs the table of 2/pi."""


def _reduce_argument(s: Scope, x: Expression) -> tuple[Expression, Pair]:
    """Nearest multiple of pi/2, in the low bits, and the remainder, for usual arguments."""
    n, bits = s.nearest(x, _TWO_OVER_PI)
    first = s.remainder(x, n, _HALF_PI[0])
    p, e = s.product(n, _HALF_PI[1])
    high, error = s.sum(first, -p)
    low = (error - e) - (s.number(0.0) if s.short else n * _HALF_PI[2])
    return bits, s.ordered_sum(high, low)


@cache
def _two_over_pi_table() -> np.ndarray:
    """2**(e - 1075) * 2/pi modulo 4 for each biased exponent e, as sums of four numbers."""
    precision = 1400
    two_over_pi = (2 << (2 * precision)) // _pi(precision)
    rows = []
    for exponent in range(_TABLE_START, 2047):
        shift = exponent - 1075
        scaled = two_over_pi << shift if shift >= 0 else two_over_pi >> -shift
        rest = scaled % (4 << precision)
        row = []
        for _ in range(4):
            part = _nearest_float(rest, precision)
            row.append(part)
            numerator, denominator = part.as_integer_ratio()
            rest -= (numerator << precision) // denominator
        rows.append(row)
    return np.array(rows)


def _pi(precision: int) -> int:
    """Pi times 2**precision, by Machin's formula."""
    guard = precision + 32

    def arctan_inverse(n: int) -> int:
        power = total = (1 << guard) // n
        k, sign = 3, -1
        while power:
            power //= n * n
            total += sign * (power // k)
            k, sign = k + 2, -sign
        return total

    return (4 * (4 * arctan_inverse(5) - arctan_inverse(239))) >> 32


def _nearest_float(value: int, precision: int) -> float:
    """Value / 2**precision, to within an ulp."""
    excess = max(value.bit_length() - 64, 0) if value >= 0 else max((-value).bit_length() - 64, 0)
    return float(np.ldexp(float(value >> excess), excess - precision))


def _reduce_huge_argument(s: Scope, x: Expression) -> tuple[Expression, Pair]:
    """Like `_reduce_argument`, for huge arguments: the product with 2/pi modulo 4, from a table of its bits."""
    s = Scope(s.graph, s.has_fma)
    bits = x.bits()
    exponent = (bits >> 52) & 0x7FF
    mantissa = ((bits & (2**52 - 1)) | (1075 << 52)).as_float()
    signed = s.with_sign(mantissa, x)
    table = s.graph.read_only(_two_over_pi_table(), F64)
    row = exponent - _TABLE_START
    row = s.select(row < 0, s.number(0, I64), row)
    row = s.select(row > 2046 - _TABLE_START, s.number(2046 - _TABLE_START, I64), row)
    base = s.graph.convert((row << 2).node, I32)
    parts = [Expression(s, s.graph.gather(table, base, k)) for k in range(4)]
    (p0, e0), (p1, e1), (p2, e2) = (s.product(signed, t) for t in parts[:3])
    turns = Expression(s, s.graph.apply("round", (p0 * 0.25).node))
    total, r1 = s.sum(p0 - turns * 4.0, e0)
    total, r2 = s.sum(total, p1)
    n = Expression(s, s.graph.apply("round", total.node))
    low, r3 = s.sum(r1, r2)
    low, r4 = s.sum(low, e1)
    low, r5 = s.sum(low, p2)
    high, r6 = s.sum(total - n, low)
    low = ((r3 + r4) + r5) + (e2 + signed * parts[3]) + r6
    high, low = s.sum(high, low)
    p, e = s.product(high, _HALF_PI[0])
    return s.nearest(n, 1.0)[1], s.ordered_sum(p, e + (high * _HALF_PI[1] + low * _HALF_PI[0]))


def _sine_cosine(s: Scope, r: Pair) -> tuple[Pair, Pair]:
    """Sine and cosine of a remainder, as pairs."""
    high, low = r
    z = high * high
    cube = z * high
    tail = s.multiply_add(z, low * -0.5, low)
    sine = high, s.multiply_add(cube, s.polynomial(z, s.coefficients(SIN, SIN_SHORT)), tail)
    half = z * 0.5
    leading = 1.0 - half
    rounding = s.number(0.0) if s.short else (1.0 - leading) - half
    even = s.multiply_add(z * z, s.polynomial(z, s.coefficients(COS, COS_SHORT)), rounding - high * low)
    return sine, (leading, even)


def _apply_quadrant_sign(value: Expression, quadrant: Expression) -> Expression:
    """The value, negated in quadrants 2 and 3."""
    return (value.bits() ^ ((quadrant & 2) << 62)).as_float()


def _sine(s: Scope, reduction: tuple[Expression, Pair], turn: int) -> Expression:
    """Sine of the reduced argument plus `turn` right angles."""
    bits, r = reduction
    quadrant = bits + turn if turn else bits
    (sh, sl), (ch, cl) = _sine_cosine(s, r)
    is_even = (quadrant & 1).equals(0)
    return _apply_quadrant_sign(s.select(is_even, sh + sl, ch + cl), quadrant)


def _invalid_to_nan(s: Scope, x: Expression, value: Expression) -> Expression:
    return s.select(abs(x) < np.inf, value, np.nan)


def _sin_huge(s: Scope, x: Expression) -> Expression:
    return _invalid_to_nan(s, x, _sine(s, _reduce_huge_argument(s, x), 0))


def _cos_huge(s: Scope, x: Expression) -> Expression:
    return _invalid_to_nan(s, x, _sine(s, _reduce_huge_argument(s, x), 1))


def _tan_huge(s: Scope, x: Expression) -> Expression:
    return _invalid_to_nan(s, x, _tangent(s, _reduce_huge_argument(s, x)))


def _tangent(s: Scope, reduction: tuple[Expression, Pair]) -> Expression:
    quadrant, r = reduction
    sine, cosine = _sine_cosine(s, r)
    sine, cosine = s.ordered_sum(*sine), s.ordered_sum(*cosine)
    is_even = (quadrant & 1).equals(0)
    above = s.select(is_even, sine[0], -cosine[0]), s.select(is_even, sine[1], -cosine[1])
    below = s.select(is_even, cosine[0], sine[0]), s.select(is_even, cosine[1], sine[1])
    high, low = s.quotient(above, below)
    return high + low


def sin(s: Scope, x: Expression) -> Expression:
    """Sine of an angle [rad]."""
    usual = _sine(s, _reduce_argument(s, x), 0)
    usual = s.select(abs(x) < _MAX_IDENTITY_ANGLE, x, usual)
    return s.rare(~(abs(x) < _MAX_THREE_PRODUCT_ANGLE), usual, x, _sin_huge)


def cos(s: Scope, x: Expression) -> Expression:
    """Cosine of an angle [rad]."""
    return s.rare(~(abs(x) < _MAX_THREE_PRODUCT_ANGLE), _sine(s, _reduce_argument(s, x), 1), x, _cos_huge)


def tan(s: Scope, x: Expression) -> Expression:
    """Tangent of an angle [rad]."""
    usual = _tangent(s, _reduce_argument(s, x))
    usual = s.select(abs(x) < _MAX_IDENTITY_ANGLE, x, usual)
    return s.rare(~(abs(x) < _MAX_THREE_PRODUCT_ANGLE), usual, x, _tan_huge)
