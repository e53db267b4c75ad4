"""Episodes of a task: physics, latency, pushes, commands, ends and resets, in kernels and by XLA."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import truesim as ts
from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies import Randomization, make_task, uniform
from truesim.policies.environment import Environment
from truesim.policies.episodes import _delayed
from truesim.policies.task import CommandSource, Observation, Pushes, Reward


@pytest.fixture(scope="module")
def task():
    return make_task("cart-pole-swingup")


def played(task, steps, *, batch=16, backend="native", seed=0):
    """Outcomes of random actions, stacked over steps, and the last episodes."""
    rng = np.random.default_rng(seed)
    with float32():
        environment = Environment(task, batch, backend=backend)
        episodes, outcome = environment.reset(seed)
        rows = [outcome]
        for _ in range(steps):
            actions = rng.standard_normal((batch, task.action_map.size)).astype(np.float32)
            episodes, outcome = environment.step(episodes, actions)
            rows.append(outcome)
        return jax.tree.map(lambda *x: np.stack([np.asarray(each) for each in x]), *rows), episodes


def test_kernels_and_xla_agree(task):
    task = dataclasses.replace(
        task,
        seconds=0.4,
        latency=(0.0, 0.05),
        pushes=Pushes((0,), 0.3, (0.05, 0.1)),
        randomization=Randomization({"bodies/pole.mass": uniform(0.5, 2.0, "scale")}),
        observations={k: dataclasses.replace(o, noise=0.1) for k, o in task.observations.items()},
    )
    (own, last), (other, end) = played(task, 30), played(task, 30, backend="xla")
    np.testing.assert_allclose(own.observation, other.observation, atol=2e-5)
    np.testing.assert_array_equal(own.truncated, other.truncated)
    np.testing.assert_allclose(last.state.q, end.state.q, atol=2e-5)
    assert own.truncated[20].all(), "the time limit is 20 control steps"
    assert own.length[21].max() == 1, "episodes begin again"


def test_physics_is_that_of_a_rollout(task):
    """Actions held over a control period move the cart as `rollout` does."""
    with float32():
        environment = Environment(task, 1)
        start, _ = environment.reset(3)
        actions = np.array([0.5, -1.0, 1.0], np.float32)
        episodes = start
        for action in actions:
            episodes, _ = environment.step(episodes, np.full((1, 1), action))
    simulator = task.simulator
    state = simulator.initial_state(q=np.asarray(start.state.q[0], float), v=np.asarray(start.state.v[0], float))
    end, _ = ts.rollout(simulator, state, np.repeat(actions, task.substeps)[:, None].astype(float))
    np.testing.assert_allclose(episodes.state.q[0], end.q, atol=1e-5)


def test_randomized_parameters_act(task):
    """Every episode has its own mass, from the range, and a heavier pole moves otherwise."""
    heavy = dataclasses.replace(task, randomization=Randomization({"bodies/pole.mass": uniform(1.0, 2.0)}))
    _, episodes = played(heavy, 20)
    masses = np.asarray(episodes.parameters["bodies/pole.mass"])
    assert masses.min() > 1.0
    assert masses.max() < 2.0
    assert len(set(masses.tolist())) == len(masses)


def test_parameters_change_within_an_episode(task):
    """With a mean interval of four control steps, a quarter of the steps brings other parameters."""
    masses = Randomization({"bodies/pole.mass": uniform(1.0, 2.0)})
    changing = dataclasses.replace(task, randomization=masses, change_interval=4 * task.period)
    told = {"mass": Observation(lambda now: now.parameters["bodies/pole.mass"])}
    outcomes, _ = played(dataclasses.replace(changing, observations=told), 40, batch=64)
    changes = (np.diff(outcomes.observation[..., 0], axis=0) != 0).mean()
    assert abs(changes - 0.25) < 0.04, "four standard errors of 2,560 steps"
    with pytest.raises(TruesimError, match=r"the control period of 0\.02 s"):
        dataclasses.replace(changing, change_interval=0.001)


def test_unknown_paths_are_refused(task):
    with pytest.raises(TruesimError, match="did you mean 'mass'"):
        dataclasses.replace(task, randomization=Randomization({"bodies/pole.mas": uniform(1.0, 2.0)}))


def test_latency_delays_controls():
    controls = jnp.array([[3.0], [2.0], [1.0]])
    delayed = [np.asarray(_delayed(controls, jnp.full(3, k, jnp.int32), 2))[:, 0].tolist() for k in range(5)]
    assert delayed == [[3, 3], [2, 3], [2, 2], [1, 2], [1, 1]]


def test_commands_change_at_their_interval(task):
    source = CommandSource(1, lambda draw: draw.uniform(shape=(1,)), ("x",), interval=(0.1, 0.1))
    with float32():
        environment = Environment(dataclasses.replace(task, command=source), 1)
        episodes, _ = environment.reset(0)
        commands = []
        for _ in range(15):
            commands.append(float(episodes.command[0, 0]))
            episodes, _ = environment.step(episodes, np.zeros((1, 1), np.float32))
    assert len(set(commands)) == 3
    assert commands[0] == commands[4] != commands[5]


def test_a_period_that_is_no_multiple_of_the_time_step_is_refused(task):
    with pytest.raises(TruesimError, match=r"control period .* is 0\.015 s; it must be a whole number"):
        dataclasses.replace(task, period=0.015)


def test_divergence_ends_an_episode_without_reward(task):
    """An infinite force is no reward and no NaN: the episode begins again."""
    wild = dataclasses.replace(task, max_speed=0.3, rewards={"any": Reward(1.0, lambda now: jnp.ones(()))})
    outcomes, _ = played(wild, 40)
    assert outcomes.terminated.any()
    assert np.isfinite(outcomes.observation).all()
    assert (outcomes.reward[1:][outcomes.terminated[1:]] == 0.0).all()


def test_bad_terms_are_named(task):
    broken = dataclasses.replace(task, rewards={"broken": Reward(1.0, lambda now: jnp.log(-1.0 - now.q[0] ** 2))})
    environment = Environment(broken, 4)
    episodes, _ = environment.reset(0)
    assert environment.bad_terms(episodes) == ["reward broken"]
