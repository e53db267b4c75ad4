"""Derivatives of recorded signals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from truesim.files.logs import derivatives, orientation_derivatives
from truesim.files.logs.orientation import product

coefficients = hnp.arrays(float, 3, elements=st.floats(-5, 5))
steps = hnp.arrays(float, st.integers(3, 60), elements=st.floats(0.001, 0.003))


@given(coefficients, steps, st.floats(0, 0.1))
def test_a_parabola_is_exact(coefficients, steps, half_width):
    """Whatever the stamps and the window, a parabola has its own derivatives, at the ends too."""
    a, b, c = coefficients
    time = np.cumsum(steps)
    fit = derivatives(time, a + b * time + c * time**2, half_width=half_width)
    np.testing.assert_allclose(fit.value, a + b * time + c * time**2, atol=1e-10)
    np.testing.assert_allclose(fit.first, b + 2 * c * time, atol=1e-7)
    np.testing.assert_allclose(fit.second, np.full(len(time), 2 * c), atol=2e-3)


def test_a_sine_with_noise():
    """Velocity of a 1 Hz motion with encoder noise is good to a few parts in a hundred, and is not delayed."""
    rng = np.random.default_rng(1)
    time = np.cumsum(0.002 + 2e-4 * rng.standard_normal(2000))
    noisy = np.sin(2 * np.pi * time) + 1e-4 * rng.standard_normal(len(time))
    truth = 2 * np.pi * np.cos(2 * np.pi * time)
    velocity = derivatives(time, noisy).first
    assert np.sqrt(np.mean((velocity - truth) ** 2)) < 0.01 * 2 * np.pi
    lag = np.sum((velocity - truth) * np.gradient(truth, time)) / np.sum(np.gradient(truth, time) ** 2)
    assert abs(lag) < 1e-4


def test_windows_do_not_reach_across_gaps():
    """A jump across a gap makes no velocity, and a gap in the values is one too."""
    time = np.concatenate([np.arange(50), np.arange(100, 150)]) * 0.002
    step = np.where(time < 0.15, 0.0, 7.0)
    np.testing.assert_allclose(derivatives(time, step).first, 0.0, atol=1e-9)
    dense = np.arange(150) * 0.002
    values = np.where(dense < 0.15, 0.0, 7.0)
    values[50:100] = np.nan
    first = derivatives(dense, values).first
    np.testing.assert_array_equal(np.isnan(first), np.isnan(values))
    np.testing.assert_allclose(first[np.isfinite(first)], 0.0, atol=1e-9)


def test_a_single_missing_sample_is_bridged():
    """The neighbors of a missing sample keep their derivative; the sample itself stays missing."""
    time = np.arange(30) * 0.002
    values = 3 * time
    values[10] = np.nan
    first = derivatives(time, values).first
    assert np.isnan(first[10])
    np.testing.assert_allclose(np.delete(first, 10), 3.0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_short_to_tell(count):
    """Fewer than three samples have no derivative."""
    assert np.all(np.isnan(derivatives(np.arange(count) * 0.01, np.ones(count)).first))


@given(hnp.arrays(float, 3, elements=st.floats(-8, 8)))
def test_a_steady_turn_has_its_angular_velocity(rate):
    """Orientation q0 exp(w t) gives w in the body, everywhere, and no angular acceleration."""
    time = np.arange(80) * 0.004
    angle, axis = np.linalg.norm(rate) + 1e-12, rate / (np.linalg.norm(rate) + 1e-12)
    half = angle * time[:, None] / 2
    turn = np.concatenate([np.cos(half), np.sin(half) * axis], axis=1)
    start = np.array([0.5, -0.5, 0.1, np.sqrt(1 - 0.51)])
    fit = orientation_derivatives(time, product(np.broadcast_to(start, turn.shape), turn))
    np.testing.assert_allclose(fit.first, np.broadcast_to(rate, (80, 3)), atol=1e-9)
    np.testing.assert_allclose(fit.second, 0, atol=1e-6)


def test_long_logs_are_worked_on_in_blocks(monkeypatch):
    """The result does not depend on the size of the blocks."""
    time = np.arange(500) * 0.002
    values = np.sin(9 * time)
    whole = derivatives(time, values)
    monkeypatch.setattr("truesim.files.logs.differentiate.BLOCK_SIZE", 100)
    np.testing.assert_array_equal(derivatives(time, values).first, whole.first)
