"""Comparison of methods: gap closed, what counts as a real episode, and held-out variants of tasks."""

import dataclasses

import numpy as np
import pytest

from truesim.core.errors import NameUnknownError, TruesimError
from truesim.core.precision import float32
from truesim.policies import Randomization, TrainedPolicy, make_task, uniform
from truesim.policies.adaptation import (
    ConditionedPolicy,
    LeaderboardOptions,
    PolicyShelf,
    TaskBench,
    gap_closed,
    held_out_task,
    method_curve,
)
from truesim.policies.networks import make_layers

GOAL = np.array([0.4, -0.3])


@pytest.fixture(scope="module")
def policy():
    """An untrained universal policy of a mass and a gain."""
    unknown = Randomization({"bodies/pole.mass": uniform(0.1, 0.3), "actuators/motor.gain": uniform(0.5, 1.5)})
    task = dataclasses.replace(make_task("cart-pole-swingup", None, unknown), seconds=0.5)
    layers = make_layers(np.random.default_rng(0), (5 + 2, 8, 1), 1.0)
    return ConditionedPolicy(task, layers, "tanh", None, None, -np.ones(2), np.ones(2))


class ShelfOf(PolicyShelf):
    """A shelf with one policy."""

    def __init__(self, policy, options):
        """Take the policy."""
        super().__init__(policy.task, options)
        self._only = policy

    def policy(self, condition):
        """The policy."""
        return self._only


class Quadratic:
    """A real system that rewards one value of the condition, read off the policy's first bias."""

    def __init__(self, policy):
        """Know the best policy."""
        self._best, self.played, self.evaluated = policy.conditioned(GOAL).layers[0][1], 0, 0

    def _value(self, fixed: TrainedPolicy) -> float:
        return -float(np.sum((fixed.layers[0][1] - self._best) ** 2))

    def episode(self, fixed):
        """Return of an episode, with noise that repeats."""
        self.played += 1
        return self._value(fixed) + 1e-3 * np.sin(self.played)

    def evaluate(self, fixed):
        """Returns of an evaluation."""
        self.evaluated += 1
        return np.full(3, self._value(fixed))


def test_curves_count_episodes_and_rise(policy):
    """A search sees only its own episodes; the incumbent after more of them is better."""
    options = LeaderboardOptions(counts=(0, 10, 30), searches=2)
    real = Quadratic(policy)
    curve = method_curve("so-cma", ShelfOf(policy, options), real)
    assert curve.returns.shape == (2, 3)
    assert 2 * 28 < real.played <= 2 * 30
    assert real.evaluated <= 2 * 3
    assert np.all(curve.returns[:, 2] > curve.returns[:, 0])
    assert all(np.all(np.abs(found) <= 1) for found in curve.found)


class Episodes:
    """A real system whose evaluation has known returns."""

    def evaluate(self, online):
        """Returns of three episodes."""
        return np.array([1.0, 2.0, 4.0])


class ShelfOfEstimators(PolicyShelf):
    """A shelf with estimators that are never looked at."""

    def online(self, condition):
        """Nothing."""


def test_estimates_vary_over_episodes():
    """What searches nothing is the same after any number of episodes, and has the returns of each one."""
    options = LeaderboardOptions(counts=(0, 10))
    curve = method_curve("up-osi", ShelfOfEstimators(make_task("cart-pole-swingup"), options), Episodes())
    assert curve.returns.tolist() == [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]
    assert not curve.found


def test_gap_closed_and_mistakes():
    np.testing.assert_allclose(gap_closed(np.array([1.0, 3.0, 5.0]), 1.0, 5.0), [0.0, 0.5, 1.0])
    with pytest.raises(TruesimError, match="there is no gap"):
        gap_closed(np.array([1.0]), 2.0, 1.0)
    with pytest.raises(NameUnknownError, match="'latent-awr'"):
        method_curve("latent-aw", PolicyShelf(make_task("cart-pole-swingup"), LeaderboardOptions()), None)


def test_held_out_robots_differ_and_repeat(policy):
    """A weak motor changes the return; equal seeds repeat episodes; evaluations are always the same ones."""
    offset = np.array([0.0, 0.01])
    weak = held_out_task(policy.task, {"actuators/motor.gain": 0.2}, finer=2, latency=(0.0, 0.02), offset=offset)
    assert not weak.randomization.paths
    assert weak.substeps == 2 * policy.task.substeps
    fixed = policy.conditioned(GOAL)
    with float32():
        strong, other = TaskBench(held_out_task(policy.task, {}), evaluated=8), TaskBench(weak, evaluated=8)
    assert strong.episode(fixed) != strong.episode(fixed)
    assert strong.played == 2
    np.testing.assert_array_equal(other.evaluate(fixed), other.evaluate(fixed))
    assert np.abs(strong.evaluate(fixed) - other.evaluate(fixed)).max() > 1e-4
