"""`truesim simulate`."""

import json

import mujoco
import numpy as np
import polars as pl
import pytest

from truesim.files.logs import read_log


def write_controls(path, steps=60, rate=100.0):
    time = np.arange(steps) / rate
    columns = {f"ctrl/{name}": 0.3 * np.sin(3 * time + k) for k, name in enumerate(("yaw", "pitch", "elbow", "wrist"))}
    pl.DataFrame({"time": time, **columns}).write_csv(path)


def test_motion_is_mujocos(truesim, arm, tmp_path):
    """The written log holds MuJoCo's motion under the same controls, sample by sample."""
    write_controls(tmp_path / "log.csv")
    outcome = truesim("simulate", arm, "--seconds", 0.5, "--controls", "log.csv", "--out", "motion.csv")
    assert outcome.code == 0, outcome.err
    assert "motion.csv" in outcome.out
    motion, controls = read_log("motion.csv"), read_log("log.csv")
    m = mujoco.MjModel.from_xml_path(str(arm))
    d = mujoco.MjData(m)
    for i, time in enumerate(motion.time):
        assert d.time == pytest.approx(time, abs=1e-12)
        np.testing.assert_allclose(d.qpos, [motion.column(f"qpos/{m.joint(j).name}")[i] for j in range(4)], atol=1e-9)
        d.ctrl[:] = [controls.column(f"ctrl/{m.actuator(a).name}")[int(d.time * 100 + 1e-6)] for a in range(4)]
        mujoco.mj_forward(m, d)
        tip = [motion.column(f"sensor/tip/{axis}")[i] for axis in "xyz"]
        np.testing.assert_allclose(tip, d.sensor("tip").data, atol=1e-9)
        if i + 1 < len(motion.time):
            np.testing.assert_array_equal(d.ctrl, [motion.column(f"ctrl/{m.actuator(a).name}")[i] for a in range(4)])
            mujoco.mj_step(m, d)
    assert len(motion.time) == 251


def test_a_mapping_file_renames_the_controls(truesim, arm, tmp_path):
    """Controls under names of their own drive the robot as those of the convention do."""
    write_controls(tmp_path / "log.csv")
    own = pl.read_csv("log.csv").rename({"ctrl/elbow": "goal [deg]"}).with_columns(pl.col("goal [deg]").degrees())
    own.write_csv("own.csv")
    (tmp_path / "mine.toml").write_text('[columns]\n"ctrl/elbow" = { from = "goal [deg]", unit = "deg" }\n')
    for options in (["--controls", "log.csv", "--out", "a.csv"], ["--controls", "own.csv", "--out", "b.csv"]):
        mapping = ["--mapping", "mine.toml"] if "own.csv" in options else []
        assert truesim("simulate", arm, "--seconds", 0.2, *options, *mapping).code == 0
    a, b = read_log("a.csv"), read_log("b.csv")
    np.testing.assert_allclose(a.column("qpos/elbow"), b.column("qpos/elbow"), atol=1e-12)


def test_free_body_starts_from_the_log(truesim, tmp_path):
    """A passive robot falls from where its log starts."""
    (tmp_path / "ball.xml").write_text(
        '<mujoco><worldbody><body name="b"><freejoint name="b"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    start = {"x": 1.0, "y": 2.0, "z": 3.0, "qw": 1.0, "qx": 0.0, "qy": 0.0, "qz": 0.0}
    pl.DataFrame({"time": [0.0], **{f"qpos/b/{k}": [v] for k, v in start.items()}}).write_csv("log.csv")
    outcome = truesim("simulate", "ball.xml", "--seconds", 0.1, "--controls", "log.csv", "--start-from-log")
    assert outcome.code == 0, outcome.err
    motion = read_log("traj.csv")
    assert motion.column("qpos/b/x")[-1] == 1.0
    assert motion.column("qpos/b/z")[-1] == pytest.approx(3 - 0.5 * 9.81 * 0.1**2, abs=2e-3)
    assert motion.column("qvel/b/vz")[-1] == pytest.approx(-0.981, abs=1e-9)


def test_the_log_holds_what_sensors_read(truesim, tmp_path):
    """Delays of commands act across the pieces of a long motion; bias and delay of an encoder are in its column."""
    (tmp_path / "r.xml").write_text(
        """<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"/>
        <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
        <actuator><motor name="push" joint="x"/></actuator></mujoco>"""
    )
    errors = {"actuators/push.delay": 0.025, "sensors/qpos/x.bias": 0.5, "sensors/qvel/x.delay": 0.02}
    (tmp_path / "r.xml.truesim.json").write_text(json.dumps({"version": 1, "parameters": errors}))
    time = np.arange(100) * 0.01
    force = np.sin(9 * time)
    pl.DataFrame({"time": time, "ctrl/push": force, "qpos/x": np.full(100, 0.7)}).write_csv("log.csv")
    outcome = truesim("simulate", "r.xml", "--seconds", 1, "--controls", "log.csv", "--start-from-log")
    assert outcome.code == 0, outcome.err
    motion = read_log("traj.csv")
    late = np.concatenate([np.full(3, force[0]), force])
    velocity = np.cumsum((late[1:101] + late[:100]) / 2 * 0.01)
    np.testing.assert_allclose(motion.column("qvel/x")[3:], velocity[:-2], atol=1e-12)
    np.testing.assert_allclose(np.diff(motion.column("qpos/x")), velocity * 0.01, atol=1e-12)
    assert motion.column("qpos/x")[0] == 0.7


def test_never_writes_over_a_file_unasked(truesim, arm, tmp_path):
    """An existing result stays, and the error says how to go on."""
    (tmp_path / "traj.csv").write_text("precious")
    outcome = truesim("simulate", arm, "--seconds", 1)
    assert outcome.code == 2
    assert "--force" in outcome.sentence
    assert (tmp_path / "traj.csv").read_text() == "precious"


def test_a_motion_that_explodes_is_reported(truesim, arm, tmp_path):
    """Infinite states are an error, with the time; the file keeps the motion up to there."""
    write_controls(tmp_path / "log.csv")
    options = ["--controls", "log.csv", "--timestep", 0.6, "--integrator", "RK4"]
    outcome = truesim("simulate", arm, "--seconds", 300, *options)
    assert outcome.code == 2
    assert "time step is too large" in outcome.err
    assert (tmp_path / "traj.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", 1, "--integrator", "Eulr"], ["'Eulr'", "'Euler'"]),
        (["--seconds", 1, "--timestep", -1], ["--timestep", "-1"]),
        (["--seconds", 1e-6], ["shorter than one time step"]),
        (["--seconds", 1, "--controls", "nowhere.csv"], ["nowhere.csv"]),
        (["--seconds", 1, "--controls", "typo.csv"], ["'ctrl/elbw'", "'ctrl/elbow'"]),
        (["--seconds", 1, "--controls", "timeless.csv"], ["no column 'time'"]),
        (["--seconds", 1, "--controls", "backwards.csv"], ["backwards", "row 4"]),
        (["--seconds", 1, "--controls", "gap.csv"], ["missing values"]),
        (["--seconds", 1, "--controls", "empty.csv"], ["no samples"]),
        (["--seconds", 1, "--out", "missing/traj.csv"], ["no folder", "missing"]),
    ],
)
def test_mistakes_are_one_sentence(truesim, arm, tmp_path, arguments, words):
    """Each mistake is named, with what would be valid; exit code 2, nothing written."""
    (tmp_path / "typo.csv").write_text("time,ctrl/elbw\n0,1\n1,1\n")
    (tmp_path / "timeless.csv").write_text("t,ctrl/elbow\n0,1\n1,1\n")
    (tmp_path / "backwards.csv").write_text("time,ctrl/elbow\n0,1\n1,1\n0.5,1\n")
    (tmp_path / "gap.csv").write_text("time,ctrl/elbow\n0,1\n0.1,\n1,1\n")
    (tmp_path / "empty.csv").write_text("time,ctrl/elbow\n")
    outcome = truesim("simulate", arm, *arguments)
    assert outcome.code == 2
    for word in words:
        assert word in outcome.sentence
    assert not (tmp_path / "traj.csv").exists()
