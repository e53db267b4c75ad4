"""`truesim inspect`."""

import json

import numpy as np
import polars as pl
import pytest

from truesim.core.grouped import grouped
from truesim.files.robots import load
from truesim.physics.model import paths


def test_lists_everything_by_name(truesim, arm):
    """Bodies, joints, actuators, sensors and every parameter path with its unit are printed."""
    outcome = truesim("inspect", arm, "--all")
    assert outcome.code == 0
    model = load(arm)
    for name in (*model.bodies.names, *model.joints.names, *(sensor.name for sensor in model.sensors.declared)):
        assert name in outcome.out
    for path in paths.paths(model):
        assert path.text in outcome.out
    assert "kg m^2" in outcome.out
    assert "Everything in this file is simulated." in outcome.out


def test_says_what_is_not_simulated(truesim, tmp_path):
    """Tendons, contact and fluids are listed."""
    (tmp_path / "r.xml").write_text(
        '<mujoco><option density="1000"/><worldbody><geom type="plane" size="1 1 1"/><body name="b"><joint name="j"/>'
        '<geom size=".1"/></body></worldbody><tendon>'
        '<fixed name="T" limited="true" range="0 1"><joint joint="j" coef="1"/></fixed></tendon>'
        "</mujoco>"
    )
    outcome = truesim("inspect", "r.xml")
    assert outcome.code == 0
    shown = outcome.out.split("Not simulated")[1]
    for word in ("fluid of density 1000", "tendon 'T'", "only if the simulator is given a contact model"):
        assert word in shown


def test_equalities_are_shown(truesim, tmp_path):
    """Numbers of an equality constraint, some of which are matrices, are listed with the others."""
    (tmp_path / "r.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1"/><body name="b"><joint name="k"/>'
        '<geom size=".1"/></body></body></worldbody><equality><joint name="mimic" joint1="j" joint2="k"/>'
        '<weld name="held" body1="b"/></equality></mujoco>'
    )
    outcome = truesim("inspect", "r.xml", "--all")
    assert outcome.code == 0
    for path in paths.paths(load(tmp_path / "r.xml")):
        assert path.text in outcome.out
    assert "equalities/mimic" in outcome.out
    assert "equalities/held" in outcome.out


def test_json_holds_values_and_units(truesim, arm):
    """The JSON has the same parameters, with numbers."""
    outcome = truesim("inspect", arm, "--json", "--only", "bodies/*.mass")
    shown = {entry["path"]: entry for entry in json.loads(outcome.out)["parameters"]}
    assert shown["bodies/hand.mass"] == {"path": "bodies/hand.mass", "value": 0.7, "unit": "kg"}
    assert len(shown) == 4


def test_a_pattern_that_fits_nothing_is_an_error(truesim, arm):
    """One sentence, exit code 2."""
    outcome = truesim("inspect", arm, "--only", "bodies/*.weight")
    assert outcome.code == 2
    assert "bodies/*.weight" in outcome.sentence


def recorded(path, **changes):
    """A log of the built-in arm, with some columns changed or renamed."""
    time = np.arange(1000) * 0.004
    columns = {"time": time}
    for k, name in enumerate(("yaw", "pitch", "elbow", "wrist")):
        columns[f"qpos/{name}"] = 0.5 * np.sin((2 + k) * time + k) + 0.1 * np.sin(7 * time)
        columns[f"ctrl/{name}"] = 0.5 * np.sin((2 + k) * time + k)
    pl.DataFrame(columns | changes).write_csv(path)


def test_a_log_is_described(truesim, arm, tmp_path):
    """Matches, sampling and what shows fit in 80 columns."""
    recorded(tmp_path / "run.csv", battery=np.ones(1000))
    outcome = truesim("inspect", arm, "run.csv")
    assert outcome.code == 0, outcome.err
    assert max(len(line.rstrip()) for line in outcome.out.splitlines()) <= 80
    for words in (
        "250 Hz",
        "position of joint 'elbow'",
        "do not belong to this robot: battery",
        "No anomalies",
        "upper",
    ):
        assert words in outcome.out


def test_gaps_missing_samples_and_odd_units_are_told(truesim, arm, tmp_path):
    """A gap, a burst of missing samples, degrees and a slip in a name each have their sentence."""
    time = np.arange(1000) * 0.004 + np.where(np.arange(1000) > 600, 0.5, 0)
    yaw = np.where((np.arange(1000) > 100) & (np.arange(1000) < 151), np.nan, np.sin(time))
    elbow = np.rad2deg(np.sin(3 * time))
    recorded(tmp_path / "run.csv", time=time, **{"qpos/yaw": yaw, "qpos/elbow": elbow, "qvel/elbw": 0 * time})
    outcome = truesim("inspect", arm, "run.csv")
    assert outcome.code == 0, outcome.err
    told = " ".join(outcome.out.split())
    for words in (
        "1 (0.504 s)",
        "qpos/yaw: 50 of 1000 samples are missing",
        "qpos/elbow: runs from",
        "unit = 'deg'",
        "'qvel/elbw' does not belong to this robot; did you mean 'qvel/elbow'?",
    ):
        assert words in told


def test_json_of_logs(truesim, arm, tmp_path):
    """Several logs are told apart; what shows is of all together; no number is not a number."""
    recorded(tmp_path / "a.csv")
    recorded(tmp_path / "b.csv")
    outcome = truesim("inspect", arm, "a.csv", "b.csv", "--json")
    content = json.loads(outcome.out, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert [log["name"] for log in content["logs"]] == ["a.csv", "b.csv"]
    assert content["logs"][0]["sampling"]["rate"] == pytest.approx(250)
    assert content["logs"][0]["derived"] == ["qvel/elbow", "qvel/pitch", "qvel/wrist", "qvel/yaw"]
    assert content["parameters"]["elbow.damping"]["shows"] in ("clear", "faint")
    assert 0 < content["rank"] <= len(content["combinations"])


def test_a_mapping_file_renames_columns(truesim, arm, tmp_path):
    """`--mapping` makes a user's own columns the robot's."""
    (tmp_path / "run.csv").write_text("t,j\n0,10\n5,20\n10,40\n15,50\n20,60\n")
    (tmp_path / "map.toml").write_text(
        '[columns]\ntime = { from = "t", unit = "ms" }\n"qpos/elbow" = { from = "j", unit = "deg" }\n'
    )
    outcome = truesim("inspect", arm, "run.csv", "--mapping", "map.toml", "--json")
    log = json.loads(outcome.out)["logs"][0]
    assert log["used"] == {"qpos/elbow": "position of joint 'elbow'"}
    assert log["sampling"]["rate"] == pytest.approx(200)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,qpos/elbow\n", ["run.csv", "no samples"]),
        ("time,qpos/elbow\n0,1\n2,1\n1,1\n", ["backwards", "row 4", "from 2 to 1 s"]),
        ("stamp,qpos/elbow\n0,1\n", ["no column 'time'", "[columns] time = { from = 'stamp'"]),
        ("1,2\n3,4\n", ["begins with numbers", "[file] columns"]),
    ],
)
def test_bad_logs_are_one_sentence(truesim, arm, tmp_path, text, words):
    """Exit code 2 and a next step, brackets and all."""
    (tmp_path / "run.csv").write_text(text)
    outcome = truesim("inspect", arm, "run.csv")
    assert outcome.code == 2
    for word in words:
        assert word in outcome.sentence


def test_a_robot_at_rest_is_told(truesim, arm, tmp_path):
    """Rest is a finding, not an error."""
    still = {f"qpos/{name}": np.full(1000, 0.1) for name in ("yaw", "pitch", "elbow", "wrist")}
    recorded(tmp_path / "run.csv", **still)
    outcome = truesim("inspect", arm, "run.csv")
    assert outcome.code == 0, outcome.err
    assert "no joint moves" in outcome.out


def test_the_log_of_another_robot_ends_the_output(truesim, arm, tmp_path):
    """No tables of what the motion of no joint identifies; the guess says which joints the robot has."""
    time = np.arange(50) * 0.01
    pl.DataFrame({"time": time, **{f"panda_joint{k}": np.sin(time + k) for k in range(1, 8)}}).write_csv(
        tmp_path / "panda.csv"
    )
    outcome = truesim("inspect", arm, tmp_path / "panda.csv")
    assert "No column belongs to this robot" in outcome.out
    assert "No anomalies" not in outcome.out
    assert "Motion of the joints" not in outcome.out
    outcome = truesim("inspect", arm, tmp_path / "panda.csv", "--write-mapping", tmp_path / "mine.toml")
    assert outcome.code == 2
    assert "Is it the log of another robot?" in outcome.err


def test_findings_of_many_columns_are_told_once():
    """Sentences that differ in names and numbers only."""
    alike = [(f"qpos/j{k}", f"runs from {-k} to {2.5 * k}: degrees?") for k in range(20)]
    lines = grouped([*alike, ("time", "jumps.")])
    assert lines[0] == "qpos/j0: runs from 0 to 0.0: degrees?"
    assert lines[1].startswith("The same of qpos/j1, qpos/j2,")
    assert lines[1].endswith("(19 in all)")
    assert lines[2:] == ["time: jumps."]
