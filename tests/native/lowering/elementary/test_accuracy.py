"""Elementary functions against mpmath: at most 2 ulp everywhere.

Run with TRUESIM_ELEMENTARY_POINTS=100000 for the full test, about half an hour; by default fewer points. The worst
error of each function is a property in the report (`--junit-xml`).
"""

import os
from dataclasses import replace
from functools import cache

import jax
import mpmath
import numpy as np
import pytest
from jax import lax

from truesim import native
from truesim.native.codegen.target import host
from truesim.native.runtime.program import program

POINTS = int(os.environ.get("TRUESIM_ELEMENTARY_POINTS", "1200"))

REFERENCE = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erf": mpmath.erf,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
}


def _without_avx():
    """The host, as if it had only the instructions that every 64-bit Intel or AMD machine has."""
    features = ",".join(f"-{f[1:]}" for f in host().features.split(",") if f[1:] not in ("sse2", "sse", "64bit", "cx8"))
    return replace(host(), cpu="x86-64", features=features)


TARGETS = {"host": host(), "baseline": _without_avx()}


class Sampler:
    """Random points: uniform, and uniform in the logarithm."""

    def __init__(self, dtype, count):
        self.dtype, self.count = dtype, count
        self.rng = np.random.default_rng(0)
        limits = np.finfo(dtype)
        self.tiny, self.huge = float(limits.tiny), float(limits.max) * 0.99
        self.eps = float(limits.eps)
        self.log_max = np.log(self.huge)

    def log_uniform(self, low, high, signed=True):
        """Points between two magnitudes, evenly by logarithm."""
        x = np.exp(self.rng.uniform(np.log(low), np.log(high), self.count))
        return x * self.rng.choice([-1, 1], self.count) if signed else x

    def uniform(self, low, high):
        """Points in an interval."""
        return self.rng.uniform(low, high, self.count)

    def points(self, name):
        """Points over the whole domain of a function."""
        near_one = 1 + self.log_uniform(self.eps, 0.5)
        positive = self.log_uniform(self.tiny * 1e-3, self.huge, signed=False)
        quarter_turns = np.rint(self.log_uniform(1, 1e6)) * np.pi / 2
        angles = [
            self.log_uniform(1e-8, 10),
            self.log_uniform(10, 1e7),
            self.log_uniform(self.tiny, self.huge),
            quarter_turns,
        ]
        unit = [self.uniform(-1, 1), self.log_uniform(1e-20, 1), np.clip(near_one, 0, 1)]
        growing = [self.uniform(-1.05 * self.log_max, self.log_max), self.log_uniform(1e-20, 1)]
        parts = {
            "sin": angles, "cos": angles, "tan": angles,
            "asin": unit, "acos": unit, "atanh": [0.999 * u for u in unit],
            "atan": [self.log_uniform(1e-20, 1e20), self.uniform(-3, 3)],
            "exp": growing, "expm1": growing,
            "exp2": [self.uniform(-1.05 * self.log_max, self.log_max) * 1.4],
            "log": [positive, near_one], "sqrt": [positive], "rsqrt": [positive],
            "log1p": [self.log_uniform(1e-20, 0.9), self.uniform(-1, 2), positive],
            "tanh": [self.log_uniform(1e-20, 30)], "sinh": [self.log_uniform(1e-20, self.log_max)],
            "cosh": [self.log_uniform(1e-20, self.log_max)], "cbrt": [self.log_uniform(self.tiny, self.huge)],
            "erf": [self.log_uniform(1e-20, 7), self.uniform(-3, 3)], "logistic": [self.uniform(-40, 40)],
            "asinh": [self.log_uniform(1e-10, 1e20)], "acosh": [1 + self.log_uniform(1e-10, 1e10, signed=False)],
        }[name]  # fmt: skip
        with np.errstate(all="ignore"):
            x = np.concatenate(parts).astype(self.dtype)
        return self.rng.permutation(x[np.isfinite(x)])[: self.count]


def _errors(got, exact, dtype):
    """Distance from the exact value in units of the last place of the result type."""
    with np.errstate(all="ignore"):
        rounded = np.array([float(v) for v in exact]).astype(dtype)
    spacing = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1)))
    return np.array([
        float(abs(mpmath.mpf(float(g)) - v) / mpmath.mpf(float(s))) if np.isfinite(r) else float(g != r)
        for g, v, s, r in zip(got, exact, spacing, rounded, strict=True)
    ])  # fmt: skip


@cache
def _exact(name, dtype):
    """Points and the exact values there, the same for every target."""
    x = Sampler(dtype, POINTS).points(name)
    bits = 1250 if name in ("sin", "cos", "tan") else 160
    with mpmath.workprec(bits):
        values = [REFERENCE[name](mpmath.mpf(float(v))) for v in x]
    with mpmath.workprec(160):
        return x, [+v for v in values]


def _assert_within_two_ulp(record, got, exact, dtype, points):
    errors = _errors(got, exact, dtype)
    record("ulp", f"{errors.max():.3f}")
    assert errors.max() <= 2, f"{errors.max()} ulp at {points[errors.argmax()]!r}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REFERENCE)
def test_within_two_ulp(name, dtype, target, record_property):
    """Every function is within 2 ulp over its whole domain, with and without fused multiply-add."""
    x, exact = _exact(name, dtype)
    (got,) = program(jax.make_jaxpr(getattr(lax, name))(x[0]), TARGETS[target]).run([x], 1, str)
    _assert_within_two_ulp(record_property, got, exact, dtype, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_atan2_within_two_ulp(dtype, target, record_property):
    """The angle of a point is within 2 ulp in all quadrants and scales."""
    s = Sampler(dtype, POINTS // 2)
    x = np.concatenate([s.log_uniform(s.tiny, s.huge), s.uniform(-1, 1)]).astype(dtype)
    y = np.concatenate([x[: s.count] * s.uniform(-1, 1).astype(dtype), s.uniform(-1, 1)]).astype(dtype)
    (got,) = program(jax.make_jaxpr(lax.atan2)(y[0], x[0]), TARGETS[target]).run([y, x], 1, str)
    with mpmath.workprec(160):
        exact = [mpmath.atan2(float(a), float(b)) for a, b in zip(y, x, strict=True)]
    _assert_within_two_ulp(record_property, got, exact, dtype, list(zip(y, x, strict=True)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pow_within_two_ulp(dtype, target, record_property):
    """Powers are within 2 ulp up to overflow and underflow."""
    s = Sampler(dtype, POINTS // 2)
    x = np.concatenate([s.log_uniform(s.tiny, s.huge, signed=False), 1 + s.log_uniform(1e-6, 0.3)]).astype(dtype)
    x = np.where(x == 1, dtype(2), x)
    exponent = s.rng.uniform(-s.log_max, s.log_max, x.size) / np.log(x.astype(float))
    y = np.clip(exponent, -1e6, 1e6).astype(dtype)
    x[::5], y[::5] = -x[::5], np.rint(np.clip(y[::5], -9, 9))
    (got,) = program(jax.make_jaxpr(lax.pow)(x[0], y[0]), TARGETS[target]).run([x, y], 1, str)
    with mpmath.workprec(200):
        exact = [mpmath.power(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    _assert_within_two_ulp(record_property, got, exact, dtype, list(zip(x, y, strict=True)))


SPECIAL = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e300, -1e300, 1e16, -1e16])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REFERENCE)
def test_special_values(name, dtype):
    """Zeros, infinities and NaN give what XLA gives, with the same signs."""
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
    got = native.compile(getattr(lax, name), x[0])(x)
    want = np.asarray(jax.jit(getattr(lax, name))(x))
    np.testing.assert_allclose(got, want, rtol=4e-5 if dtype is np.float32 else 1e-14)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize(("name", "reference"), [("pow", np.power), ("atan2", np.arctan2)])
def test_special_pairs(name, reference):
    """Powers and angles follow the C library in all special cases."""
    x, y = (v.reshape(-1) for v in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = reference(x, y)
    got = native.compile(getattr(lax, name), x[0], y[0])(x, y)
    np.testing.assert_allclose(got, want, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "expm1", "log1p", "tanh", "sinh", "erf", "asinh"])
def test_denormals(name):
    """Functions that are the identity near zero keep denormal numbers."""
    x = np.array([5e-324, -1e-310, 2e-308])
    got = native.compile(getattr(lax, name), x[0])(x)
    scale = 2 / np.sqrt(np.pi) if name == "erf" else 1.0
    np.testing.assert_allclose(got, x * scale, rtol=1e-15, atol=5e-324)
