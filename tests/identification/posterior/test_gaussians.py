"""The interface of posteriors: samples, density, intervals and ranks agree with each other."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from truesim.core.errors import TruesimError
from truesim.identification.posterior import Posterior

TWO = Posterior.of(
    np.array([1.0, 3.0]),
    np.array([[0.0, 1.0], [2.0, -1.0]]),
    np.array([[[1.0, 0.6], [0.6, 0.5]], [[0.2, 0.0], [0.0, 2.0]]]),
)
ONE = Posterior.of(np.ones(1), np.array([[1.0, -2.0]]), np.diag([4.0, 0.25])[None], names=("a", "b"))


def test_one_kernel_is_a_gaussian():
    """Intervals are 1.96 standard deviations to each side, and the density is the product of the marginals."""
    low, high = ONE.intervals(0.95)
    np.testing.assert_allclose(low, [1 - 2 * 1.959964, -2 - 0.5 * 1.959964], rtol=1e-6)
    np.testing.assert_allclose(high, [1 + 2 * 1.959964, -2 + 0.5 * 1.959964], rtol=1e-6)
    expected = norm.logpdf(0.3, 1, 2) + norm.logpdf(-1.0, -2, 0.5)
    np.testing.assert_allclose(ONE.log_density(np.array([0.3, -1.0])), expected, rtol=1e-12)


def test_density_of_a_mixture_integrates_to_one():
    """Over the plane."""
    x, y = np.meshgrid(np.arange(-6, 7, 0.05), np.arange(-9, 7, 0.05))
    total = 0.05**2 * np.exp(TWO.log_density(np.stack([x, y], axis=-1))).sum()
    assert total == pytest.approx(1.0, abs=1e-5)


def test_samples_follow_the_distribution():
    """Moments are those of the mixture, and ranks of samples are uniform."""
    samples = TWO.sample(40_000, seed=1)
    np.testing.assert_allclose(samples.mean(axis=0), TWO.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(samples.T), TWO.covariance, atol=0.05)
    for ranks in TWO.cdf(samples[:4000]).T:
        assert kstest(ranks, "uniform").pvalue > 0.01


def test_the_same_seed_gives_the_same_samples():
    """And another seed gives others."""
    np.testing.assert_array_equal(TWO.sample(5, seed=3), TWO.sample(5, seed=3))
    assert np.all(TWO.sample(5, seed=3) != TWO.sample(5, seed=4))


def test_intervals_hold_their_share_of_samples():
    """Ninety per cent of the samples, five left out on each side."""
    samples = TWO.sample(40_000)
    low, high = TWO.intervals(0.9)
    np.testing.assert_allclose((samples < low).mean(axis=0), 0.05, atol=0.005)
    np.testing.assert_allclose((samples > high).mean(axis=0), 0.05, atol=0.005)


def test_credibility_of_a_sample_is_uniform():
    """Highest-density regions hold as much as they say."""
    found = [TWO.credibility(theta, n=500, seed=9) for theta in TWO.sample(600, seed=2)]
    assert kstest(found, "uniform").pvalue > 0.01


def test_bounds_cut_off():
    """Nothing lies beyond them, and what is left has the probability of the whole."""
    cut = Posterior.of(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)), bounds=(np.array([0.5]), np.array([np.inf])))
    assert cut.sample(1000).min() >= 0.5
    assert cut.log_density(np.array([0.4])) == -np.inf
    total, _ = quad(lambda x: float(np.exp(cut.log_density(np.array([x])))), 0.5, 9)
    assert total == pytest.approx(1.0, abs=0.02)
    assert cut.intervals(0.8)[0][0] == pytest.approx(norm.ppf(norm.cdf(0.5) + 0.1 * norm.sf(0.5)), rel=1e-6)


def test_a_level_beyond_one_is_refused():
    """With what would be valid."""
    with pytest.raises(TruesimError, match="between 0 and 1"):
        ONE.intervals(95.0)
