"""Tasks as environments of gymnasium, and any MJCF as one in ten lines."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import truesim as ts
from truesim.bridges.environments import TaskEnv, TaskVectorEnv, register
from truesim.core.errors import TruesimError
from truesim.policies import Observation, PolicyTask, Reward, make_task
from truesim.policies.tasks import TASKS

ROBOT = """
<mujoco><option timestep="0.01"/><worldbody><body name="slider"><joint name="rail" type="slide" axis="1 0 0"/>
<geom type="sphere" size="0.1" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="rail" ctrllimited="true" ctrlrange="-2 2"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "pendulum-swingup" else pytest.mark.slow)
        for name, entry in TASKS.items()
        if entry.has_robot
    ],
)
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
def test_a_registered_task_passes_the_checks_of_gymnasium(name):
    register()
    env = gymnasium.make(f"truesim/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)


def test_other_values_of_the_same_parameters_compile_nothing():
    """Parameters that a reset sets act, stay after an episode begins by itself, and change without compilation."""
    env = TaskVectorEnv(make_task("pendulum-swingup"), 1)
    ends = []
    for mass in (0.5, 2.0, 0.5):
        env.reset(seed=1, options={"parameters": {"bodies/rod.mass": mass}})
        compiled = env._environment
        for _ in range(10):
            last = env.step(np.ones((1, 1)))[0]
        ends.append(last)
    assert env._environment is compiled
    np.testing.assert_array_equal(ends[0], ends[2])
    assert np.abs(ends[0] - ends[1]).max() > 1e-2
    with pytest.raises(TruesimError, match="takes finite numbers of shape"):
        env.reset(options={"parameters": {"bodies/rod.mass": [1.0, 2.0]}})


def test_any_mjcf_is_an_environment(tmp_path):
    (tmp_path / "slider.xml").write_text(ROBOT)
    simulator = ts.Simulator.of(ts.load(tmp_path / "slider.xml"), contact=None)
    task = PolicyTask(
        name="stay",
        simulator=simulator,
        observations={"state": Observation(lambda now: jnp.concatenate([now.q, now.v]))},
        rewards={"near": Reward(1.0, lambda now: jnp.exp(-(now.q[0] ** 2)))},
        reset=lambda simulator, draw: simulator.initial_state(q=draw.uniform(-1.0, 1.0, (1,))),
        seconds=1.0,
    )
    env = TaskEnv(task)
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    position = observation[0]
    for _ in range(50):
        observation, reward, terminated, truncated, _ = env.step(np.ones(1))
    assert truncated
    assert not terminated
    assert abs(observation[0] - position) > 0.9  # the last observation is of this episode, not of the next one
    assert 0.0 <= reward <= task.period
    again, _ = env.reset(seed=0)
    assert again[0] == position


def test_a_batch_reports_ended_episodes_and_takes_parameters():
    env = TaskVectorEnv(make_task("cart-pole-balance"), 4)
    first, _ = env.reset(seed=1)
    assert env.observation_space.contains(first)
    infos = [env.step(np.ones((4, 1)))[4] for _ in range(100)]
    ended = [info for info in infos if info]
    assert ended, "the pole falls under a constant force"
    assert ended[0]["episode"]["l"].max() > 5
    for info in ended:
        for last, has_ended in zip(info["final_obs"], info["_final_obs"], strict=True):
            assert (last is None) == (not has_ended)
            assert last is None or abs(last[1]) > 0.4  # where the pole fell
    observations = []
    for mass in (0.05, 5.0):
        env.reset(seed=1, options={"parameters": {"bodies/pole.mass": mass}})
        for _ in range(5):
            last = env.step(np.ones((4, 1)))[0]
        observations.append(last)
    assert np.abs(observations[0] - observations[1]).max() > 1e-2
    with pytest.raises(TruesimError, match="finite numbers of shape"):
        env.step(np.full((4, 1), np.nan))
    with pytest.raises(TruesimError, match="did you mean 'mass'"):
        env.reset(options={"parameters": {"bodies/pole.mas": 1.0}})
