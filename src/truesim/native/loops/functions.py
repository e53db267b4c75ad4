"""Elementary functions on vectors of reals."""

import math

from truesim.native.loops.language import Routine
from truesim.native.loops.values import Value

_HALF_PI = (1.57079632679489655800e00, 6.12323399573676603587e-17)
"""Pi/2 as a sum of two doubles, so that an angle is reduced without loss of digits."""


def polynomial(k: Routine, x: Value, coefficients: list[float]) -> Value:
    """Polynomial by Horner's scheme, lowest coefficient first."""
    result = k.real(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def sincos(k: Routine, x: Value) -> tuple[Value, Value]:
    """Sine and cosine of angles of moderate size (below 1e6) [rad]: Taylor series on [-pi/4, pi/4]."""
    quarter = k.intrinsic("rint", x * (2.0 / math.pi))
    r = x - quarter * _HALF_PI[0] - quarter * _HALF_PI[1]
    z = r * r
    sine = r * polynomial(k, z, [(-1) ** n / math.factorial(2 * n + 1) for n in range(8)])
    cosine = polynomial(k, z, [(-1) ** n / math.factorial(2 * n) for n in range(9)])
    turn = quarter - 4.0 * k.intrinsic("floor", quarter * 0.25)  # 0, 1, 2 or 3 quarter turns
    is_odd = turn.equals(1.0) | turn.equals(3.0)
    a, b = k.where(is_odd, cosine, sine), k.where(is_odd, sine, cosine)
    return k.where(turn >= 2.0, -a, a), k.where(turn.equals(1.0) | turn.equals(2.0), -b, b)


_ATAN_POINT = 2.0 - math.sqrt(3.0)
"""Tangent of 15 degrees: the largest argument of the series of the arc tangent."""


def atan2(k: Routine, y: Value, x: Value) -> Value:
    """Angle of the point (x, y) in [-pi, pi] [rad]; zero at the origin."""
    ax, ay = k.abs(x), k.abs(y)
    is_steep = ay > ax
    top, bottom = k.where(is_steep, ax, ay), k.where(is_steep, ay, ax)
    ratio = top / k.where(bottom.equals(0.0), 1.0, bottom)
    is_large = ratio > _ATAN_POINT  # atan(r) = pi/6 + atan((r sqrt3 - 1) / (r + sqrt3))
    t = k.where(is_large, (ratio * math.sqrt(3.0) - 1.0) / (ratio + math.sqrt(3.0)), ratio)
    series = t * polynomial(k, t * t, [(-1) ** n / (2 * n + 1) for n in range(14)])
    angle = series + k.where(is_large, math.pi / 6, 0.0)
    angle = k.where(is_steep, math.pi / 2 - angle, angle)
    angle = k.where(x < 0.0, math.pi - angle, angle)
    return k.where(y < 0.0, -angle, angle)


def power(k: Routine, x: Value, exponent: Value) -> Value:
    """`x ** exponent`; exponents 1 and 2, the common ones, need no logarithm."""
    result = k.variable(x)
    with k.when(k.any(exponent.differs(1.0))):
        result.set(k.where(exponent.equals(2.0), x * x, x))
        is_other = exponent.differs(1.0) & exponent.differs(2.0)
        with k.when(k.any(is_other)):
            result.set(k.where(is_other, k.intrinsic("pow", x, exponent), result.get()))
    return result.get()
