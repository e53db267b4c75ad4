"""Numbers and units as text: significant digits from the uncertainty, powers of ten, typographic minus signs."""

import math

MISSING_VALUE = "–"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN_POWERS = range(-4, 6)
"""Powers of ten of the numbers that are written without an exponent."""
MIN_DIGITS, MAX_DIGITS = 2, 7
"""Fewest and most significant digits of a value whose standard deviation is known."""


def rounded(value: float | int | None, digits: int = 3) -> str:
    """The value with `digits` significant digits."""
    if value is None or not math.isfinite(value):
        return MISSING_VALUE
    return "0" if value == 0 else _write(value, digits)


def number(value: float | int | None, digits: int = 3) -> str:
    """The value with at most `digits` significant digits, without trailing zeros."""
    mantissa, times, power = rounded(value, digits).partition("×")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + times + power


def estimate(value: float | int | None, std: float | int | None) -> str:
    """The value to two digits of its standard deviation."""
    if not value or not math.isfinite(value) or not std or not math.isfinite(std):
        return number(value, 4)
    digits = _power(value, MAX_DIGITS) - _power(std, 2) + 2
    return rounded(value, min(max(digits, MIN_DIGITS), MAX_DIGITS))


def percent(part: float | int) -> str:
    """A fraction in percent with two digits; as a factor from 10 on."""
    return f"{number(100 * part, 2)} %" if part < 10 else f"{number(part, 2)} times"


def unit(text: str) -> str:
    """The unit in print, with superscripts and without line breaks; empty for pure numbers."""
    return "" if text == "1" else text.replace("^2", "²").replace("^3", "³").replace(" ", "\N{NO-BREAK SPACE}")


def times(ratio: float | int) -> str:
    """The factor with two digits: 2.3, 14, 380."""
    return rounded(ratio, 2)


def _power(value: float | int, digits: int) -> int:
    """Power of ten of the first digit after rounding."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _write(value: float | int, digits: int) -> str:
    power = _power(value, digits)
    if power in PLAIN_POWERS:
        decimals = digits - 1 - power
        text = f"{round(value, decimals):.{max(0, decimals)}f}"
    else:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        text = f"{mantissa}×10{str(int(exponent)).translate(SUPERSCRIPT)}"
    return text.replace("-", "−")
