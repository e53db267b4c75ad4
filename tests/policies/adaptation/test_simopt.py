"""SimOpt: weights and steps against closed forms, and the offset benchmark."""

import numpy as np
import pytest

from experiments.adaptation import offset
from truesim.core.errors import TruesimError
from truesim.policies.adaptation import (
    SimOptOptions,
    discrepancy,
    gradient_step,
    independent,
    kl_divergence,
    reps_step,
    reps_weights,
)

PRIOR = independent(np.array([1.0, -2.0]), np.array([0.5, 2.0]))
GOAL = np.array([1.6, -2.0])
CURVATURE = np.array([8.0, 0.1])


def cost(x):
    """Quadratic cost."""
    return 0.5 * np.sum(CURVATURE * (x - GOAL) ** 2, axis=1)


def test_divergence_against_samples():
    """The closed form is the mean log ratio of densities."""
    other = independent(np.array([1.2, -1.0]), np.array([0.4, 1.5]))
    x = other.sample(np.random.default_rng(0), 200_000)

    def log_density(g):
        return -0.5 * np.sum(((x - g.mean) / g.std) ** 2, axis=1) - np.sum(np.log(g.std))

    assert kl_divergence(other, PRIOR) == pytest.approx(np.mean(log_density(other) - log_density(PRIOR)), abs=0.01)


@pytest.mark.parametrize("kl", [0.1, 0.5, 1.0])
def test_weights_have_the_divergence_of_the_bound(kl):
    """At the optimum of the dual the weights diverge from uniform ones by the bound."""
    w = reps_weights(np.random.default_rng(0).random(2000), kl)
    assert np.sum(w * np.log(w * len(w) + 1e-300)) == pytest.approx(kl, rel=0.01)


def test_diverged_rollouts_have_no_weight():
    """Infinite costs count nothing; only infinite ones are an error that says what to do."""
    assert reps_weights(np.array([1.0, np.inf, 0.0]), 0.1)[1] == 0
    with pytest.raises(TruesimError, match="narrower"):
        reps_weights(np.array([np.inf, np.inf]), 0.1)


def test_both_steps_find_the_same_distribution():
    """For a quadratic cost REPS and gradients solve one problem: within the bound, and where it matters."""
    options = SimOptOptions(kl=0.3, samples=20_000)
    by_costs = reps_step(PRIOR, cost, options, np.random.default_rng(0))
    by_gradients = gradient_step(PRIOR, lambda x: CURVATURE * (x - GOAL), options, np.random.default_rng(1))
    assert kl_divergence(by_gradients, PRIOR) == pytest.approx(0.3, rel=1e-6)
    assert kl_divergence(by_costs, PRIOR) == pytest.approx(0.3, abs=0.05)
    assert by_costs.mean == pytest.approx(by_gradients.mean, abs=0.05)
    assert by_costs.std == pytest.approx(by_gradients.std, rel=0.05)
    assert abs(by_gradients.mean[0] - GOAL[0]) < abs(PRIOR.mean[0] - GOAL[0])
    assert by_gradients.std[1] == pytest.approx(PRIOR.std[1], rel=0.1)  # hardly determined, and still wide


def test_the_floor_holds():
    """Standard deviations end at the floor, not at zero."""
    options, rng, distribution = SimOptOptions(kl=1.0, floor=(0.1, 0.2)), np.random.default_rng(0), PRIOR
    for _ in range(20):
        distribution = reps_step(distribution, cost, options, rng)
    assert np.all(distribution.std >= np.array([0.1, 0.2]) * (1 - 1e-9))
    assert distribution.mean[0] == pytest.approx(GOAL[0], abs=0.1)


def test_discrepancy_of_equal_and_of_diverged_rollouts():
    """Zero for equal rollouts, infinite for NaN, and the filter ignores noise more than offsets."""
    real = np.zeros((100, 1))
    noise = np.random.default_rng(0).standard_normal((100, 1))
    assert discrepancy(real, real, np.ones(1)) == 0
    assert discrepancy(real * np.nan, real, np.ones(1)) == np.inf
    assert discrepancy(noise, real, np.ones(1)) < 0.3 * discrepancy(noise, real, np.ones(1), width=0)
    assert discrepancy(real + 1, real, np.ones(1)) == pytest.approx(1.5)


@pytest.mark.parametrize("method", ["reps", "gradient"])
@pytest.mark.parametrize(("distance", "allowed"), [(0.15, 4), (0.22, 6)])
def test_a_far_offset_is_found(method, distance, allowed):
    """B4a: 15 cm in 4 and 22 cm in 6 rounds, in the worst of 20 seeds, from a deviation of 2 cm."""
    assert max(offset.solve(distance, method, seed)[0] for seed in range(20)) <= allowed
