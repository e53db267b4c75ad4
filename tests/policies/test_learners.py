"""Learners and networks: recurrent policies remember what they must, and gradients go through the simulator."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import Environment, PpoOptions, ShacOptions, TrainOptions, load_policy, make_task, play, train
from truesim.policies.actors import PolicyNetwork
from truesim.policies.learners.ars import ArsOptions
from truesim.policies.learners.base import CriticView, clipped
from truesim.policies.randomization import Randomization, uniform
from truesim.policies.tasks import learner_named

TINY = {"episodes": 32, "horizon": 8, "minibatches": 2, "hidden": (8,), "activation": "tanh"}


@pytest.fixture(scope="module")
def task():
    return make_task("cart-pole-balance")


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_sequences_are_unrolled_as_they_were_played(kind):
    """Step by step with resets, and as one sequence."""
    network, rng = PolicyNetwork(kind, hidden=(6,), units=4), np.random.default_rng(0)
    weights = network.make(rng, 3, 2, last=1.0)
    x = rng.standard_normal((7, 5, 3)).astype(np.float32)
    fresh = rng.random((7, 5)) < 0.3
    start = rng.standard_normal((5, network.memory_size)).astype(np.float32)
    memory, rows = start, []
    with float32():
        for now, begins in zip(x, fresh, strict=True):
            memory, y = network.step(weights, jnp.where(begins[:, None], 0.0, memory), now)
            rows.append(y)
        np.testing.assert_allclose(network.unroll(weights, start, x, fresh), np.stack(rows), atol=1e-6)
    assert np.abs(np.diff(np.stack(rows), axis=0)).min() > 0


def test_a_network_without_memory_ignores_the_past():
    network = PolicyNetwork(hidden=(6,))
    weights = network.make(np.random.default_rng(0), 3, 2)
    with float32():
        memory, _ = network.step(weights, network.memory(5), np.ones((5, 3), np.float32))
    assert memory.shape == (5, 0)


def test_an_unknown_network_and_learner_are_named():
    with pytest.raises(TruesimError, match="gru"):
        PolicyNetwork("grue")
    with pytest.raises(TruesimError, match="shac"):
        learner_named("cart-pole-balance", "shack")
    with pytest.raises(TruesimError, match="cannot be split"):
        PpoOptions(episodes=10, minibatches=4, network="gru")
    assert learner_named("cart-pole-balance", None, "gru").policy_network.is_recurrent


def test_the_critic_sees_drawn_parameters(task):
    drawn = Randomization({"bodies/pole.mass": uniform(0.1, 0.3), "joints/*.damping": uniform(0.5, 2.0, "scale")})
    varied = dataclasses.replace(task, randomization=drawn, latency=(0.0, 0.02))
    with float32():
        environment = Environment(varied, 64)
        episodes, outcome = environment.reset(1)
        seen = np.asarray(CriticView(environment, True)(episodes, outcome))
        blind = np.asarray(CriticView(environment, False)(episodes, outcome))
    assert seen.shape[1] == blind.shape[1] + 3
    assert np.corrcoef(seen[:, -3], episodes.parameters["bodies/pole.mass"])[0, 1] > 0.999
    assert np.abs(seen[:, -3:].mean(0)).max() < 0.6
    np.testing.assert_array_equal(seen[:, :-3], blind)


@pytest.fixture(scope="module")
def recurrent(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gru")
    blind = dataclasses.replace(task, observations={k: v for k, v in task.observations.items() if k != "velocity"})
    learner = PpoOptions(episodes=256, activation="tanh", network="gru", hidden=(32,), units=32)
    return train(blind, folder, learner=learner, options=TrainOptions(steps=700_000)), folder, blind


def test_a_recurrent_policy_balances_without_velocities(recurrent):
    found, folder, blind = recurrent
    assert found.reached_goal
    policy = load_policy(folder)
    policy.act(np.full((3, 2), 5.0, np.float32))  # an earlier episode, which play lets it forget
    assert not play(policy, blind, engine="mujoco").terminated.any()


def test_the_runner_remembers_as_training_did(recurrent):
    found, folder, _ = recurrent
    runner, policy = load_policy(folder), found.policy
    memory = policy.network.memory(4)
    with float32():
        for x in np.random.default_rng(0).standard_normal((5, 4, 2)).astype(np.float32):
            memory, expected = policy.network.step(policy.weights, memory, policy.normalizer(x))
            np.testing.assert_allclose(runner.act(x), jnp.clip(expected, -1.0, 1.0), atol=1e-6)


def test_short_horizon_gradients_learn(task, tmp_path):
    """The smooth balance is solved from far fewer control steps than PPO takes."""
    found = train(task, tmp_path, learner=ShacOptions(), options=TrainOptions(steps=300_000, evaluate_every=5))
    assert found.reached_goal


def test_short_horizon_gradients_need_differentiable_physics(task):
    class Elsewhere:
        def advance(self, episodes, controls):
            raise NotImplementedError

    with float32(), pytest.raises(TruesimError, match="--learner ppo"):
        ShacOptions(episodes=2).make(Environment(task, 2, physics=Elsewhere()))


def test_random_search_learns_a_linear_policy(task, tmp_path):
    """The balance is solved by a matrix; the runner in the folder has no hidden layer."""
    found = train(task, tmp_path, learner=ArsOptions(), options=TrainOptions(steps=1_500_000, evaluate_every=2))
    assert found.reached_goal
    assert len(load_policy(tmp_path).layers) == 1


def test_random_search_follows_the_better_of_each_pair(task):
    """One direction: the weights move along it with the sign of the difference of both returns."""
    with float32():
        ars = ArsOptions(episodes=2, best=1, horizon=20).make(Environment(task, 2))
        before = ars.start(3)
        after, metrics = ars.iterate(before)
        direction = np.random.default_rng(int(before.seed)).standard_normal(5).astype(np.float32)
        (W, b), (old_W, old_b) = after.weights[0], before.weights[0]
        step = np.concatenate([(W - old_W).ravel(), b - old_b])
        again, _ = ars.iterate(before)
    cosine = step @ direction / np.linalg.norm(step) / np.linalg.norm(direction)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_array_equal(again.weights[0][0], W)
    assert metrics["ended"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 5}, "odd"),
        ({"best": 200}, "cannot be kept"),
        ({"network": "gru"}, "without memory"),
    ],
)
def test_random_search_refuses_what_it_cannot_do(options, message):
    with pytest.raises(TruesimError, match=message):
        ArsOptions(**options)


def test_gradients_are_clipped_and_refused_if_not_finite():
    np.testing.assert_allclose(clipped([jnp.array([3.0, 4.0])], 1.0)[0], [0.6, 0.8], atol=1e-5)
    assert (clipped([jnp.array([jnp.nan, 1.0])], 1.0)[0] == 0.0).all()


def test_a_killed_training_ends_as_if_it_had_not_been(task, tmp_path):
    """SIGKILL after the fifth iteration, beyond the last checkpoint; the same command then continues."""
    program = (
        "import os, signal, sys\n"
        "from truesim.policies import PpoOptions, TrainOptions, make_task, train, training\n"
        "training.SECONDS_BETWEEN_CHECKPOINTS = 0.0 if sys.argv[2] == 'often' else 1e9\n"
        f"learner = PpoOptions(**{TINY!r}, network='gru', units=4)\n"
        "def stop(now):\n"
        "    if now.steps == 5 * 256: os.kill(os.getpid(), signal.SIGKILL)\n"
        "train(make_task('cart-pole-balance'), sys.argv[1], learner=learner,\n"
        "      options=TrainOptions(steps=8 * 256, evaluate_every=0), callback=stop)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "killed"), "often"], env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    learner = PpoOptions(**TINY, network="gru", units=4)
    options = TrainOptions(steps=8 * 256, evaluate_every=0)
    with np.load(tmp_path / "killed" / "checkpoint.npz") as file:
        assert float(file["cpu_seconds"]) > 0
    ends = [train(task, tmp_path / name, learner=learner, options=options) for name in ("killed", "whole")]
    for a, b in zip(*(jax.tree.leaves(end.policy.weights) for end in ends), strict=True):
        np.testing.assert_array_equal(a, b)
    said = json.loads((tmp_path / "killed" / "policy.json").read_text())
    assert said["network"]["kind"] == "gru"
