"""Numbers and units as text: as many digits as are known, powers of ten and minus signs as people write them."""

import math

MISSING = "–"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN = range(-4, 6)
"""Powers of ten of numbers that are written without one."""
FEWEST, MOST = 2, 7
"""Significant digits of a value whose spread is known."""


def rounded(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits."""
    if value is None or not math.isfinite(value):
        return MISSING
    return "0" if value == 0 else _written(value, digits)


def number(value: float | None, digits: int = 3) -> str:
    """A number with at most so many significant digits: without zeros at its end."""
    mantissa, times, power = rounded(value, digits).partition("×")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + times + power


def estimate(value: float | None, std: float | None) -> str:
    """A value with two digits of its standard deviation."""
    if not value or not math.isfinite(value) or not std or not math.isfinite(std):
        return number(value, 4)
    digits = _power(value, MOST) - _power(std, 2) + 2
    return rounded(value, min(max(digits, FEWEST), MOST))


def percent(part: float) -> str:
    """A part of one in percent, two digits."""
    return f"{number(100 * part, 2)} %" if part < 10 else f"{number(part, 2)} times"


def unit(text: str) -> str:
    """A unit as it is printed; nothing for pure numbers."""
    return "" if text == "1" else text.replace("^2", "²").replace("^3", "³")


def times(ratio: float) -> str:
    """A factor with two digits: 2.3, 14, 380."""
    return rounded(ratio, 2)


def _power(value: float, digits: int) -> int:
    """Power of ten of the first digit after rounding."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _written(value: float, digits: int) -> str:
    power = _power(value, digits)
    if power in PLAIN:
        decimals = digits - 1 - power
        text = f"{round(value, decimals):.{max(0, decimals)}f}"
    else:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        text = f"{mantissa}×10{str(int(exponent)).translate(SUPERSCRIPT)}"
    return text.replace("-", "−")
