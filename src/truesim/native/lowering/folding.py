"""Values of operations on constants, computed with NumPy in the operation's own type."""

from collections.abc import Callable
from typing import Any

import numpy as np

from truesim.native.lowering.types import ScalarType


def _integer_divide(a: np.generic, b: np.generic) -> int:
    if int(b) == 0:
        return -1
    quotient = abs(int(a)) // abs(int(b))
    return quotient if (int(a) < 0) == (int(b) < 0) else -quotient


def _divide(a: np.generic, b: np.generic) -> object:
    return np.divide(a, b) if a.dtype.kind == "f" else _integer_divide(a, b)


def _remainder(a: np.generic, b: np.generic) -> object:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return int(a) - int(b) * _integer_divide(a, b) if int(b) else a


def _shift_right_logical(a: np.generic, b: np.generic) -> object:
    bits = 8 * a.dtype.itemsize
    return (int(a) & (2**bits - 1)) >> int(b) if 0 <= int(b) < bits else 0


def _shift_left(a: np.generic, b: np.generic) -> object:
    return int(a) << int(b) if 0 <= int(b) < 8 * a.dtype.itemsize else 0


def _shift_right_arithmetic(a: np.generic, b: np.generic) -> object:
    bits = 8 * a.dtype.itemsize
    return int(a) >> (int(b) if 0 <= int(b) < bits else bits - 1)


def _logical_not(a: np.generic) -> object:
    return np.logical_not(a) if a.dtype.kind == "b" else np.invert(a)


def _multiply_add(a: np.generic, b: np.generic, c: np.generic) -> object:
    wide = np.longdouble
    return wide(a) * wide(b) + wide(c)


FOLD: dict[str, Callable[..., object]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "exact_add": np.add,
    "exact_sub": np.subtract,
    "exact_mul": np.multiply,
    "fma": _multiply_add,
    "div": _divide,
    "rem": _remainder,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "round_away": lambda a: np.copysign(np.floor(np.abs(a) + (np.abs(a) % 1 >= 0.5) * 0.5), a),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": _logical_not,
    "shl": _shift_left,
    "shr": _shift_right_arithmetic,
    "shr_logical": _shift_right_logical,
    "popcount": lambda a: int(a & (2 ** (8 * a.dtype.itemsize) - 1) if a < 0 else a).bit_count(),
    "clz": lambda a: 8 * a.dtype.itemsize - (int(a) & (2 ** (8 * a.dtype.itemsize) - 1)).bit_length(),
}


def wrap(value: Any, dtype: ScalarType) -> np.generic:
    """Convert a value to the given type; integers wrap around."""
    if dtype.kind in ("int", "uint", "index"):
        bits = dtype.bits
        number = int(value) & (2**bits - 1)
        if dtype.kind != "uint" and number >> (bits - 1):
            number -= 2**bits
        return dtype.dtype.type(number)
    return dtype.dtype.type(value)


def convert_value(value: Any, dtype: ScalarType) -> np.generic:
    """Convert a value as XLA does: floats to integers saturate, and NaN becomes zero."""
    if dtype.kind == "bool":
        return np.bool_(value != 0)
    if value.dtype.kind == "f" and dtype.kind in ("int", "uint", "index"):
        if np.isnan(value):
            return dtype.dtype.type(0)
        limits = np.iinfo(dtype.dtype)
        if np.isinf(value):
            return dtype.dtype.type(limits.max if value > 0 else limits.min)
        return dtype.dtype.type(min(max(int(value), limits.min), limits.max))
    return wrap(value, dtype)
