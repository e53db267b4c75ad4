"""Mixtures on functions with a known posterior: the published loss shrinks, likelihood and entropy find the truth."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from truesim.core.errors import TruesimError
from truesim.identification.posterior import (
    EvidenceLowerBound,
    Kernels,
    Mixture,
    MixtureOptions,
    Real2SimLoss,
    Trajectories,
    mixture_around,
    observe,
    trajectory_laplace,
    trajectory_multistart_posterior,
)

TIMES = np.linspace(0.0, 1.0, 12)
PRIOR = (np.zeros(2), np.full(2, 3.0))
TRUTH = np.array([1.0, -0.5])


@pytest.fixture(scope="module")
def line():
    """A straight line through the parameters: its posterior is Gaussian and known."""
    return Trajectories(lambda t: t[0] + t[1] * TIMES, TRUTH, noise=0.1, prior=PRIOR)


@pytest.fixture(scope="module")
def square():
    """A parameter that shows only by its square: two basins."""
    return Trajectories(lambda t: t[0] ** 2 + 0.0 * jnp.asarray(TIMES), np.ones(1), noise=0.5)


def measurement(seed: int = 0) -> np.ndarray:
    """The line, with noise."""
    return TRUTH[0] + TRUTH[1] * TIMES + 0.1 * np.random.default_rng(seed).normal(size=len(TIMES))


def exact(measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the line's posterior, by linear algebra."""
    A = np.stack([np.ones_like(TIMES), TIMES], axis=1)[np.isfinite(measured)]
    covariance = np.linalg.inv(A.T @ A / 0.01 + np.eye(2) / 9)
    return covariance @ A.T @ measured[np.isfinite(measured)] / 0.01, covariance


def test_derivatives_of_both_costs(line):
    """Against finite differences, with a missing sample."""
    measured, theta = measurement(), np.array([[0.3, 0.2], [4.0, -3.0]])
    measured[3] = np.nan
    for cost in (line.negative_log_posterior(measured), line.huber(measured, 0.3)):
        gradients = cost(theta)[1]
        for k in range(2):
            step = 1e-6 * np.eye(2)[k]
            difference = (cost(theta + step)[0] - cost(theta - step)[0]) / 2e-6
            np.testing.assert_allclose(gradients[:, k], difference, rtol=1e-6)


def test_laplace_is_exact_on_a_line(line):
    """Mean and covariance."""
    mean, covariance = exact(measurement())
    found = trajectory_laplace(line, measurement(), np.zeros(2))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8)


def test_likelihood_and_entropy_find_the_posterior(line):
    """From a start that is far too wide and beside its place, with one kernel and with three."""
    mean, covariance = exact(measurement())
    wide = trajectory_laplace(line, measurement(), np.zeros(2))
    for kernels in (1, 3):
        settings = MixtureOptions(kernels=kernels)
        found, evolution = mixture_around(line.negative_log_posterior(measurement()), _scaled(wide, 6.0), settings)
        scale = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose((found.mean - mean) / scale, 0.0, atol=0.02)
        np.testing.assert_allclose(
            found.covariance / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.05
        )
        assert evolution.scatter[-1] < 0.1
        assert len(evolution.loss) < 30


def test_the_published_loss_shrinks_to_a_point(line):
    """Below the width of the posterior, around the best fit: it estimates, but its covariance vanishes."""
    mean, covariance = exact(measurement())
    search = Mixture(
        Kernels.around(mean + 0.5 * np.random.default_rng(0).normal(size=(3, 2)), np.full(2, 0.3)),
        Real2SimLoss(128),
        rate=optax.cosine_decay_schedule(0.1, 300, 0.1),
    )
    for _ in range(300):
        search.epoch(line.huber(measurement()))
    found = search.posterior()
    assert np.abs(found.mean - mean).max() < 0.05
    assert np.all(found.std < 0.5 * np.sqrt(np.diag(covariance)))


def test_samples_may_arrive_one_at_a_time(line):
    """The record counts them, the posterior narrows with each, and ends where all at once would."""
    mean, covariance = exact(measurement())
    search = Mixture(
        Kernels.around(np.zeros((1, 2)), np.full(2, 1.0)),
        EvidenceLowerBound(),
        rate=0.5,
    )
    evolution = observe(search, line.negative_log_posterior, iter(measurement()), len(TIMES), epochs=8)
    np.testing.assert_array_equal(evolution.seen, np.repeat(np.arange(1, 13), 8))
    widths = evolution.std[7::8].max(axis=1)
    assert np.all(np.diff(widths) < 0)
    np.testing.assert_allclose(evolution.mean[-1], mean, atol=0.01 * np.sqrt(np.diag(covariance)).max())
    np.testing.assert_allclose(evolution.std[-1], np.sqrt(np.diag(covariance)), rtol=0.01)


def test_lost_kernels_are_used_again():
    """They become parts of the heaviest one, which changes nothing about the mixture."""
    means = np.array([[0.0, 1.0], [5.0, 5.0], [2.0, -1.0]])
    before = Kernels.around(means, np.ones(2))._replace(logits=jnp.log(jnp.array([0.6, 1e-12, 0.4])))
    after = before.reuse_light(1e-3)
    np.testing.assert_allclose(after.weights, [0.3, 0.3, 0.4], rtol=1e-9)
    np.testing.assert_allclose(after.means, means[[0, 0, 2]])
    for theta in np.array([[0.5, 0.5], [2.0, -1.0]]):
        np.testing.assert_allclose(after.log_density(theta), before.log_density(theta), rtol=1e-9)


def test_units_and_correlations_change_nothing(line):
    """The same problem in other coordinates gives the same mixture in those, to rounding."""
    A, b = np.array([[1e3, 0.0], [2e2, 1e-2]]), np.array([5.0, -3.0])
    cost, start = line.negative_log_posterior(measurement()), trajectory_laplace(line, measurement(), np.zeros(2))

    def other(theta):
        values, gradients = cost(np.linalg.solve(A, (theta - b).T).T)
        return values, np.linalg.solve(A.T, gradients.T).T

    moved = dataclasses.replace(start, means=start.means @ A.T + b, covariances=A @ start.covariances @ A.T)
    first, second = (mixture_around(c, s, MixtureOptions(epochs=5))[0] for c, s in ((cost, start), (other, moved)))
    np.testing.assert_allclose(second.means, first.means @ A.T + b, rtol=1e-6)
    np.testing.assert_allclose(second.covariances, A @ first.covariances @ A.T, rtol=1e-6)


def test_basins_share_the_probability(square):
    """Both signs explain the square: two equal kernels, which one Gaussian could not be."""
    measured = np.full(len(TIMES), 4.0)
    found = trajectory_multistart_posterior(square, measured, np.array([[1.5], [-2.5], [2.2]]))
    np.testing.assert_allclose(np.sort(found.means[:, 0]), [-2.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(found.weights, 0.5, rtol=1e-6)
    assert found.log_density(np.array([2.0])) > found.log_density(np.zeros(1)) + 50


def test_the_same_seed_gives_the_same_mixture(line):
    """To the last bit."""
    start, settings = trajectory_laplace(line, measurement(), np.zeros(2)), MixtureOptions(epochs=5)
    first, second = (mixture_around(line.negative_log_posterior(measurement()), start, settings)[0] for _ in range(2))
    np.testing.assert_array_equal(first.means, second.means)


def test_mistakes_are_named(line):
    """A wrong shape, no kernels, and parameters that nothing determines."""
    with pytest.raises(TruesimError, match=r"\(3,\).*\(12,\)"):
        line.negative_log_posterior(np.zeros(3))(TRUTH[None])
    with pytest.raises(TruesimError, match="0 kernels"):
        MixtureOptions(kernels=0)
    blind = Trajectories(lambda t: (t[0] + t[1]) * TIMES, TRUTH)
    with pytest.raises(TruesimError, match="give a prior"):
        trajectory_laplace(blind, measurement(), TRUTH)


def _scaled(posterior, factor: float):
    """The same posterior, wider and beside its place."""
    return dataclasses.replace(
        posterior, means=posterior.means + posterior.std, covariances=factor * posterior.covariances
    )
