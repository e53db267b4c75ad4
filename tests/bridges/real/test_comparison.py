"""A policy on a stand-in beside simulation, by Python and by the command line."""

import json

import numpy as np
import pytest

from truesim.bridges.real import RealEffects, RealEnv, StandInEnv
from truesim.bridges.real.comparison import discrepancies, play_on, read_traces
from truesim.cli.gap import gap
from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.policies import PpoOptions, TrainOptions, load_policy, make_task, train


@pytest.fixture(scope="module")
def task():
    return make_task("pendulum-swingup")


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    """Policy after one update."""
    folder = tmp_path_factory.mktemp("policy")
    learner = PpoOptions(episodes=32, horizon=8, minibatches=2, hidden=(8,), activation="tanh")
    train(task, folder, learner=learner, options=TrainOptions(steps=256, evaluate_every=0))
    return folder


@pytest.fixture(autouse=True)
def settings_of_jax(monkeypatch):
    """Leaves the compilation cache of this process alone."""
    monkeypatch.setattr("truesim.cli.measured_gap.use_compilation_cache", lambda: None)


def played(task, folder, effects, out):
    real = RealEnv(StandInEnv(task, effects), period=task.period, folder=out)
    try:
        return play_on(real, load_policy(folder), 2)
    finally:
        real.close()


def test_discrepancies_tell_robots_apart(task, folder, tmp_path):
    policy = load_policy(folder)
    same = played(task, folder, RealEffects(), tmp_path / "same")
    signals, simulated = discrepancies(policy, task, same)
    assert [each.name for each in signals] == ["qpos/hinge", "qvel/hinge"]
    assert all(each.relative < 0.01 for each in signals)
    np.testing.assert_allclose(simulated, [trace.value for trace in same], atol=1e-2)
    heavy = played(task, folder, RealEffects({"bodies/rod.mass": 1.5, "actuators/motor.gain": 0.7}), tmp_path / "heavy")
    other, _ = discrepancies(policy, task, heavy)
    assert other[0].median > 10 * signals[0].median
    again = read_traces([tmp_path / "heavy"])
    assert [trace.value for trace in again] == pytest.approx([trace.value for trace in heavy])


def test_bad_logs_are_named(task, folder, tmp_path):
    policy, time = load_policy(folder), 0.05 * np.arange(10)
    columns = {"qpos/hinge": np.zeros(10), "qvel/hinge": np.zeros(10), "reward": np.ones(10)}
    (trace,) = played(task, folder, RealEffects(), tmp_path / "real")[:1]
    with pytest.raises(TruesimError, match=r"a sample every 0\.05 s, but the policy acts every 0\.02 s"):
        discrepancies(policy, task, [trace._replace(log=Log(time, columns))])
    with pytest.raises(TruesimError, match="has no column qvel/hinge"):
        discrepancies(policy, task, [trace._replace(log=Log(time, {"qpos/hinge": np.zeros(10)}))])
    with pytest.raises(TruesimError, match="not the folder of a RealEnv"):
        read_traces([tmp_path])


def test_the_command_writes_a_page(folder, tmp_path, capsys):
    gap([folder], tmp_path / "gap", "R1", nominal=[folder], episodes=2)
    assert "open" in capsys.readouterr().out
    document = json.loads((tmp_path / "gap" / "gap.json").read_text())
    assert [row["role"] for row in document["roles"]] == ["policy", "nominal"]
    assert document["roles"][0]["returns"] == document["roles"][1]["returns"], "the same policy on the same episodes"
    page = (tmp_path / "gap" / "gap.html").read_text()
    assert "Motion by signal" in page
    assert "hinge" in page
    gap([folder], tmp_path / "from", log=[tmp_path / "gap/real/policy_0"], as_json=True)
    assert json.loads(capsys.readouterr().out)["roles"][0]["returns"] == document["roles"][0]["returns"]


@pytest.mark.parametrize(("on", "said"), [("R7", "no robot named 'R7'"), ("nowhere:robot", "cannot be loaded")])
def test_a_robot_that_does_not_exist_is_named(folder, tmp_path, on, said):
    with pytest.raises(TruesimError, match=said):
        gap([folder], tmp_path / "gap", on)


def test_logs_are_of_one_policy(folder, tmp_path):
    with pytest.raises(TruesimError, match="play --nominal on a robot"):
        gap([folder], tmp_path / "gap", log=[tmp_path], nominal=[folder])
