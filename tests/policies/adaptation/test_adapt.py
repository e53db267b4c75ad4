"""Adaptation from few noisy episodes: budgets, confirmed incumbents, and all searches on one landscape."""

import numpy as np
import pytest

from truesim.core.errors import NameUnknownError, TruesimError
from truesim.policies.adaptation import SEARCHES, AdaptOptions, adapt, bayrn, fit_gaussian_process, search_parameters

GOAL = np.array([0.7, 2.5])
LOW, HIGH = np.array([0.0, -1.0]), np.array([1.0, 3.0])
START = np.array([0.2, 0.0])


def value(x):
    """Return without noise: 10 at the goal, 4 at the start."""
    return 10.0 - 8.0 * np.sum(((x - GOAL) / (HIGH - LOW)) ** 2) ** 0.5 / 0.8 * 0.75


def noisy(seed, std):
    rng = np.random.default_rng(1000 + seed)
    return lambda x: value(x) + std * rng.standard_normal()


@pytest.mark.parametrize("method", sorted(set(SEARCHES) - {"random"}))
def test_every_search_improves_within_its_budget(method):
    """50 episodes gain more than half of what can be gained, in the mean of six seeds."""
    gained = []
    for seed in range(6):
        found = search_parameters(noisy(seed, 0.3), START, LOW, HIGH, AdaptOptions(method, 50, seed=seed))
        assert 48 < len(found.played) == len(found.incumbents) <= 50
        assert np.all((found.parameters >= LOW) & (found.parameters <= HIGH))
        gained.append((value(found.parameters) - value(START)) / (10.0 - value(START)))
    assert np.mean(gained) > 0.5


@pytest.mark.parametrize("method", ["bayesian", "random"])
def test_the_incumbent_was_played_again(method):
    """Its value is the mean of its confirmations or of the start, never the return that selected it."""
    found = search_parameters(noisy(3, 1.0), START, LOW, HIGH, AdaptOptions(method, 40, repeats=3))
    own = [e for e in found.played if np.array_equal(e.parameters, found.parameters)]
    again = [e.value for e in own if e.role != "candidate"]
    assert len(again) == 3
    assert found.value == pytest.approx(np.mean(again))


def test_noise_alone_makes_nothing_worse():
    """When the start is the best point and noise is large, the loss stays a fraction of the noise."""
    lost = [
        value(GOAL)
        - value(search_parameters(noisy(s, 1.0), GOAL, LOW, HIGH, AdaptOptions("hill-climbing", 50, 4, s)).parameters)
        for s in range(20)
    ]
    assert np.mean(lost) < 1.0


def test_mistakes_are_named():
    """Unknown methods, empty ranges, starts outside and budgets that are too small."""
    with pytest.raises(NameUnknownError, match="'cma-es'"):
        search_parameters(value, START, LOW, HIGH, AdaptOptions("cmaes"))
    with pytest.raises(TruesimError, match="parameter 1 is 9"):
        search_parameters(value, np.array([0.2, 9.0]), LOW, HIGH)
    with pytest.raises(TruesimError, match="parameter 0 is empty"):
        search_parameters(value, START, LOW, np.array([0.0, 3.0]))
    with pytest.raises(TruesimError, match="too few"):
        AdaptOptions(episodes=2, repeats=2)


def test_gaussian_process_interpolates_and_knows_what_it_does_not_know():
    """Near data the mean is right and certain; far from data it is uncertain."""
    x = np.linspace(0.0, 0.6, 12)[:, None]
    process = fit_gaussian_process(x, np.sin(6.0 * x[:, 0]))
    mean, std = process.predict(np.array([[0.33], [1.0]]))
    assert mean[0] == pytest.approx(np.sin(6.0 * 0.33), abs=0.02)
    assert std[1] > 5 * std[0]


def test_gaussian_process_estimates_noise():
    """Twice as noisy data have about twice the noise."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 1))
    found = [fit_gaussian_process(x, 3 * x[:, 0] + s * rng.standard_normal(60)) for s in (0.2, 0.4)]
    assert [g.noise * g.scale for g in found] == pytest.approx([0.2, 0.4], rel=0.3)


def test_bayrn_finds_the_best_randomization():
    """Fifteen policies are enough for a smooth function of two parameters."""
    found = bayrn(noisy(0, 0.1), LOW, HIGH, iterations=15)
    assert len(found.returns) == 15
    assert value(found.parameters) > 8.0


class OfOneNumber:
    """A policy that takes one number."""

    low, high, nominal = np.zeros(1), np.ones(1), np.full(1, 0.5)

    def conditioned(self, condition):
        """The number itself."""
        return condition


@pytest.mark.parametrize(
    ("policy", "real", "sentence"),
    [
        (object(), lambda fixed: 0.0, "train_universal or train_encoded"),
        (OfOneNumber(), "R1", "'R1'; give an environment"),
        (OfOneNumber(), OfOneNumber, "the class OfOneNumber"),
        (OfOneNumber(), lambda fixed: None, "returned None"),
        (OfOneNumber(), lambda fixed: np.nan, "a finite number"),
    ],
)
def test_what_is_no_policy_or_no_robot_is_named(policy, real, sentence):
    """One sentence says what to give instead."""
    with pytest.raises(TruesimError, match=sentence):
        adapt(policy, real, episodes=5)


def test_starts_of_another_size_are_refused():
    """Neither is broadcast silently."""
    with pytest.raises(TruesimError, match=r"shape \(2,\); this policy takes a vector of shape \(1,\)"):
        adapt(OfOneNumber(), lambda fixed: 0.0, episodes=5, start=np.zeros(2))
    with pytest.raises(TruesimError, match="every parameter"):
        search_parameters(value, START, np.zeros(3), np.ones(3))
