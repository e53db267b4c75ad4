"""Randomization: distributions, times of drawing, conditions, files and presets."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import (
    Randomization,
    correlated,
    from_samples,
    log_uniform,
    make_task,
    normal,
    read_randomization,
    truncated,
    uniform,
)
from truesim.policies.draws import Draws, make_keys, normal_quantile
from truesim.policies.environment import Environment
from truesim.policies.episodes import begin, conclude, control
from truesim.policies.randomization_files import preset_names
from truesim.policies.task import with_conditions

MASS = "bodies/rod.mass"


def drawn(distribution, count=4000):
    keys = jnp.asarray(make_keys(0, count))
    return np.asarray(jax.vmap(lambda key: distribution.sample(Draws(key, jnp.uint32(0)), ()))(keys))


@pytest.mark.parametrize(
    ("distribution", "reference"),
    [
        (uniform(2.0, 3.0), stats.uniform(2.0, 1.0)),
        (log_uniform(0.5, 2.0), stats.loguniform(0.5, 2.0)),
        (normal(1.0, 0.2), stats.norm(1.0, 0.2)),
        (truncated(1.0, 0.5, 0.8, 2.0), stats.truncnorm(-0.4, 2.0, 1.0, 0.5)),
        (truncated(0.0, 1.0, 1.5, 4.0), stats.truncnorm(1.5, 4.0)),
    ],
)
def test_distributions_are_what_they_say(distribution, reference):
    """Kolmogorov's distance of 4000 samples stays below its 0.1 % point, 1.95 / sqrt(n)."""
    assert stats.kstest(drawn(distribution), reference.cdf).statistic < 1.95 / np.sqrt(4000)


def test_quantiles_of_the_normal_distribution():
    p = np.array([1e-6, 0.001, 0.02, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(normal_quantile(jnp.asarray(p)), stats.norm.ppf(p), rtol=1e-7, atol=1e-9)


def test_joint_samples_keep_correlations():
    covariance = np.array([[0.04, 0.03], [0.03, 0.04]])
    found = correlated(["a", "b"], [1.0, 2.0], covariance)
    rows = np.stack([found.samples["a"], found.samples["b"]])
    np.testing.assert_allclose(np.cov(rows), covariance, atol=0.01)
    wide = from_samples(found.samples, inflate=2.0)
    assert wide.samples["a"].std() == pytest.approx(2.0 * found.samples["a"].std())
    with pytest.raises(TruesimError, match="positive semidefinite"):
        correlated(["a", "b"], [1.0, 2.0], [[1.0, 2.0], [2.0, 1.0]])


def masses(every, steps=6):
    """Mass of one pendulum at each step of two short episodes."""
    task = dataclasses.replace(
        make_task("pendulum-swingup"),
        randomization=Randomization({MASS: dataclasses.replace(uniform(0.5, 2.0), every=every)}),
        seconds=0.06,
    )

    def step(episode, _):
        episode, _ = control(task, episode, jnp.zeros(1, jnp.float32))
        following, _ = conclude(task, episode, episode.state)
        return following, following.parameters[MASS]

    def run(key):
        episode = begin(task, key)
        return episode.parameters[MASS], jax.lax.scan(step, episode, None, length=steps)[1]

    with float32():
        first, others = jax.jit(run)(jnp.asarray(make_keys(0, 1)[0]))
        return np.concatenate([[first], others])


def test_numbers_are_drawn_when_they_should_be():
    """Episodes have three steps: the fourth number is of the second episode."""
    changes = {every: np.flatnonzero(np.diff(masses(every))).tolist() for every in ("episode", "step", "once", 0.04)}
    assert changes["episode"] == [2, 5]
    assert changes["step"] == [0, 1, 2, 3, 4, 5]
    assert changes["once"] == []
    assert changes[0.04] == [1, 2, 4, 5]
    with pytest.raises(TruesimError, match="no time of drawing named 'sometimes'"):
        dataclasses.replace(uniform(0, 1), every="sometimes")


def test_jitter_delays_actions_but_never_reorders_them():
    """Controls that act are those of actions 1, 2, 3 … in this order, some of them late."""
    task = dataclasses.replace(make_task("pendulum-swingup"), latency=(0.01, 0.02), jitter=0.03)

    def run(key):
        def step(episode, k):
            episode, controls = control(task, episode, 0.01 * (k + 1.0)[None])
            return dataclasses.replace(episode, counter=episode.counter + jnp.uint32(1)), controls[:, 0]

        return jax.lax.scan(step, begin(task, key), jnp.arange(40.0))[1].ravel()

    with float32():
        acting = np.asarray(jax.jit(run)(jnp.asarray(make_keys(3, 1)[0])))
    number = np.round(acting / 0.012).astype(int)
    sent = 1 + np.arange(len(number)) // 2
    assert np.all(np.diff(number) >= 0)
    late = 0.01 * (np.arange(len(number)) - 2 * (number - 1))[number > 0]
    assert late.max() <= 0.02 + 0.03 + 0.02 + 1e-9
    assert np.all(sent >= number)
    assert len(set((sent - number)[10:].tolist())) > 1, "delays differ"


def test_offsets_last_an_episode_and_lost_values_are_seen_again():
    task = make_task("pendulum-swingup")
    plain = task.observations["velocity"]
    changed = {"velocity": dataclasses.replace(plain, scale=1.0, bias=0.5, dropout=0.5)}
    task = dataclasses.replace(task, observations=changed, seconds=0.2)
    environment = Environment(task, 64)
    episodes, outcome = environment.reset(0)
    offsets = outcome.observation[:, 0] - episodes.state.v[:, 0]
    assert 0.2 < np.abs(offsets).max() <= 0.5
    lost = []
    for _ in range(9):
        last = outcome.observation[:, 0]
        episodes, outcome = environment.step(episodes, np.full((64, 1), 0.5, np.float32))
        again = outcome.observation[:, 0] == last
        fresh = np.isclose(outcome.observation[:, 0] - episodes.state.v[:, 0], offsets, atol=1e-5)
        assert np.all(again | fresh)
        lost.append(again.mean())
    assert 0.4 < np.mean(lost) < 0.6


def test_files_have_times_patterns_and_conditions(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '["bodies/*.mass"]\nuniform = [0.9, 1.1]\nhow = "scale"\neach = true\nevery = "once"\n'
        '[correlated]\npaths = ["joints/rail.damping", "joints/hinge.damping"]\nmean = [0.1, 0.2]\n'
        "covariance = [[1e-4, 0.0], [0.0, 1e-4]]\n[conditions]\nlatency = [0.0, 0.04]\njitter = 0.01\nnoise = 3.0\n"
    )
    task = make_task("cart-pole-balance", None, read_randomization(path))
    assert set(task.randomization.distributions) == {"bodies/cart.mass", "bodies/pole.mass"}
    assert set(task.randomization.samples) == {"joints/rail.damping", "joints/hinge.damping"}
    assert task.latency == (0.0, 0.04)
    assert task.jitter == 0.01
    assert task.observations["angle"].noise == pytest.approx(0.03)
    for text, said in (
        ("[conditions]\nlatensy = [0, 1]", "did you mean 'latency'"),
        ('["bodies/pole.mass"]\nuniform = [1, 2]\nwhen = "once"', "no key of bodies/pole.mass named 'when'"),
        ('[correlated]\npaths = ["a"]', "has no mean"),
    ):
        path.write_text(text)
        with pytest.raises(TruesimError, match=said):
            read_randomization(path)
    with pytest.raises(TruesimError, match="presets are go1"):
        read_randomization(tmp_path / "minitaurus")


@pytest.mark.parametrize("name", preset_names())
def test_presets_fit_the_quadruped(name):
    """Every preset can be applied to truesim's own quadruped, and draws finite numbers."""
    task = make_task("quadruped-joystick", None, read_randomization(name))
    with float32():
        key = jnp.asarray(make_keys(0, 1)[0])
        numbers = jax.jit(lambda key: begin(task, key).parameters)(key)
    assert numbers
    assert all(np.all(np.isfinite(x)) for x in numbers.values())


def test_pushes_of_a_task_without_pushes_are_refused():
    task = dataclasses.replace(make_task("pendulum-swingup"), randomization=Randomization(conditions={"push_size": 1}))
    with pytest.raises(TruesimError, match="has no pushes"):
        with_conditions(task)
