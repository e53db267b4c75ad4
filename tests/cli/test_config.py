"""Config files: one is written with every fit and repeats it; mistakes in one are one sentence."""

import json
import tomllib

import numpy as np
import pytest

import truesim as ts

ROBOT = """<mujoco><option timestep="0.005"/><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
</body></worldbody><actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""


@pytest.fixture
def files(tmp_path):
    """A pendulum and a recording of it with more damping, in a folder of their own."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "robot.xml").write_text(ROBOT)
    simulator = ts.Simulator.of(ts.load(folder / "robot.xml")).replace({"joints/hinge.damping": 0.15})
    time = np.arange(200) * 0.005
    commands = 0.4 * np.sin(5 * time)[:, None]
    _, motion = ts.rollout(simulator, simulator.initial_state(), commands)
    rows = np.column_stack([time, np.concatenate([[0.0], np.asarray(motion.q)[:-1, 0]]), commands])
    np.savetxt(folder / "run.csv", rows, delimiter=",", header="time,qpos/hinge,ctrl/motor", comments="")
    return folder


def test_a_fit_is_repeated_from_its_config(truesim, files, tmp_path):
    """The file in the folder of a fit holds what was given, and leads to the same numbers from another folder."""
    free = ("--free", "joints/*.damping", "--robust", "inf", "--bounds", "joints/*.damping=0.01:1")
    first = truesim("identify", "data/robot.xml", "data/run.csv", *free, "--out", "fit", "--quiet")
    assert first.code == 0, first.err
    assert first.err == ""
    written = tomllib.loads((tmp_path / "fit" / "fit.toml").read_text())
    assert written == {
        "robot": "../data/robot.xml",
        "logs": ["../data/run.csv"],
        "free": ["joints/*.damping"],
        "robust": float("inf"),
        "bounds": ["joints/*.damping=0.01:1"],
    }
    again = truesim("identify", "--config", "fit/fit.toml", "--out", "again", "--quiet")
    assert again.code == 0, again.err
    one, two = (json.loads((tmp_path / name / "fit.json").read_text())["parameters"] for name in ("fit", "again"))
    assert one == two
    assert one[0]["value"] == pytest.approx(0.15, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("log = ['run.csv']", "did you mean 'logs'?"),
        ("robot = [", "is not TOML"),
        ("robot = ['a.xml', 'b.xml']", "is a list; it takes one value"),
        ("per-log = {run = 1}", "is a table"),
        ("floating-base = 1", "must be true or false"),
        ("contact = 'ridgid'\nrobot = 'robot.xml'\nlogs = ['run.csv']", "did you mean 'rigid'?"),
        ("robot = 'robto.xml'\nlogs = ['run.csv']", "did you mean"),
    ],
)
def test_mistakes_in_a_config_are_one_sentence(truesim, files, text, sentence):
    """Unknown keys, wrong forms and wrong values name the key or the file."""
    (files / "fit.toml").write_text(text)
    outcome = truesim("identify", "--config", files / "fit.toml", "--out", "fit")
    assert outcome.code == 2
    assert sentence in outcome.sentence


def test_a_missing_config_is_one_sentence(truesim):
    """The file is named."""
    assert "There is no config file none.toml" in truesim("identify", "--config", "none.toml").sentence
