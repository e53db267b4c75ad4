"""Networks on the command line: ports, training, going on after a kill, prediction."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.neural_damping.__main__ import ROBOT, recorded
from tests.identification.suggestion.planted import POLE
from tests.identification.suggestion.planted import recorded as recorded_pole
from truesim.cli.evaluate import evaluate
from truesim.cli.identify import identify
from truesim.cli.inspect import inspect
from truesim.cli.simulate import simulate
from truesim.core.errors import TruesimError
from truesim.core.persistence import checkpoint
from truesim.files.logs import write_log
from truesim.identification.fit_folder import read_document
from truesim.identification.solve import adam
from truesim.identification.solve.stages import solve_problem

RULE = """
[[rule]]
name = "damping"
output = "joint.damping_torque"
inputs = ["joint.velocity"]
sharing = "each"
network = {hidden = [], bias = false}
"""


@pytest.fixture
def files(tmp_path):
    """An undamped robot, a log of a damped one, and a blueprint."""
    robot, log, blueprint = (tmp_path / name for name in ("robot.xml", "run.csv", "damping.toml"))
    robot.write_text(ROBOT.format(shoulder=0, elbow=0))
    motion = recorded(1e-3)
    write_log(log, {"time": motion.time, **motion.columns})
    blueprint.write_text(RULE)
    return robot, log, blueprint


def test_ports_are_listed(files, capsys):
    """With the shape that they have in this robot, or the reason why they have no value."""
    inspect(files[0], show_ports=True, as_json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["joint.damping_torque"]["shape"] == [2]
    assert rows["body.wrench"]["shape"] == [2, 6]
    assert rows["actuator.force"]["use"] == "the robot has no actuators"
    inspect(files[0], show_ports=True)
    assert "N m" in capsys.readouterr().out


def test_training_goes_on_after_a_kill_and_serves_prediction(files, tmp_path, monkeypatch, capsys):
    """A killed run leaves a checkpoint from which the same command goes on; the result predicts and simulates."""
    robot, log, blueprint = files
    out = tmp_path / "fit"
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    with monkeypatch.context() as killed:
        killed.setattr("truesim.identification.steps.diagnose", _die)
        with pytest.raises(SystemExit):
            identify(robot, [log], out, blueprint=blueprint)
    assert [path.name for path in out.iterdir()] == [checkpoint.FILE]
    identify(robot, [log], out, blueprint=blueprint)
    shown = capsys.readouterr()
    assert "Continuing" in shown.err
    assert "damping" in shown.out
    assert not (out / checkpoint.FILE).exists()
    (network,) = read_document(out)["networks"]
    assert network["weights"] == 2
    evaluate(out, [log], as_json=True)
    errors = json.loads(capsys.readouterr().out)
    assert max(e["median"] for e in errors.values()) < 0.02
    simulate(out, 0.1, tmp_path / "motion.csv")
    assert len(np.loadtxt(tmp_path / "motion.csv", delimiter=",", skiprows=1)) == 51


def test_many_weights_are_trained_shown_and_go_on_after_a_kill(files, tmp_path, monkeypatch, capsys):
    """With logs to validate on and a curriculum; the second run begins where the first was killed."""
    robot, _, blueprint = files
    robot.write_text(POLE)
    logs = [tmp_path / f"run{seed}.csv" for seed in range(2)]
    for seed, path in enumerate(logs):
        motion = recorded_pole(POLE.replace(".02", ".1"), seed, seconds=1.5)
        write_log(path, {"time": motion.time, **motion.columns})
    blueprint.write_text(RULE.replace("hidden = [], bias = false", "hidden = [14, 14]"))
    out = tmp_path / "fit"
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(adam, "WEIGHT_ADAM_STEPS", 2)
    began = []

    def solved(problem, settings, watch, theta=None, judge=None):
        began.append(theta)
        return solve_problem(problem, dataclasses.replace(settings, iterations=3), watch, theta, judge)

    monkeypatch.setattr("truesim.identification.steps.solve_problem", solved)
    with monkeypatch.context() as killed:
        killed.setattr("truesim.identification.steps.diagnose", _die)
        with pytest.raises(SystemExit):
            identify(robot, logs[:1], out, blueprint=blueprint, validate=logs[1:], horizon=[0.1])
    with np.load(out / checkpoint.FILE) as kept:
        reached = kept["theta"]
    identify(robot, logs[:1], out, blueprint=blueprint, validate=logs[1:], horizon=[0.1])
    shown = capsys.readouterr()
    assert "253 unknowns" in shown.err
    assert "iteration 1, cost" in shown.err
    assert "Continuing" in shown.err
    assert began[0] is None
    np.testing.assert_array_equal(began[1], reached)
    (network,) = read_document(out)["networks"]
    assert network["weights"] == 253
    evaluate(out, logs[1:], as_json=True)
    assert "qpos/hinge" in json.loads(capsys.readouterr().out)
    with pytest.raises(TruesimError, match="at most 200 network weights; there are 253"):
        identify(robot, logs[:1], tmp_path / "other", blueprint=blueprint, optimizer="lm")


def _die(*args):
    raise SystemExit


def test_nothing_to_find_is_refused(files, tmp_path):
    """Neither parameters nor networks."""
    with pytest.raises(TruesimError, match="Nothing is free"):
        identify(files[0], [files[1]], tmp_path / "fit")
