"""Impedance and reference acceleration of constraint rows (MuJoCo documentation, Computation, "Constraint model")."""

from collections.abc import Sequence

from truesim.native.loops.functions import power
from truesim.native.loops.layout import TableRoutine
from truesim.native.loops.values import Value

_MIN_IMPEDANCE, _MAX_IMPEDANCE = 1e-4, 0.9999
_MIN_VALUE = 1e-15
"""MuJoCo's `mjMINVAL`: smallest width of an impedance curve, and smallest regularizer R."""


def impedance(k: TableRoutine, solimp: Sequence[Value], violation: Value) -> Value:
    """Impedance d at a violation `pos - margin`, from (d0, dwidth, width, midpoint, power)."""
    first, last, middle = (k.clip(solimp[i], _MIN_IMPEDANCE, _MAX_IMPEDANCE) for i in (0, 1, 3))
    width, exponent = solimp[2], k.maximum(solimp[4], 1.0)
    is_flat = first.equals(last) | (width <= _MIN_VALUE)
    x = k.minimum(k.abs(violation) / k.where(is_flat, 1.0, width), 1.0)
    is_low = x <= middle
    base, point = k.where(is_low, x, 1.0 - x), k.where(is_low, middle, 1.0 - middle)
    y = power(k, base, exponent) / power(k, point, exponent - 1.0)
    y = k.where(exponent.equals(1.0), x, k.where(is_low, y, 1.0 - y))
    return k.where(is_flat, 0.5 * (first + last), first + y * (last - first))


def stiffness_and_damping(k: TableRoutine, solref: Sequence[Value], last_impedance: Value) -> tuple[Value, Value]:
    """K and B of `-B J v - K d (pos - margin)`, from (time constant, damping ratio) or, negative, (-K, -B)."""
    last = k.clip(last_impedance, _MIN_IMPEDANCE, _MAX_IMPEDANCE)
    safe = 2.0 * k.parameter.timestep[0] * k.to_real(k.size("refsafe"))
    constant = k.maximum(solref[0], safe)
    is_standard = solref[0] > 0.0
    stiffness = k.where(is_standard, 1.0 / _square(last * constant * solref[1]), -(solref[0] / (last * last)))
    damping = k.where(is_standard, 2.0 / (last * constant), -(solref[1] / last))
    return stiffness, damping


def regularizer(k: TableRoutine, d: Value, inverse_weight: Value) -> Value:
    """R of a row: `(1 - d) / d` times the approximate inverse inertia that the row acts on."""
    return k.maximum((1.0 - d) / d * inverse_weight, _MIN_VALUE)


def _square(x: Value) -> Value:
    return x * x
