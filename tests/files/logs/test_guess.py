"""Mappings that are guessed from a log: columns, units, signs, and doubts."""

import numpy as np
import polars as pl
import pytest

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import read_log, read_mapping
from truesim.files.logs.guess import guess_mapping, mapping_text
from truesim.files.robots import loads

ARM = loads(xml())


@pytest.fixture(scope="module")
def recorded():
    """A log with names of its own, in milliseconds and degrees, with one command flipped."""
    samples = stream(4.0)
    column = {name: np.array([s[name] for s in samples]) for name in samples[0]}
    return {
        "Timestamp": 1000 * column["time"],
        "shoulder_position": np.degrees(column["qpos/shoulder"]),
        "elbow_position": np.degrees(column["qpos/elbow"]),
        "shoulder_velocity": np.zeros(len(samples)),
        "goal_shoulder": np.degrees(column["ctrl/a1"]),
        "goal_elbow": -np.degrees(column["ctrl/a2"]),
        "battery": np.full(len(samples), 12.0),
    }


def test_columns_units_and_signs(recorded):
    """Milliseconds and degrees by their numbers, the sign by correlation; positions are no commands."""
    found = {g.target: g for g in guess_mapping(recorded, ARM)}
    assert {t: g.column for t, g in found.items()} == {
        "time": "Timestamp",
        "qpos/shoulder": "shoulder_position",
        "qpos/elbow": "elbow_position",
        "ctrl/a1": "goal_shoulder",
        "ctrl/a2": "goal_elbow",
    }
    assert found["time"].unit == "ms"
    assert found["qpos/elbow"].unit == found["ctrl/a1"].unit == "deg"
    assert (found["ctrl/a1"].sign, found["ctrl/a2"].sign) == (1, -1)
    assert "sign flipped" in found["ctrl/a2"].doubts[0]


def test_names_that_hold_a_unit(recorded):
    """`t_ms` holds stamps, and `elbow_deg` leaves no doubt about its unit."""
    names = {"Timestamp": "t_ms", "shoulder_position": "shoulder_deg", "elbow_position": "elbow_deg"}
    found = {g.target: g for g in guess_mapping({names.get(n, n): x for n, x in recorded.items()}, ARM)}
    assert (found["time"].column, found["time"].unit) == ("t_ms", "ms")
    assert (found["qpos/elbow"].unit, found["qpos/elbow"].doubts) == ("deg", ())


def test_positions_are_never_commands(recorded):
    """Without commands in the log, none are proposed."""
    only = {name: values for name, values in recorded.items() if not name.startswith("goal")}
    assert not [g for g in guess_mapping(only, ARM) if g.target.startswith("ctrl/")]


def test_the_written_file_reads_the_log(recorded, tmp_path):
    """A mapping file that `read_log` takes, in SI units."""
    pl.DataFrame(recorded).write_csv(tmp_path / "run.csv")
    (tmp_path / "mine.toml").write_text(mapping_text(guess_mapping(recorded, ARM), "run.csv"))
    log = read_log(tmp_path / "run.csv", mapping=read_mapping(tmp_path / "mine.toml"))
    np.testing.assert_allclose(log.time[1], 0.005)
    assert np.abs(log.column("qpos/elbow")).max() < 2
    np.testing.assert_allclose(log.column("ctrl/a2"), np.radians(-recorded["goal_elbow"]))


MOTORS = """<mujoco><worldbody><body><joint name="j1"/><geom size="0.1"/><body><joint name="j2"/><geom size="0.1"/>
</body>
</body></worldbody><actuator>%s</actuator></mujoco>"""


@pytest.mark.parametrize("kind", ["motor", "position"])
def test_torques_are_the_controls_of_motors_only(kind):
    """Without commands, torques numbered like the joints are controls if the actuators are torque motors."""
    model = loads(MOTORS % "".join(f'<{kind} name="a{k}" joint="j{k}"/>' for k in (1, 2)))
    t = np.arange(0, 1, 0.01)
    log = {"timestamp": t, "actual_q_0": np.sin(t), "actual_q_1": np.cos(t)}
    log |= {f"actual_torque_{k}": np.sin(3 * t + k) for k in (0, 1)} | {f"actual_current_{k}": t for k in (0, 1)}
    found = {g.target: g.column for g in guess_mapping(log, model) if g.target.startswith("ctrl/")}
    expected = {"ctrl/a1": "actual_torque_0", "ctrl/a2": "actual_torque_1"}
    assert found == (expected if kind == "motor" else {})


def test_topics_of_controllers(recorded):
    """References and trajectories are commands; errors and velocities are neither commands nor positions."""
    both = {"shoulder": recorded["shoulder_position"] * 0.0175, "elbow": recorded["elbow_position"] * 0.0175}
    columns = {"time": recorded["Timestamp"] / 1000}
    for joint, q in both.items():
        columns |= {f"arm/state/{kind}/{joint}": q for kind in ("error/positions", "reference/velocities")}
        columns |= {f"arm/state/reference/positions/{joint}": q, f"qpos/{joint}": q}
    found = {g.target: g.column for g in guess_mapping(columns, ARM)}
    assert found["ctrl/a1"] == "arm/state/reference/positions/shoulder"
    assert found["qpos/elbow"] == "qpos/elbow"
    renamed = {n.replace("state/reference", "joint_trajectory"): x for n, x in columns.items()}
    assert {g.target: g.column for g in guess_mapping(renamed, ARM)}[
        "ctrl/a2"
    ] == "arm/joint_trajectory/positions/elbow"
