"""Imitation: a student learns from a teacher that sees more, and a policy is cloned from recorded episodes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import Environment, PlayOptions, TrainOptions, load_policy, make_task, play, train
from truesim.policies.demonstrations import Demonstrations, RecordingPolicy, read_demonstrations
from truesim.policies.learners.cloning import CloneOptions
from truesim.policies.learners.distillation import DistillOptions
from truesim.policies.learners.regression import minibatch_order
from truesim.policies.networks import Normalizer
from truesim.policies.policy import TrainedPolicy, describe
from truesim.policies.privileged import EPISODE_PARAMETERS, PrivilegedView, privileged_task
from truesim.policies.randomization import Randomization, uniform
from truesim.policies.tasks import learner_named


class Linear:
    """Balances the cart-pole by a matrix."""

    def act(self, observation):
        """Actions of a batch."""
        gain = np.array([[1.0], [12.0], [1.5], [2.0]], np.float32)  # position, angle, and their velocities
        return np.clip(np.asarray(observation) @ gain, -1.0, 1.0)


@pytest.fixture(scope="module")
def task():
    return dataclasses.replace(make_task("cart-pole-balance"), seconds=4.0)


@pytest.fixture(scope="module")
def varied(task):
    drawn = Randomization({"bodies/pole.mass": uniform(0.5, 2.0, "scale")})
    return dataclasses.replace(task, randomization=drawn, latency=(0.0, 0.02))


@pytest.fixture(scope="module")
def blind():
    """A pendulum of which only the angle is seen."""
    task = make_task("pendulum-swingup")
    seen = {k: dataclasses.replace(v, privileged=k == "velocity") for k, v in task.observations.items()}
    return dataclasses.replace(task, observations=seen)


@pytest.fixture(scope="module")
def teacher(blind, tmp_path_factory):
    """A policy that drives the pendulum in the direction in which it moves, which the student does not see."""
    task, folder = privileged_task(blind), tmp_path_factory.mktemp("teacher")
    gain = np.array([0.0, 0.0, 5.0])  # cosine and sine of the angle, velocity
    layers = [(gain[:, None].astype(np.float32), np.zeros(1, np.float32))]
    description = describe(task, "tanh", layers, {})
    TrainedPolicy(layers, Normalizer.identity(3), "tanh", description).save(folder)
    return folder


def test_a_privileged_policy_sees_what_the_critic_sees_and_the_parameters(varied):
    """The view in episodes of the task itself equals the observation of the privileged task."""
    with float32():
        environment, teaching = Environment(varied, 8), Environment(privileged_task(varied), 8)
        episodes, outcome = environment.reset(3)
        theirs = teaching.reset(3)[1].observation
        view = PrivilegedView(varied)
        ours = jax.vmap(view.__call__)(jax.tree.map(jnp.asarray, episodes), outcome)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert theirs.shape[1] == outcome.observation.shape[1] + 2
    told = np.asarray(theirs)[:, -2]
    np.testing.assert_allclose(told, (np.asarray(episodes.parameters["bodies/pole.mass"]) - 1.25) / 0.75, atol=1e-5)
    assert EPISODE_PARAMETERS in privileged_task(varied).observations


def test_a_student_with_a_memory_learns_what_it_cannot_see(blind, teacher, tmp_path):
    """The teacher sees velocities; the student with a memory infers them, and acts more like it than one without."""
    shape = {"teacher": str(teacher), "episodes": 256, "hidden": (32,), "activation": "tanh"}
    error = {}
    for network in ("gru", "mlp"):
        options = TrainOptions(steps=120_000, evaluate_every=0)
        train(blind, tmp_path / network, learner=DistillOptions(network=network, units=32, **shape), options=options)
        rows = np.genfromtxt(tmp_path / network / "progress.csv", delimiter=",", names=True)
        error[network] = rows["action_error"][-5:].mean()
    assert error["gru"] < 0.3 * error["mlp"]


def test_episodes_follow_the_teacher_less_and_less(blind, teacher):
    """All of them at first and none after `teacher_steps`; lessons are always the teacher's actions."""
    options = DistillOptions(teacher=str(teacher), episodes=64, horizon=8, teacher_steps=2048, hidden=(8,))
    with float32():
        learner = options.make(Environment(blind, 64))
        state, shares, errors = learner.start(0), [], []
        for _ in range(6):
            state, metrics = learner.iterate(state)
            shares.append(float(metrics["teacher_share"]))
            errors.append(float(metrics["action_error"]))
    np.testing.assert_allclose(shares, [1.0, 0.75, 0.5, 0.25, 0.0, 0.0])
    assert np.all(np.isfinite(errors))
    assert int(state.steps) == 6 * 64 * 8


def test_a_teacher_for_another_task_is_refused(task, teacher, tmp_path):
    environment = Environment(task, 4)
    with float32(), pytest.raises(TruesimError, match="cannot teach cart-pole-balance"):
        DistillOptions(teacher=str(teacher), episodes=4).make(environment)
    with float32(), pytest.raises(TruesimError, match="nobody"):
        DistillOptions(teacher=str(tmp_path / "nobody"), episodes=4).make(environment)
    with pytest.raises(TruesimError, match="needs a teacher"):
        DistillOptions()


def test_a_loaded_policy_acts_in_jax_as_in_numpy(teacher):
    runner = load_policy(teacher)
    x = np.random.default_rng(0).standard_normal((5, len(runner.mean))).astype(np.float32)
    np.testing.assert_allclose(TrainedPolicy.of_runner(runner).act(x), runner.act(x), atol=1e-6)


@pytest.fixture(scope="module")
def recorded(task):
    recording = RecordingPolicy(Linear())
    played = play(recording, task, options=PlayOptions(episodes=8))
    assert not played.terminated.any()
    return recording.demonstrations(played.steps(task.period))


@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_a_policy_is_cloned_from_recorded_episodes(network, task, recorded, tmp_path):
    """The clone balances as the recorded policy does; episodes that were held out are predicted as well."""
    recorded.save(tmp_path / "episodes.npz")
    learner = CloneOptions(
        demonstrations=str(tmp_path / "episodes.npz"), network=network, hidden=(32,), units=32, activation="tanh"
    )
    passes = 60 if network == "mlp" else 150
    options = TrainOptions(steps=passes * 7 * task.steps, evaluate_every=0)
    train(task, tmp_path / "clone", learner=learner, options=options)
    rows = np.genfromtxt(tmp_path / "clone" / "progress.csv", delimiter=",", names=True)
    assert len(rows) == passes
    assert rows["held_out_error"][-1] < 0.05 * rows["held_out_error"][0]
    played = play(load_policy(tmp_path / "clone"), task, engine="mujoco", options=PlayOptions(episodes=8, seed=1))
    assert not played.terminated.any()


def test_demonstrations_are_what_was_written(recorded, task, tmp_path):
    """Shorter episodes end where they ended."""
    cut = Demonstrations.of([(recorded.observation[:n, k], recorded.action[:n, k]) for k, n in enumerate((5, 9, 7))])
    cut.save(tmp_path / "cut.npz")
    again = read_demonstrations(tmp_path / "cut.npz", task)
    for ours, theirs in zip(cut, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.counts.sum(0).tolist() == [5.0, 9.0, 7.0]
    learned, kept = again.split(0.1)
    assert learned.counts.shape[1] == 2
    assert kept.counts.sum() == 7.0
    assert again.split(0.0)[1] is None


def test_a_log_of_the_robot_gives_observations_and_actions(task, tmp_path):
    """Joint positions, velocities and controls of a log stand for what the task observes and does."""
    path = tmp_path / "log.csv"
    rng = np.random.default_rng(0)
    values = rng.uniform(-0.5, 0.5, (20, 5))
    names = [f"{kind}/{joint}" for kind in ("qpos", "qvel") for joint in task.simulator.model.joints.names]
    header = ",".join(["time", *names, f"ctrl/{task.simulator.model.actuators.names[0]}"])
    rows = [[k * task.period / 2, *row] for k, row in enumerate(values)]
    np.savetxt(path, rows, delimiter=",", header=header, comments="")
    read = read_demonstrations(path, task)
    assert read.action.shape == (10, 1, 1)
    with float32():
        now = Environment(task, 1).reset(0)[0]
        state = dataclasses.replace(
            now.state, q=values[:1, :2].astype(np.float32), v=values[:1, 2:4].astype(np.float32)
        )
        from truesim.policies.episodes import observe

        seen = jax.vmap(lambda e: observe(task, e)[1])(jax.tree.map(jnp.asarray, dataclasses.replace(now, state=state)))
    np.testing.assert_allclose(read.observation[0, 0], seen[0], atol=1e-6)


def test_demonstrations_that_do_not_fit_are_refused(task, tmp_path):
    path = tmp_path / "wrong.npz"
    np.savez(path, observation=np.zeros((5, 3)), action=np.zeros((5, 1)))
    with pytest.raises(TruesimError, match=r"observation of .* has shape \(5, 3\)"):
        read_demonstrations(path, task)
    np.savez(path, observation=np.full((5, 4), np.nan), action=np.zeros((5, 1)))
    with pytest.raises(TruesimError, match="not numbers"):
        read_demonstrations(path, task)
    with pytest.raises(TruesimError, match="nowhere"):
        read_demonstrations(tmp_path / "nowhere.npz", task)
    slow = tmp_path / "slow.csv"
    slow.write_text("time,qpos/rail\n0,0\n0.02,0\n0.04,0\n")
    with pytest.raises(TruesimError, match="has no column"):
        read_demonstrations(slow, task)
    with pytest.raises(TruesimError, match="needs recorded episodes"):
        learner_named("cart-pole-balance", "clone")
    with pytest.raises(TruesimError, match="imitates nothing"):
        learner_named("cart-pole-balance", "ppo", source="teacher")


def test_every_sequence_is_in_one_minibatch_of_an_epoch():
    order = np.asarray(minibatch_order(jax.random.PRNGKey(0), 12, 3, 2))
    assert order.shape == (6, 4)
    assert sorted(order[:3].ravel().tolist()) == sorted(order[3:].ravel().tolist()) == list(range(12))
    assert order[:3].ravel().tolist() != order[3:].ravel().tolist()
