"""Noise from the roughness of a signal, and from residuals with outliers."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import arm_log
from truesim.identification.solve.noise import _clipped_mean, initial_noise, sensor_noise

TIME = np.arange(4000) * 0.002
SMOOTH = np.sin(3 * TIME) + 0.3 * np.sin(17 * TIME)


@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2])
def test_roughness_is_noise(noise):
    """Whatever the smooth motion below it, and with samples missing."""
    values = SMOOTH + noise * np.random.default_rng(0).normal(size=len(TIME))
    assert sensor_noise(values) == pytest.approx(noise, rel=0.1)
    values[::7] = np.nan
    assert sensor_noise(values) == pytest.approx(noise, rel=0.15)


def test_a_slow_sensor_in_a_fast_log():
    """Measurements in every fifth row only."""
    values = np.full(len(TIME), np.nan)
    values[::5] = np.sin(TIME[::5]) + 1e-3 * np.random.default_rng(0).normal(size=len(TIME[::5]))
    assert sensor_noise(values) == pytest.approx(1e-3, rel=0.15)


def test_a_quantized_sensor_is_as_rough_as_its_steps():
    """Values of an encoder repeat; their error is uniform over one count."""
    count = 2 * np.pi / 4096
    slow = np.round(0.05 * SMOOTH / count) * count
    assert sensor_noise(slow) >= 0.99 * count / np.sqrt(12)


def test_perfect_signals_have_some_noise():
    """A little of their range, so that nothing is divided by zero; next to nothing for a sensor that rests."""
    assert 0 < sensor_noise(SMOOTH) < 1e-4
    assert sensor_noise(np.zeros(100)) == 0.0
    assert sensor_noise(np.full(100, np.nan)) == 0.0


def test_every_row_has_the_noise_of_its_sensor(arm_of):
    """Before anything is fitted."""
    log = arm_log(noise=2e-3)
    elbow = log.columns["qpos/elbow"].copy()
    elbow[np.arange(len(elbow)) % 3 > 0] = np.nan
    slow = dataclasses.replace(log, columns={**log.columns, "qpos/elbow": elbow})
    np.testing.assert_allclose(initial_noise(arm_of(slow)), 2e-3, rtol=0.25)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.04])
def test_wild_residuals_say_nothing_of_the_noise(share):
    """Up to some percent of outliers of any size."""
    rng = np.random.default_rng(1)
    r = rng.normal(size=(5000, 1))
    wild = rng.uniform(size=r.shape) < share
    r[wild] = 1000 * rng.normal(size=wild.sum())
    found = _clipped_mean(r**2, np.array([5000]), 8.0)
    assert 0.95 < float(found[0]) < 1 / (1 - 16 * share) + 0.1
    plain = _clipped_mean(r**2, np.array([5000]), np.inf)
    np.testing.assert_allclose(plain, np.mean(r**2))
