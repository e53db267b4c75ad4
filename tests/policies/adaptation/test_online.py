"""Online adaptation: histories, the convolution of RMA, and estimators that learn parameters from what happens."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import Randomization, make_task, uniform
from truesim.policies.adaptation import (
    ConditionedPolicy,
    OnlineLoop,
    OnlinePolicy,
    OsiNetwork,
    OsiOptions,
    RmaNetwork,
    RmaOptions,
    train_osi,
    train_rma,
)
from truesim.policies.adaptation.encoder_network import EncoderNetwork
from truesim.policies.adaptation.history import empty_history, forget, remember
from truesim.policies.adaptation.rma import convolve
from truesim.policies.networks import make_layers

GAIN = "actuators/motor.gain"


@pytest.fixture(scope="module")
def task():
    """A second of a swing-up with a motor of unknown strength."""
    unknown = Randomization({GAIN: uniform(0.5, 2.0)})
    return dataclasses.replace(make_task("cart-pole-swingup", None, unknown), seconds=1.0)


def untrained_policy(task, latent):
    """A universal policy, or one with an encoder, that acts at random: enough to learn what actions do."""
    rng = np.random.default_rng(0)
    layers = make_layers(rng, (5 + (latent or 1), 16, 1), 2.0)
    network = EncoderNetwork(told=1, latent=latent, encoder=()) if latent else None
    encoder = None if network is None else make_layers(rng, (1, latent), 1.0)
    bound = np.ones(latent or 1)
    return ConditionedPolicy(task, layers, "tanh", network, encoder, -bound, bound)


def test_histories_hold_the_newest_last():
    """An action belongs to the observation that it led to; ended episodes forget."""
    with float32():
        history = empty_history(2, 3, 3)
        for k in range(4):
            history = remember(history, jnp.full((2, 2), k + 1.0), jnp.full((2, 1), 10.0 * k))
        np.testing.assert_array_equal(history[0], [[2, 2, 10], [3, 3, 20], [4, 4, 30]])
        after, action = forget(history, jnp.ones((2, 1)), jnp.array([True, False]))
    assert not after[0].any()
    assert action[:, 0].tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(after[1], history[1])


@pytest.mark.parametrize(("width", "stride"), [(8, 4), (5, 1), (3, 2)])
def test_convolution_is_that_of_xla(width, stride):
    rng = np.random.default_rng(0)
    with float32():
        x = jnp.asarray(rng.standard_normal((3, 20, 4)), jnp.float32)
        kernel = jnp.asarray(rng.standard_normal((width, 4, 2)), jnp.float32)
        newest = x[:, (20 - width) % stride :]  # windows end with the newest step
        dimensions = ("NWC", "WIO", "NWC")
        expected = jax.lax.conv_general_dilated(newest, kernel, (stride,), "VALID", dimension_numbers=dimensions)
        np.testing.assert_allclose(convolve(x, kernel, stride), expected, atol=1e-5)


def test_convolutions_longer_than_the_history_are_refused():
    with pytest.raises(TruesimError, match="20 steps"):
        RmaNetwork(history=20)


def trained(task, method):
    """A policy with an estimator, trained for seconds."""
    if method == "osi":
        options = OsiOptions(OsiNetwork(6, (64,)), rounds=2, episodes=128, samples=5000, epochs=25, rate=2e-3)
        return train_osi(untrained_policy(task, 0), options)
    network = RmaNetwork(history=12, channels=8, convolutions=((4, 2), (3, 1)))
    options = RmaOptions(network, iterations=40, episodes=64, horizon=25, rate=3e-3, minibatch=200)
    return train_rma(untrained_policy(task, 2), options)


@pytest.mark.parametrize("method", ["osi", "rma"])
def test_estimators_learn_what_cannot_be_observed(task, method):
    """After half a second the strength of the motor is estimated with less than half of the prior's deviation."""
    online = trained(task, method)
    loop = OnlineLoop(online.policy, online.network, 128)
    with float32():
        _, steps = loop.play(online.weights, loop.start(99), 30, jax.random.key(0))
    alive = np.cumsum(np.asarray(steps.ended), axis=0)[-1] == 0
    error = np.asarray(steps.estimate - steps.target)[-1][alive]
    deviation = np.asarray(steps.target)[-1][alive].std(axis=0)
    assert alive.sum() > 20
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 0.5 * deviation)


def test_the_runner_acts_as_the_loop_does(task):
    """Step by step on a robot, the policy takes the actions that it took in simulation."""
    policy, network = untrained_policy(task, 0), OsiNetwork(history=3, hidden=(8,))
    loop = OnlineLoop(policy, network, 4)
    with float32():
        weights = network.init(np.random.default_rng(1), loop.width, 1)
        state = loop.start(5)
        observations = [np.asarray(state.outcome.observation)]
        after = state
        for k in range(3):
            after, _ = loop.play(weights, after, 1, jax.random.key(k))
            observations.append(np.asarray(after.outcome.observation))
    runner = OnlinePolicy(policy, network, weights).runner(4)
    for _ in range(2):
        runner.reset()
        actions = [runner.act(x[:, :5]) for x in observations[:3]]
        np.testing.assert_allclose(actions[-1], np.asarray(after.action), atol=1e-6)
    with pytest.raises(TruesimError, match="vectors of 5 numbers"):
        runner.act(observations[0][:, :4])
