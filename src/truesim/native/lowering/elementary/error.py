"""Error function."""

from truesim.native.lowering.elementary.coefficients import ERF, ERF_SHORT, ERFCX, ERFCX_SHORT
from truesim.native.lowering.elementary.exponential import exp_of_pair
from truesim.native.lowering.elementary.numbers import Expression, Scope


def erf(s: Scope, x: Expression) -> Expression:
    """Error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    magnitude = abs(x)
    m = s.select(magnitude > 6.0, 6.0, magnitude)
    near = m * s.polynomial(m * m, s.coefficients(ERF, ERF_SHORT))
    square, error = s.product(m, m)
    scaled = s.polynomial(1.0 / (m + 2.0), s.coefficients(ERFCX, ERFCX_SHORT))
    far = 1.0 - exp_of_pair(s, -square, -error) * scaled
    value = s.with_sign(s.select(m < 1.0, near, far), x)
    return s.select(x.is_nan(), x, value)
