import json

import numpy as np
import pytest

import truesim as ts
from tests.identification.regression.arms import FRICTION, arm_file, load_arm, record, true_arm
from tests.terminal import terminal
from truesim.cli.main import run
from truesim.core.errors import TruesimError
from truesim.files.logs import write_log
from truesim.identification.diagnose.diagnosis import Part
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    truth = true_arm(load_arm(folder))
    logs = [folder / "a.csv", folder / "b.csv"]
    for seed, path in enumerate(logs):
        log = record(truth, seconds=20.0, seed=seed)
        write_log(path, {"time": log.time, **log.columns})
    fit = ts.identify(folder / "arm.urdf", logs[:1], preset="arm", holdout=logs[1:], out=folder / "fit")
    return folder, logs, fit


def test_an_arm_is_fitted_by_its_preset(arm):
    _, _, fit = arm
    for j, truth in enumerate(FRICTION):
        assert fit.values[f"joints/j{j}.frictionloss"] == pytest.approx(truth, rel=0.06)
    fitted, start = (fit.torque_errors[part] for part in (Part.HELD_OUT, Part.HELD_OUT_START))
    assert np.mean([e.relative for e in fitted.values()]) < 0.06
    assert np.mean([e.relative for e in start.values()]) > 0.5
    for row, e in fit.errors[Part.HELD_OUT].items():
        assert e.median < 0.1 * fit.errors[Part.HELD_OUT_START][row].median


def test_the_status_says_which_candidate_won(arm):
    _, _, fit = arm
    code = next(d for d in fit.diagnostics if d.code is Code.REGRESSION)
    assert "regression of joint torques" in explain(code)
    assert any(d.code is Code.BASE_PARAMETERS for d in fit.diagnostics)


def test_a_saved_fit_is_loaded_with_its_torque_errors(arm):
    folder, _, fit = arm
    loaded = ts.Fit.load(folder / "fit")
    assert loaded.torque_errors == fit.torque_errors
    assert np.allclose(loaded.solution.theta, fit.solution.theta)


def test_an_arm_is_recognized_without_preset_and_free_parameters(arm):
    folder, logs, fit = arm
    found = ts.identify(folder / "arm.urdf", logs[:1])
    assert set(found.values) == set(fit.values)


def test_evaluate_prints_torque_errors(arm, monkeypatch, capsys):
    folder, logs, _ = arm
    monkeypatch.setenv("MUJOCO_GL", "disable")
    truesim = terminal(run, monkeypatch, capsys)
    done = truesim("evaluate", folder / "fit", logs[1], "--json")
    assert done.code == 0, done.err
    torque = json.loads(done.out)["torque"]
    assert torque["band"] == 6.0
    assert all(e["relative"] < 0.1 for e in torque["joints"].values())
    assert "Torque error" in truesim("evaluate", folder / "fit", logs[1]).out


def test_the_page_shows_torque_errors(arm):
    _, _, fit = arm
    text = fit.report().read_text(encoding="utf-8")
    assert "Torque errors" in text


def test_an_arm_without_torques_is_refused(tmp_path):
    truth = true_arm(load_arm(tmp_path))
    log = record(truth, seconds=5.0)
    columns = {k: v for k, v in log.columns.items() if k != "qpos/j3"}
    with pytest.raises(TruesimError, match="qpos/j3"):
        ts.identify(arm_file(tmp_path), [ts.Log(log.time, columns, "bad")], preset="arm")
    with pytest.raises(TruesimError, match="did you mean 'arm'"):
        ts.identify(arm_file(tmp_path), [log], preset="arms")


def test_logs_that_are_too_short_are_refused(tmp_path):
    log = record(true_arm(load_arm(tmp_path)), seconds=1.2)
    with pytest.raises(TruesimError, match="a regression of torques needs"):
        ts.identify(arm_file(tmp_path), [log], preset="arm")
