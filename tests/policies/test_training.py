"""Training: a policy is learned, saved, run by NumPy alone and by ONNX, resumed, and played in MuJoCo."""

import csv
import dataclasses
import json
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import PpoOptions, TrainOptions, load_policy, make_task, play, train
from truesim.policies.play import PlayOptions
from truesim.policies.policy import check_policy
from truesim.policies.task import PolicyTrial, Reward
from truesim.policies.training import CHECKPOINT_FILE

SMALL = PpoOptions(episodes=64, horizon=8, minibatches=2, hidden=(16,), activation="tanh")


@pytest.fixture(scope="module")
def task():
    return make_task("cart-pole-balance")


@pytest.fixture(scope="module")
def trained(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    learner = PpoOptions(episodes=256, activation="tanh", normalize=True)
    return train(task, folder, learner=learner, options=TrainOptions(steps=600_000)), folder


def test_cart_pole_is_balanced(trained, task):
    found, folder = trained
    assert found.reached_goal
    played = play(load_policy(folder), task, engine="mujoco")
    assert played.returns.mean() > task.goal
    assert not played.terminated.any()


def test_truesim_and_mujoco_play_alike(trained, task):
    policy = load_policy(trained[1])
    ours, theirs = (play(policy, task, engine=engine) for engine in ("truesim", "mujoco"))
    np.testing.assert_allclose(ours.returns, theirs.returns, atol=1e-3)


def test_the_runner_needs_numpy_only(trained):
    """The file in the folder computes the same actions in a process that has loaded nothing of truesim."""
    _, folder = trained
    program = (
        "import sys, json, numpy as np; sys.path.insert(0, sys.argv[1]); from run_policy import PolicyRunner\n"
        "p = PolicyRunner(sys.argv[1]); x = np.random.default_rng(0).standard_normal((5, 4)).astype('float32')\n"
        "assert not {'jax', 'truesim', 'mujoco'} & set(sys.modules)\n"
        "print(json.dumps([p.act(x).tolist(), p.controls(p.act(x)).tolist()]))"
    )
    command = [sys.executable, "-I", "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    actions, controls = (np.array(x) for x in json.loads(done.stdout))
    policy = trained[0].policy
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    with float32():
        _, expected = policy.network.step(policy.weights, policy.network.memory(5), policy.normalizer(x))
        expected = jnp.clip(expected, -1.0, 1.0)
    np.testing.assert_allclose(actions, expected, atol=1e-6)
    np.testing.assert_allclose(controls, actions, atol=1e-6)


def test_the_runner_names_what_it_does_not_know(trained):
    policy = load_policy(trained[1])
    values = {"position": 0.0, "angle": 0.1, "velocity": [0.0, 0.0]}
    assert policy.observe(values).shape == (4,)
    with pytest.raises(ValueError, match="no observation 'speed'"):
        policy.observe({**values, "speed": 1.0})
    with pytest.raises(ValueError, match="needs the observation 'angle'"):
        policy.observe({"position": 0.0, "velocity": [0.0, 0.0]})
    with pytest.raises(ValueError, match=r"velocity has shape \(3,\)"):
        policy.observe({**values, "velocity": [0.0, 0.0, 0.0]})
    with pytest.raises(ValueError, match=r"angle is \[nan\]; all of its numbers must be finite"):
        policy.observe({**values, "angle": np.nan})


def test_another_rate_and_other_observations_are_refused(trained, task):
    policy = load_policy(trained[1])
    with pytest.raises(TruesimError, match=r"acts every 0\.02 s"):
        check_policy(policy, dataclasses.replace(task, period=0.04))
    with pytest.raises(TruesimError, match="expects 1 numbers 'angle' where the task has 2 'pole'"):
        check_policy(policy, make_task("cart-pole-swingup"))


def test_training_resumes_exactly(task, tmp_path):
    """A training that was interrupted after its first half ends with the same weights."""
    steps = SMALL.episodes * SMALL.horizon
    options = TrainOptions(steps=8 * steps, evaluate_every=0)
    whole = train(task, tmp_path / "whole", learner=SMALL, options=options)
    train(task, tmp_path / "half", learner=SMALL, options=dataclasses.replace(options, steps=4 * steps))
    resumed = train(task, tmp_path / "half", learner=SMALL, options=options)
    for a, b in zip(jax.tree.leaves(whole.policy.weights), jax.tree.leaves(resumed.policy.weights), strict=True):
        np.testing.assert_array_equal(a, b)
    texts = [(tmp_path / name / "progress.csv").read_text().splitlines() for name in ("whole", "half")]
    assert [line.split(",")[0] for line in texts[0]] == [line.split(",")[0] for line in texts[1]]


def test_training_goes_on_until_the_trial_is_passed(task, tmp_path):
    """A policy that lets the pole fall is trained up to the longest budget; one that cannot fall is done at once."""
    steps = SMALL.episodes * SMALL.horizon
    tried = dataclasses.replace(task, seconds=1.0, goal=None, trial=PolicyTrial(episodes=8, every=steps))
    options = TrainOptions(steps=steps, longest=3 * steps, evaluate_every=0)
    shown, folder = [], tmp_path / "falls"
    found = train(
        tried, tmp_path / "falls", learner=SMALL, options=options, callback=lambda now: shown.append(now.trial)
    )
    assert found.steps == 3 * steps
    assert not found.reached_goal
    assert found.trial == min(shown, key=lambda trial: trial.terminated)
    assert found.trial.terminated > 1
    kept = load_policy(folder).description["training"]
    assert (kept["steps"], kept["trial"]["terminated"]) == (found.trial.steps, found.trial.terminated)
    again = train(tried, folder, learner=SMALL, options=options)
    assert (again.steps, again.trial) == (found.steps, found.trial)
    safe = train(dataclasses.replace(tried, terminations={}), tmp_path / "safe", learner=SMALL, options=options)
    assert safe.steps == steps
    assert safe.reached_goal


def test_the_longest_training_is_not_shorter():
    with pytest.raises(TruesimError, match="at the longest 10, which is less"):
        TrainOptions(steps=20, longest=10)


def test_a_checkpoint_of_another_training_is_refused(task, tmp_path):
    options = TrainOptions(steps=512, evaluate_every=0)
    train(task, tmp_path, learner=SMALL, options=options)
    with pytest.raises(TruesimError, match="another training"):
        train(task, tmp_path, learner=SMALL, options=dataclasses.replace(options, seed=1))
    (tmp_path / CHECKPOINT_FILE).write_bytes(b"broken")
    with pytest.raises(TruesimError, match="cannot be read"):
        train(task, tmp_path, learner=SMALL, options=options)


def test_a_reward_that_is_not_finite_is_named(task, tmp_path):
    broken = dataclasses.replace(task, rewards={"broken": Reward(1.0, lambda now: jnp.log(-1.0 - now.q[0] ** 2))})
    with pytest.raises(TruesimError, match="not finite: reward broken"):
        train(broken, tmp_path, learner=SMALL, options=TrainOptions(steps=512, evaluate_every=0))


def test_a_folder_that_is_no_policy_is_refused(trained, tmp_path):
    with pytest.raises(TruesimError, match=r"has no policy\.json"):
        load_policy(tmp_path)
    shutil.copytree(trained[1], tmp_path / "copy")
    (tmp_path / "copy" / "weights.npz").unlink()
    with pytest.raises(TruesimError, match=r"has no weights\.npz"):
        load_policy(tmp_path / "copy")


def test_episodes_of_training_may_be_shorter(task, tmp_path):
    """Training cuts them at their own length, and playing at that of the task."""
    easy = dataclasses.replace(task, terminations={}, seconds=3.0, training_seconds=0.4)
    train(easy, tmp_path / "short", learner=SMALL, options=TrainOptions(steps=64 * 8 * 8, evaluate_every=0))
    with (tmp_path / "short" / "progress.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lengths = [float(row["length"]) for row in rows if row["length"] != "nan"]
    assert lengths
    assert max(lengths) == round(0.4 / easy.period)
    played = play(load_policy(tmp_path / "short"), easy, options=PlayOptions(episodes=2))
    np.testing.assert_allclose(played.seconds, 3.0)
    with pytest.raises(TruesimError, match="the shortest is one control period"):
        dataclasses.replace(task, training_seconds=0.001)
