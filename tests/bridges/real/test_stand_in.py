"""Stand-ins: valid environments that differ from the simulator, more with every level."""

import dataclasses

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from truesim.bridges.real import RealEffects, RealEnv, StandInEnv, make_stand_in
from truesim.bridges.real.stand_in_physics import effects_of
from truesim.core.errors import TruesimError
from truesim.files.logs import matching, read_log
from truesim.policies import Environment, make_task


@pytest.fixture(scope="module")
def task():
    return make_task("pendulum-swingup")


def motion(env, steps=40):
    env.reset(seed=3)
    rows = []
    for k in range(steps):
        *_, info = env.step(np.array([np.sin(0.3 * k)]))
        rows.append(list(info["signals"].values())[:2])
    return np.array(rows)


def test_levels_differ_more_and_more(task):
    envs = {level: make_stand_in(task, level) for level in ("R0", "R1", "R2")}
    plain = motion(StandInEnv(task, RealEffects()))
    error = {level: np.abs(motion(env) - plain).mean() for level, env in envs.items()}
    assert error["R0"] > 1e-3
    assert error["R1"] > error["R0"]
    assert not np.allclose(motion(envs["R2"]), motion(envs["R1"]))
    check_env(envs["R2"], skip_render_check=True)


def test_a_stand_in_without_effects_is_the_simulator(task):
    """MuJoCo with the same parameters, integrator and time step moves as the task does."""
    env = StandInEnv(task, RealEffects())
    env.reset(seed=0)
    first = env._episodes
    rewards = [env.step(np.array([0.4]))[1] for _ in range(20)]
    ours = Environment(env.task, 1)
    expected = []
    for _ in range(20):
        first, outcome = ours.step(first, np.array([[0.4]], np.float32))
        expected.append(float(outcome.reward[0]))
    np.testing.assert_allclose(rewards, expected, atol=2e-5)


def test_every_second_parameter_of_r1_is_beyond_its_range(task):
    usual, beyond = effects_of(task, "R0").factors, effects_of(task, "R1").factors
    assert 0.8 <= usual["bodies/rod.mass"] <= 1.2
    assert beyond["bodies/rod.mass"] in (pytest.approx(0.75), pytest.approx(1.25))
    assert effects_of(task, "R1", robot=1).factors != beyond
    with pytest.raises(TruesimError, match="no level of a stand-in named 'R3'"):
        make_stand_in(task, "R3")


def test_its_episodes_are_logs_of_the_robot(task, tmp_path):
    real = RealEnv(make_stand_in(task, "R2"), period=task.period, folder=tmp_path)
    real.reset(seed=0)
    for _ in range(10):
        real.step(np.array([0.3]))
    real.close()
    log = read_log(real.logs[0])
    matched = matching(log, task.simulator.model)
    assert set(matched.used) == {"qpos/hinge", "qvel/hinge", "ctrl/motor"}
    np.testing.assert_allclose(log.columns["ctrl/motor"], 0.36, atol=1e-6)
    assert log.columns["temperature/motor"][-1] > 25.0


def test_sticking_backlash_and_sag(task):
    """Static friction holds a small torque, backlash delays a reversal, a tired battery gives less torque."""

    def speed(effects, action, steps):
        env = StandInEnv(task, effects)
        env.reset(seed=1)
        state = dataclasses.replace(
            env._episodes.state, q=np.full((1, 1), np.pi, np.float32), v=np.zeros((1, 1), np.float32)
        )
        env._episodes = dataclasses.replace(env._episodes, state=state)
        for _ in range(steps):
            *_, info = env.step(np.array([action]))
        return info["signals"]

    sticks, slides = (speed(RealEffects(friction=x), 0.1, 10)["qvel/hinge"] for x in (0.1, 0.0))
    assert abs(sticks) < 0.03 * abs(slides), "MuJoCo's friction creeps, but hardly"
    assert speed(RealEffects(sag=0.5), 1.0, 60)["torque/motor"] < 0.8 * 1.2
    late, prompt = (speed(RealEffects(backlash=x), 0.01, 1)["qvel/hinge"] for x in (0.01, 0.0))
    assert abs(late) < 0.1 * abs(prompt)
