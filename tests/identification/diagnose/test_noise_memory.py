"""Autocovariance of noise, from what a fit leaves of it."""

import tracemalloc

import numpy as np
import pytest
from scipy.signal import lfilter

from truesim.identification.diagnose import noise_memory as module
from truesim.identification.diagnose.noise_memory import NoiseMemory, chosen_windows, noise_memory

WINDOWS, SAMPLES = 60, 25


def noise(memory: float, seed: int = 0) -> np.ndarray:
    """Autoregressive noise of unit variance that goes on from window to window."""
    fresh = np.random.default_rng(seed).normal(size=WINDOWS * SAMPLES)
    return lfilter([np.sqrt(1 - memory**2)], [1, -memory], fresh).reshape(WINDOWS, SAMPLES, 1)


def without_lines(x: np.ndarray) -> np.ndarray:
    """What is left if each window is fitted by a straight line."""
    basis, _ = np.linalg.qr(np.vander(np.arange(SAMPLES, dtype=float), 2))
    return x - np.einsum("sk,tk,wt...->ws...", basis, basis, x)


@pytest.mark.parametrize("memory", [0.5, 0.8])
def test_memory_is_found_behind_what_windows_absorb(memory):
    """Variance and correlation time are close to those of the noise, not to the lower ones of the residuals."""
    used, true = np.ones((WINDOWS, SAMPLES, 1)), (1 + memory) / (1 - memory)
    found = [noise_memory(without_lines(noise(memory, seed)), used, without_lines) for seed in range(20)]
    assert 0.9 * true < np.mean([f.correlation_time[0] for f in found]) < 1.5 * true
    assert np.mean([f.variances.sum() for f in found]) == pytest.approx(1.0, abs=0.35)


def test_white_noise_stays_white():
    """In nearly all draws, although straight lines make the residuals correlated."""
    used = np.ones((WINDOWS, SAMPLES, 1))
    times = [noise_memory(without_lines(noise(0.0, k)), used, without_lines).correlation_time[0] for k in range(50)]
    assert np.mean(np.array(times) == 1.0) > 0.95


def test_information_is_that_of_the_whole_covariance_matrix():
    """The recursion over samples equals the product with the covariance matrix of the noise."""
    memory = NoiseMemory(np.array([0.0, 0.7]), np.array([[0.4, 1.1]]))
    J = np.random.default_rng(0).normal(size=(2, 30, 1, 3))
    lags = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    matrix = 0.4 * np.eye(30) + 1.1 * 0.7**lags
    assert np.allclose(memory.information(J), sum(own[:, 0].T @ matrix @ own[:, 0] for own in J))


def test_few_windows_are_drawn_in():
    """Of long logs at regular places; of short ones all."""
    assert np.array_equal(chosen_windows((16, 50, 3)), np.arange(16))
    some = chosen_windows((1000, 50, 3))
    assert len(some) < 40
    assert some[0] == 0
    assert some[-1] == 999


def test_single_samples_have_no_memory():
    """Windows too short for lags count as white."""
    found = noise_memory(np.ones((4, 3, 1)), np.ones((4, 3, 1)), None)
    assert np.array_equal(found.correlation_time, [1.0])


def test_long_windows_are_drawn_in_by_parts(monkeypatch):
    """Kinds of noise that are drawn one after the other change nothing but the memory that they need."""
    found, peaks = [], []
    used = np.ones((1, WINDOWS * SAMPLES, 1))
    for limit in (module.DRAWN_BYTES, 1):
        monkeypatch.setattr(module, "DRAWN_BYTES", limit)
        tracemalloc.start()
        found.append(noise_memory(noise(0.5).reshape(used.shape), used, lambda x: x - x.mean(axis=1)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    np.testing.assert_allclose(found[1].variances, found[0].variances, atol=1e-12)
    assert peaks[1] < peaks[0] / 2
