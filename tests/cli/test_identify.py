"""From logs to a fit on the command line: a good log, bad ones, interruption, and what is left alone."""

import errno
import json
from pathlib import Path

import mujoco
import numpy as np
import polars as pl
import pytest

from truesim.cli.progress import FitProgress

ROBOT = """<mujoco><option timestep="0.004"/><worldbody><body name="arm">
  <joint name="hinge" axis="0 1 0" damping="0.05" frictionloss="0.02"/>
  <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.001"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
TRUTH = 0.8
"""Real mass of the arm [kg]."""
FREE = ("--free", "bodies/*.mass", "joints/*.damping")
TIME = np.arange(0, 2.4, 0.004)


@pytest.fixture
def folder(tmp_path):
    """A robot file and a log of a robot that is heavier."""
    (tmp_path / "robot.xml").write_text(ROBOT)
    write_recording(tmp_path)
    return tmp_path


def write_recording(folder):
    """Writes the log of a robot that is heavier than in its file, `run.csv`."""
    model = mujoco.MjModel.from_xml_string(ROBOT)
    model.body_mass[1] = TRUTH
    data = mujoco.MjData(model)
    command = np.sin(3 * TIME) + 0.5 * np.sin(11 * TIME)
    position = np.empty_like(TIME)
    for k, value in enumerate(command):
        position[k], data.ctrl[0] = data.qpos[0], value
        mujoco.mj_step(model, data)
    position += 1e-4 * np.random.default_rng(0).normal(size=len(TIME))
    write(folder / "run.csv", position, command)


def write(path, position, command, **names):
    """Writes a log; `names` replaces columns."""
    columns = {"time": TIME, "qpos/hinge": position, "ctrl/motor": command}
    pl.DataFrame({names.get(name.replace("/", "_"), name): values for name, values in columns.items()}).write_csv(path)


def columns(path):
    """Position and command of a log."""
    table = pl.read_csv(path)
    return table["qpos/hinge"].to_numpy().copy(), table["ctrl/motor"].to_numpy().copy()


def test_a_fit_finds_the_mass_and_says_so(folder, truesim):
    """One command: result, robot file with only the numbers changed, page; a second run is refused."""
    done = truesim("identify", "robot.xml", "run.csv", *FREE, "--holdout", "run.csv", "--out", "fit")
    assert done.code == 0, done.err
    assert "Status: converged" in done.out
    document = json.loads((folder / "fit" / "fit.json").read_text())
    mass = {p["path"]: p for p in document["parameters"]}["bodies/arm.mass"]
    assert mass["low"] < TRUTH < mass["high"]
    assert mass["high"] - mass["low"] < 0.01
    assert (
        document["errors"]["held_out"]["qpos/hinge"]["median"]
        < 0.05 * (document["errors"]["held_out_start"]["qpos/hinge"]["median"])
    )
    identified = mujoco.MjModel.from_xml_path(str(folder / "fit" / "robot.xml"))
    assert identified.body_mass[1] == pytest.approx(mass["value"], rel=1e-12)
    assert (folder / "fit" / "report.html").stat().st_size > 10_000
    assert "holds a result already" in truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit").sentence
    scored = truesim("evaluate", "fit", "run.csv", "--json")
    found = json.loads(scored.out)["qpos/hinge"]
    assert found == pytest.approx(document["errors"]["held_out"]["qpos/hinge"], rel=1e-6)
    assert set(found) == {"rmse", "median", "windows"}


def test_an_interrupted_fit_is_kept_and_goes_on(folder, truesim, monkeypatch):
    """Ctrl-C leaves the best so far; the same command resumes; another one is refused."""

    def stop(self, progress):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FitProgress, "__call__", stop)
        assert "Status: interrupted" in truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit").out
    assert "already" in truesim("identify", "robot.xml", "run.csv", "--free", "joints/*.damping", "--out", "fit").err
    again = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit")
    assert "Continuing the interrupted fit" in again.err
    assert "Status: converged" in again.out


def test_a_disk_that_is_full_at_the_page_keeps_the_result(folder, truesim, monkeypatch):
    """The sentence says what is there and how the page is made; no part of it is left."""
    whole = Path.write_text

    def full(path, text, *args, **kwargs):
        if "report.html" in path.name:
            whole(path, text[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, text, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        failed = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit")
    assert failed.code == 2
    assert "Free some space, then `truesim report fit`" in failed.err
    assert not list((folder / "fit").glob(".report*"))
    assert truesim("report", "fit").code == 0
    assert (folder / "fit" / "report.html").is_file()


def test_missing_samples_do_not_matter(folder, truesim):
    """A burst of NaN is left out."""
    position, command = columns(folder / "run.csv")
    position[200:260] = np.nan
    write(folder / "run.csv", position, command)
    done = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit", "--json")
    mass = json.loads(done.out)["parameters"][0]
    assert mass["value"] == pytest.approx(TRUTH, abs=0.005)


def test_a_robot_at_rest_shows_nothing(folder, truesim):
    """The status says so, the values stay near their start, and the intervals are wide."""
    rest = 1e-4 * np.random.default_rng(1).normal(size=len(TIME))
    write(folder / "run.csv", rest, np.zeros_like(TIME))
    done = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit", "--json")
    document = json.loads(done.out)
    assert document["verdict"] == "not identifiable"
    assert "no joint moves" in done.err
    mass = document["parameters"][0]
    assert "not identifiable" in mass["flags"]
    assert mass["low"] < 0.25 < 1.0 < mass["high"]


BAD = {
    "a misnamed column": (lambda p, c: {"qpos_hinge": "qpos/hing"}, "did you mean 'qpos/hinge'"),
    "a misnamed control": (lambda p, c: {"ctrl_motor": "ctrl/moter"}, "did you mean 'ctrl/motor'"),
    "no time": (lambda p, c: {"time": "stamp"}, "no column 'time'"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_columns(folder, truesim, case):
    """One sentence with the nearest match; nothing is written."""
    names, sentence = BAD[case]
    position, command = columns(folder / "run.csv")
    write(folder / "run.csv", position, command, **names(position, command))
    done = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit")
    assert done.code == 2
    assert sentence in done.sentence
    assert not (folder / "fit").exists()


def test_angles_in_degrees(folder, truesim):
    """They are recognized, and the sentence says what to do."""
    position, command = columns(folder / "run.csv")
    write(folder / "run.csv", np.rad2deg(position), command)
    sentence = truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit").sentence
    assert "looks like degrees" in sentence
    assert "unit = 'deg'" in sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--free", "bodies/arn.mass"), "did you mean 'arm'"),
        (("--free", "joints/*.dampng"), "did you mean 'joints/*.damping'"),
        ((*FREE, "--bounds", "joints/*.damping=1"), "PATTERN=LOW:HIGH"),
        ((*FREE, "--bounds", "bodies/*.mass=1:2"), "outside of 1:2"),
        ((*FREE, "--prior", "bodies/*.mass=1:-2"), "must be positive"),
        ((*FREE, "--channel", "qpos/elbow"), "the logs hold qpos/hinge"),
        ((*FREE, "--law", "motor=dcmotor"), "did you mean 'dc_motor'"),
        ((*FREE, "--set", "bodies/arm.mass=heavy"), "is not a number"),
        ((*FREE, "--optimizer", "bfgs"), "Valid: adam, auto, lm"),
        ((*FREE, "--window", "-1"), "must be positive"),
        ((*FREE, "--per-log", "none.json"), "no per-log file"),
    ],
)
def test_wrong_requests(folder, truesim, arguments, sentence):
    """One sentence that names the thing, and nothing written."""
    done = truesim("identify", "robot.xml", "run.csv", *arguments, "--out", "fit")
    assert done.code == 2
    assert sentence in done.sentence
    assert not (folder / "fit").exists()


def test_a_window_that_does_not_fit(folder, truesim):
    """The sentence says how long the log is."""
    assert "2.4 s long" in truesim("evaluate", "robot.xml", "run.csv", "--window", "9").sentence


def test_other_files_in_the_folder_are_left_alone(folder, truesim):
    """A folder with other content is not written into."""
    (folder / "fit").mkdir()
    (folder / "fit" / "thesis.tex").write_text("precious")
    assert "--force" in truesim("identify", "robot.xml", "run.csv", *FREE, "--out", "fit").sentence
    assert (folder / "fit" / "thesis.tex").read_text() == "precious"
