"""The real system: budget, safety limits, rate, logs, and what a crash leaves."""

import json

import gymnasium
import numpy as np
import pytest

from truesim.bridges.real import (
    BudgetSpentError,
    RateKeeper,
    RealBudget,
    RealEnv,
    RealSignals,
    SafetyLimits,
)
from truesim.core.errors import TruesimError
from truesim.files.logs import read_log

SIGNALS = RealSignals(
    lambda observation, info: {"qpos/slider": float(observation[0]), "temperature/motor": info["heat"]},
    lambda action: {"ctrl/motor": 2.0 * float(action[0])},
)


class Slider(gymnasium.Env):
    """Moves by its action; ends after ten steps."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self.place, self.steps, self.actions = 0.0, 0, []

    def reset(self, *, seed=None, options=None):
        """Back to zero."""
        super().reset(seed=seed)
        self.place, self.steps = 0.0, 0
        return np.array([self.place]), {"heat": 20.0}

    def step(self, action):
        """Move."""
        self.actions.append(float(action[0]))
        self.place += float(action[0])
        self.steps += 1
        return np.array([self.place]), 0.5, False, self.steps >= 10, {"heat": 20.0 + self.steps}


class FakeClock:
    """Time that passes only when told."""

    def __init__(self):
        self.time = 100.0

    def now(self):
        """The present time."""
        return self.time

    def sleep_until(self, moment):
        """Let time pass."""
        self.time = max(self.time, moment)


@pytest.fixture
def real():
    """Makes real systems, and closes them at the end of the test."""
    made = []

    def make(folder=None, **options):
        made.append(RealEnv(Slider(), **{"period": 0.1, "folder": folder, "signals": SIGNALS, **options}))
        return made[-1]

    yield make
    for env in made:
        env.close()


def played(env, action=0.1):
    env.reset()
    infos = []
    while True:
        *_, terminated, truncated, info = env.step(np.array([action]))
        infos.append(info)
        if terminated or truncated:
            return infos


def test_episodes_become_logs(real, tmp_path):
    """A log has what was measured, and the control that acted from then on."""
    env = real(tmp_path)
    played(env)
    env.label = "second"
    played(env, -0.2)
    log = read_log(env.logs[0])
    np.testing.assert_allclose(log.time, 0.1 * np.arange(10))
    np.testing.assert_allclose(log.columns["qpos/slider"], 0.1 * np.arange(10), atol=1e-7)
    np.testing.assert_allclose(log.columns["ctrl/motor"], 0.2, atol=1e-7)
    assert [each.value for each in env.episodes] == [5.0, 5.0]
    assert env.episodes[1].label == "second"
    assert env.episodes[0].seconds == pytest.approx(1.0)


def test_the_budget_counts_earlier_sessions(real, tmp_path):
    env = real(tmp_path, budget=RealBudget(episodes=2))
    played(env)
    env.close()
    env = real(tmp_path, budget=RealBudget(episodes=2))
    assert env.episodes_left == 1
    played(env)
    with pytest.raises(BudgetSpentError, match="budget of 2 real episodes is spent"):
        env.reset()


def test_seconds_end_an_episode(real):
    env = real(budget=RealBudget(seconds=1.45))
    played(env)
    infos = played(env)
    assert len(infos) == 5
    assert "budget of 1.45 s is spent" in infos[-1]["stopped"]
    with pytest.raises(BudgetSpentError, match=r"1\.45 s on the real system"):
        env.reset()


def test_a_signal_beyond_its_limit_stops_the_robot(real):
    env = real(limits=SafetyLimits({"qpos/*": (-0.35, 0.35), "temperature/*": (None, 90)}))
    infos = played(env)
    assert len(infos) == 4
    assert infos[-1]["stopped"] == "Stopped after 0.4 s: the position of slider is 0.4, above its limit of 0.35."
    assert env.env.actions[-1] == 0.0, "the stop action was sent"
    assert env.episodes[0].unsafe
    with pytest.raises(TruesimError, match="has ended"):
        env.step(np.zeros(1))


def test_temperatures_and_controls_have_limits(real):
    env = real(limits=SafetyLimits({"temperature/motor": (None, 23.5)}))
    assert "temperature of motor is 24, above its limit of 23.5" in played(env)[-1]["stopped"]
    env = real(limits=SafetyLimits({"ctrl/*": (-1.5, 1.5)}))
    infos = played(env, 0.9)
    assert "before the action was sent: the control of motor is 1.8" in infos[-1]["stopped"]
    assert env.env.actions == [0.0], "the unsafe action never left"


def test_too_many_stops_need_someone_to_look(real):
    env = real(budget=RealBudget(stops=2), limits=SafetyLimits({"qpos/*": (-0.15, 0.15)}))
    played(env)
    played(env)
    with pytest.raises(BudgetSpentError, match=r"stopped 2 times.*the position of slider is 0\.2"):
        env.reset()


def test_a_limit_of_no_signal_is_refused(real):
    with pytest.raises(TruesimError, match="no signal for the safety limit named 'qvel/slider'"):
        real(limits=SafetyLimits({"qvel/slider": (-1, 1)})).reset()
    with pytest.raises(TruesimError, match="this range is empty"):
        SafetyLimits({"qpos/slider": (1, -1)})


def test_a_lost_sensor_stops_the_robot(real):
    signals = SIGNALS._replace(measured=lambda o, i: {"qpos/slider": float(o[0]) if o[0] < 0.25 else np.nan})
    env = real(signals=signals, limits=SafetyLimits({"qpos/*": (-1, 1)}))
    assert "is nan, not a number" in played(env)[-1]["stopped"]


@pytest.mark.parametrize(
    ("action", "said"),
    [([1.5], r"Action 0 is 1\.5, outside of \[-1, 1\]"), ([np.nan], "Action 0 is not a number"), ([0, 0], "has shape")],
)
def test_a_wrong_action_stops_the_robot_and_loses_nothing(real, tmp_path, action, said):
    env = real(tmp_path)
    env.reset()
    env.step(np.array([0.1]))
    with pytest.raises(TruesimError, match=said):
        env.step(np.array(action))
    assert env.env.actions == pytest.approx([0.1, 0.0])
    assert env.episodes[0].steps == 1
    assert len(read_log(env.logs[0]).time) == 1


def test_the_rate_is_kept_and_misses_are_counted(real):
    clock = FakeClock()
    env = real(clock=clock)
    env.reset()
    for late in (0.0, 0.05, 0.0, 0.31):
        clock.time += late
        env.step(np.zeros(1))
    assert clock.time == pytest.approx(100.0 + 0.2 + 0.31)
    env.close()
    assert env.episodes[0].missed == 3 + 0
    keeper = RateKeeper(clock, 0.1)
    assert keeper.wait() == 0.0
    clock.time += 0.145
    keeper.wait()
    assert keeper.missed == 1, "half a period late: one deadline missed"
    keeper.wait()
    assert keeper.seconds == pytest.approx(0.2), "back on the grid"


def test_a_crash_loses_no_row(real, tmp_path):
    """Rows of an episode that never ended become a log, and count for the budget."""
    env = real(tmp_path)
    played(env)
    env.reset()
    for _ in range(3):
        env.step(np.array([0.1]))
    with (tmp_path / ".episode.part.csv").open("a") as file:
        file.write("0.3,0.29")  # the process was killed while it wrote this row
    env._files._stream.close()
    env._files._stream, env._running = None, False
    again = real(tmp_path, budget=RealBudget(seconds=1.5))
    assert [each.steps for each in again.episodes] == [10, 3]
    assert "interrupted" in again.episodes[1].stopped
    assert again.seconds_left == pytest.approx(0.2)
    assert len(read_log(again.logs[1]).time) == 3
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 3
    json.loads((tmp_path / "episodes.jsonl").read_text().splitlines()[-1])


def test_a_folder_of_another_rate_is_refused(real, tmp_path):
    real(tmp_path).close()
    with pytest.raises(TruesimError, match="belongs to other work"):
        real(tmp_path, period=0.2)


def test_names_come_from_numbers_where_nothing_is_told(real):
    env = real(signals=None, limits=SafetyLimits({"observation/0": (None, 0.25)}))
    assert "observation/0 is 0.3" in played(env)[-1]["stopped"]
