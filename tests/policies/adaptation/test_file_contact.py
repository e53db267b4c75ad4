"""Adaptation of tasks whose physics is outside of JAX: MuJoCo's contact, as of quadrupeds, hoppers and carts."""

import dataclasses

import numpy as np
import pytest

from truesim.policies import PpoOptions, Randomization, make_task, uniform
from truesim.policies.adaptation import (
    ConditionedTraining,
    OsiNetwork,
    OsiOptions,
    TaskBench,
    adapt,
    held_out_task,
    train_osi,
    train_universal,
)


@pytest.mark.slow
def test_a_cart_with_contact_learns_estimates_and_adapts():
    """A universal policy, its estimator and a search of what it is told, on a cart whose wheels touch the floor."""
    unknown = Randomization({"bodies/base.mass": uniform(0.8, 1.5, "scale")})
    task = dataclasses.replace(make_task("drive-command", None, unknown), seconds=0.4)
    learner = PpoOptions(episodes=8, horizon=8, hidden=(8,), activation="tanh", normalize=False)
    policy = train_universal(task, ConditionedTraining(learner, steps=128, evaluate_every=1, evaluated=4))
    online = train_osi(policy, OsiOptions(OsiNetwork(4, (8,)), 1, 4, samples=64, epochs=1, minibatch=32))
    mass = 1.6 * float(np.asarray(task.simulator.read("bodies/base.mass")))
    bench = TaskBench(held_out_task(task, {"bodies/base.mass": mass}, finer=2, latency=(0.0, 0.02)), evaluated=4)
    found = adapt(policy, bench.episode, method="random", episodes=5)
    assert 3 < bench.played <= 5
    returns = [bench.evaluate(each) for each in (found.policy, online)]
    assert all(np.all(np.isfinite(each)) and np.ptp(each) > 0 for each in returns)
    np.testing.assert_array_equal(returns[0], bench.evaluate(found.policy))
