"""Elementwise primitives against XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from tests.native.agreement import assert_agrees, assert_close, integers, normal
from truesim import native

SHAPES = st.lists(st.integers(1, 3), max_size=3).map(tuple)
FLOATS = st.sampled_from([np.float32, np.float64])
INTEGERS = st.sampled_from([np.int32, np.int64, np.uint32])
SEEDS = st.integers(0, 2**32 - 1)
BRIEF = settings(max_examples=3, deadline=None, derandomize=True)

ARITHMETIC = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "max": lax.max,
    "min": lax.min,
}
FLOAT_UNARY = {
    "neg": lax.neg,
    "abs": lax.abs,
    "sign": lax.sign,
    "floor": lax.floor,
    "ceil": lax.ceil,
    "round": lambda x: lax.round(4 * x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_even": lambda x: lax.round(4 * x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "square": lax.square,
    "integer_pow": lambda x: lax.integer_pow(x, 5),
    "negative_pow": lambda x: lax.integer_pow(x, -3),
    "is_finite": lax.is_finite,
    "sqrt": lambda x: lax.sqrt(lax.abs(x)),
    "to_int": lambda x: (100 * x).astype(jnp.int32),
    "to_bool": lambda x: (x * (x > 0)).astype(bool),
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.int32 if x.dtype == jnp.float32 else jnp.int64),
    "reduce_precision": lambda x: lax.reduce_precision(x, 11, 52),
}
COMPARISONS = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}
BITWISE = {
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "not": lambda x, y: lax.bitwise_not(x),
    "shift_left": lambda x, y: lax.shift_left(x, y % 40),
    "shift_right_logical": lambda x, y: lax.shift_right_logical(x, y % 40),
    "shift_right_arithmetic": lambda x, y: lax.shift_right_arithmetic(x, y % 40),
    "popcount": lambda x, y: lax.population_count(x),
    "clz": lambda x, y: lax.clz(x),
    "abs": lambda x, y: abs(x),
    "sign": lambda x, y: lax.sign(x),
    "to_float": lambda x, y: x.astype(jnp.float64),
    "narrow": lambda x, y: x.astype(jnp.int8),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@given(SHAPES, FLOATS, SEEDS)
@BRIEF
def test_float_arithmetic(name, shape, dtype, seed):
    """Two-operand arithmetic agrees on floating-point numbers."""
    assert_agrees(ARITHMETIC[name], normal(seed, 5, *shape, dtype=dtype), normal(seed + 1, 5, *shape, dtype=dtype))


@pytest.mark.parametrize("name", ARITHMETIC)
@given(SHAPES, INTEGERS, SEEDS)
@BRIEF
def test_integer_arithmetic(name, shape, dtype, seed):
    """Two-operand arithmetic agrees on integers, zero divisors included."""
    x, y = (integers(seed + k, 0, 7, 5, *shape, dtype=dtype) for k in range(2))
    if dtype is not np.uint32:
        x, y = x - 3, y - 3
    assert_agrees(ARITHMETIC[name], x, y)


@pytest.mark.parametrize("name", FLOAT_UNARY)
@given(SHAPES, FLOATS, SEEDS)
@BRIEF
def test_float_functions(name, shape, dtype, seed):
    """One-operand functions agree on floating-point numbers."""
    assert_agrees(FLOAT_UNARY[name], normal(seed, 5, *shape, dtype=dtype))


@pytest.mark.parametrize("name", COMPARISONS)
@given(SHAPES, st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint32]), SEEDS)
@BRIEF
def test_comparisons(name, shape, dtype, seed):
    """Comparisons agree, on equal numbers too."""
    x, y = (integers(seed + k, 0, 3, 5, *shape, dtype=dtype) for k in range(2))
    assert_agrees(COMPARISONS[name], x, y)


@pytest.mark.parametrize("name", BITWISE)
@given(SHAPES, INTEGERS, SEEDS)
@BRIEF
def test_integer_functions(name, shape, dtype, seed):
    """Bit operations and conversions agree on integers."""
    x = integers(seed, 0, 2**31, 5, *shape, dtype=dtype)
    y = integers(seed + 1, 0, 80, 5, *shape, dtype=dtype)
    assert_agrees(BITWISE[name], x, y)


@given(SHAPES, FLOATS, SEEDS)
@BRIEF
def test_selection(shape, dtype, seed):
    """Selects, clamps and logic agree."""

    def f(x, y):
        small = (x < y) & ~(x < 0) | (y > 1)
        third = lax.select_n((jnp.abs(x) * 1.5).astype(jnp.int32) % 3, x, y, x + y)
        return jnp.where(small, x, y), jnp.clip(x, -0.5, 0.5), third, small ^ (x > 1), lax.clamp(y, x, y + 1)

    assert_agrees(f, normal(seed, 5, *shape, dtype=dtype), normal(seed + 1, 5, *shape, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype):
    """Infinities and NaN pass through arithmetic, extrema, comparisons and conversions as in XLA."""
    values = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e30, -3e30], dtype)
    x, y = (v.reshape(-1) for v in np.meshgrid(values, values))

    def f(x, y):
        ints = x.astype(jnp.int32), x.astype(jnp.int64), jnp.abs(x).astype(jnp.uint32)
        arithmetic = x + y, x - y, x * y, x / y, lax.max(x, y), lax.min(x, y), lax.sign(x)
        return arithmetic, ints, (x < y, x == y, x != y, lax.is_finite(x)), lax.nextafter(x, y)

    with np.errstate(all="ignore"):
        assert_agrees(f, x, y)


def test_denormals_are_kept():
    """Denormal numbers are neither flushed on input nor on output."""
    x = np.array([5e-324, 1e-310, 2.3e-308])
    kernel = native.compile(lambda x: (x * 0.5, x + x), x[0])
    half, double = kernel(x)
    np.testing.assert_array_equal(half, x * 0.5)
    np.testing.assert_array_equal(double, x + x)


def test_literal_zero_times_anything_is_zero():
    """The one rewrite that may hide a NaN: a literal zero factor."""
    kernel = native.compile(lambda x: jnp.array([0.0, 1.0]) * x, np.float64(1))
    np.testing.assert_array_equal(kernel(np.array([np.nan])), [[0.0, np.nan]])


def test_shared_divisors_stay_accurate():
    """Several quotients with one divisor are within 1 ulp of correct rounding."""
    x, d = normal(0, 1000, 4), normal(1, 1000)
    kernel = native.compile(lambda x, d: x / d, x[0], d[0])
    want = x / d[:, None]
    assert np.max(np.abs(kernel(x, d) - want) / np.spacing(np.abs(want))) <= 1


def test_a_single_division_is_correctly_rounded():
    """One quotient is IEEE division."""
    x, d = normal(0, 1000), normal(1, 1000)
    np.testing.assert_array_equal(native.compile(lambda x, d: x / d, x[0], d[0])(x, d), x / d)


@pytest.mark.parametrize("compare", ["lt_to", "le_to"])
def test_total_order(compare):
    """The order used by sorting ranks zeros and NaN as XLA does."""
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
    x, y = (v.reshape(-1) for v in np.meshgrid(values, values))
    from jax._src.lax.lax import le_to_p, lt_to_p

    primitive = {"lt_to": lt_to_p, "le_to": le_to_p}[compare]
    assert_agrees(primitive.bind, x, y)


def test_gradient_of_elementwise_chain():
    """Reverse-mode jaxprs of elementwise code agree."""
    f = lambda x: jnp.sum(jnp.tanh(x) * jnp.exp(-(x**2)) / (1 + x**2))  # noqa: E731
    x = normal(3, 7, 4)
    kernel = native.compile(jax.grad(f), x[0])
    assert_close(kernel(x), jax.vmap(jax.grad(f))(x))
