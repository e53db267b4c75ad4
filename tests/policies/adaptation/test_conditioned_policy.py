"""Policies that are told parameters: coordinates, told tasks, encoders, and policies for one condition."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import NameUnknownError, TruesimError
from truesim.core.precision import float32
from truesim.policies import Memory, Observation, Randomization, log_uniform, make_task, normal, uniform
from truesim.policies.adaptation import (
    AdaptOptions,
    ConditionedTraining,
    ParameterCoordinates,
    adapt,
    learn,
    tell_parameters,
    train_encoded,
    train_universal,
)
from truesim.policies.adaptation.encoder_network import EncoderNetwork
from truesim.policies.environment import Environment
from truesim.policies.learners.ppo import PpoOptions

MASS, GAIN = "bodies/pole.mass", "actuators/motor.gain"
TINY = ConditionedTraining(
    PpoOptions(episodes=16, horizon=8, minibatches=1, hidden=(8,), activation="tanh", normalize=False),
    steps=256,
    evaluate_every=1,
    evaluated=4,
)


@pytest.fixture(scope="module")
def task():
    """Swing-up of a cart-pole with unknown mass and gain, in episodes of 0.4 s."""
    unknown = Randomization({MASS: log_uniform(0.5, 2.0, "scale"), GAIN: uniform(0.5, 1.5)})
    return dataclasses.replace(make_task("cart-pole-swingup", None, unknown), seconds=0.4)


@pytest.fixture(scope="module")
def universal(task):
    return train_universal(task, TINY)


@pytest.fixture(scope="module")
def encoded(task):
    return train_encoded(task, latent=2, bottleneck=1e-3, training=TINY)


def test_coordinates_span_the_distributions(task):
    """Ends of ranges are at -1 and 1, of logarithms where they are uniform; two deviations of a normal one are 1."""
    task = dataclasses.replace(
        task, randomization=task.randomization.merged(Randomization({"joints/rail.damping": normal(0.1, 0.05)}))
    )
    coordinates = ParameterCoordinates(task)
    told = coordinates({MASS: jnp.array(2.0), GAIN: jnp.array(0.5), "joints/rail.damping": jnp.array(0.2)}, 0.0)
    np.testing.assert_allclose(told, [1.0, -1.0, 1.0], atol=1e-12)
    back = coordinates.parameters(np.asarray(told))
    assert [float(back[name]) for name in coordinates.names] == pytest.approx([2.0, 0.5, 0.2])


def test_coordinates_of_a_known_robot(task):
    """Values are those of the simulator: a mass that is scaled counts relative to the robot's."""
    coordinates = ParameterCoordinates(dataclasses.replace(task, latency=(0.0, 0.04)))
    np.testing.assert_allclose(coordinates.nominal, [0.0, 0.0, 0.0], atol=1e-7)
    np.testing.assert_allclose(coordinates.of_values({MASS: 0.4}, latency=0.04), [1.0, 0.0, 1.0], atol=1e-7)
    assert coordinates.names == (MASS, GAIN, "latency")
    with pytest.raises(NameUnknownError, match=r"bodies/pole\.mass"):
        coordinates.of_values({"bodies/pole.mas": 0.2})


def test_a_task_without_randomization_is_refused():
    with pytest.raises(TruesimError, match="randomizes nothing"):
        tell_parameters(make_task("cart-pole-swingup"))


def test_parameters_are_told_and_noise_is_held(task):
    """Observations end with the coordinates of the episode and with noise, which stay until the episode ends."""
    age = Memory(lambda now, draw: jnp.zeros(()), lambda now: now.memory + 1.0)
    task = dataclasses.replace(task, memory=age, observations={"age": Observation(lambda now: now.memory)})
    with float32():
        environment = Environment(tell_parameters(task, noise=3), 8)
        episodes, first = environment.reset(0)
        rows = [first]
        for _ in range(21):
            episodes, outcome = environment.step(episodes, np.zeros((8, 1), np.float32))
            rows.append(outcome)
    seen = np.stack([np.asarray(row.observation) for row in rows])
    np.testing.assert_array_equal(seen[:20, :, 0], np.tile(np.arange(20.0)[:, None], (1, 8)))
    told = ParameterCoordinates(task)
    with float32():
        expected = jax.vmap(lambda e: told(e.parameters, 0.0))(jax.tree.map(jnp.asarray, episodes))
    np.testing.assert_allclose(seen[-1, :, 1:3], expected, atol=1e-6)
    np.testing.assert_array_equal(seen[:20, :, 1:], np.broadcast_to(seen[:1, :, 1:], (20, 8, 5)))
    assert np.all(seen[20:, :, 3:] != seen[0, :, 3:]), "another episode, other noise"


def test_bottleneck_is_the_divergence_from_a_standard_normal():
    """A latent of mean 1 and standard deviation 1/2 costs (1 + 1/4 - 1) / 2 + ln 2 in each dimension."""
    network = EncoderNetwork(told=2, latent=3, bottleneck=0.1, encoder=())
    weights = network.init(np.random.default_rng(0), 4 + 2 + 3, 1)
    bias = np.array([1.0, 1.0, 1.0, *np.full(3, np.log(0.5))], np.float32)
    weights["encoder"] = [(np.zeros((2, 6), np.float32), bias)]
    with float32():
        cost = network.penalty(weights, jnp.ones((5, 9)))
    assert float(cost) == pytest.approx(0.1 * 3 * (0.125 + np.log(2.0)), rel=1e-5)


def test_noise_enters_the_latent_only_with_a_bottleneck():
    rng = np.random.default_rng(0)
    for bottleneck, noise in ((0.0, 0), (0.1, 3)):
        network = EncoderNetwork(told=2, latent=3, bottleneck=bottleneck)
        weights = network.init(rng, 4 + 2 + noise, 1)
        with float32():
            rows = [np.array([[1.0] * 6 + [float(s)] * noise], np.float32) for s in (0, 1)]
            actions = [network.apply(weights, jnp.asarray(row)) for row in rows]
        assert (float(actions[0][0, 0]) != float(actions[1][0, 0])) == bool(bottleneck)


@pytest.mark.parametrize("kind", ["universal", "encoded"])
def test_policy_of_one_condition_is_an_ordinary_one(kind, request, tmp_path):
    """Folding a condition into the first bias changes no action, and the policy can be saved."""
    policy = request.getfixturevalue(kind)
    condition = 0.3 * policy.low + 0.7 * policy.high
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 5)).astype(np.float32)
    with float32():
        expected = policy.act(jnp.asarray(x), jnp.tile(jnp.asarray(condition, jnp.float32), (6, 1)))
    fixed = policy.conditioned(condition)
    np.testing.assert_allclose(fixed.act(x), np.clip(expected, -1, 1), atol=1e-6)
    fixed.save(tmp_path)
    assert np.all((policy.low <= policy.nominal) & (policy.nominal <= policy.high))
    with pytest.raises(TruesimError, match="takes"):
        policy.conditioned(np.zeros(7))


def test_adapt_searches_the_condition(universal):
    """The condition that a stand-in for the robot rewards is found, and the adapted policy is the one for it."""
    goal = np.array([0.5, -0.4])
    x = np.linspace(-1, 1, 5, dtype=np.float32)[None]
    wanted = universal.conditioned(goal).act(x)
    played = []

    def real(policy):
        played.append(policy)
        return -1e3 * float(np.sum((policy.layers[0][1] - universal.conditioned(goal).layers[0][1]) ** 2))

    found = adapt(universal, real, method="bayesian", episodes=40, options=AdaptOptions(repeats=1))
    assert len(played) == len(found.search.played) <= 40
    assert found.gained > 0
    np.testing.assert_allclose(found.search.parameters, goal, atol=0.15)
    np.testing.assert_allclose(found.policy.act(x), wanted, atol=0.05)


def test_normalizing_learners_are_refused():
    with pytest.raises(TruesimError, match="normalize=False"):
        ConditionedTraining(PpoOptions())


@pytest.mark.slow
def test_learning_continues_on_another_task(task):
    """Training from a state begins with its policy, with a budget of its own, on a task that randomizes less."""
    training = dataclasses.replace(TINY, learner=dataclasses.replace(TINY.learner, critic_sees_parameters=False))
    first = learn(task, training)
    narrow = dataclasses.replace(task, randomization=Randomization({MASS: uniform(0.1, 0.2)}))
    other_seed = dataclasses.replace(training, steps=128, seed=1)
    after, anew = learn(narrow, other_seed, start=first), learn(narrow, other_seed)
    assert int(after.steps) == 128
    moved, other = (
        max(float(np.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (x.weights, first.weights)), strict=True))
        for x in (after, anew)
    )
    assert 0.0 < moved < 0.05 < other
