"""Mappings that are guessed from a log: columns, units, signs, and doubts."""

import re

import numpy as np
import polars as pl
import pytest

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import read_log, read_mapping
from truesim.files.logs.column_names import assign
from truesim.files.logs.guess import guess_mapping, mapping_text
from truesim.files.logs.guessed import guess_columns
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


TWO = {side: {f"{side}_{joint}_{kind}" for joint in ("shoulder", "elbow") for kind in ("target", "position")}
       for side in ("left", "right")}  # fmt: skip


@pytest.mark.parametrize(("only", "side"), [((), "left"), (("right_*",), "right")])
def test_two_arms_in_one_log(recorded, only, side):
    """All columns are of one arm, the doubt names the other, and a pattern chooses it."""
    log = {"t": recorded["Timestamp"]} | {
        name: recorded["elbow_position"] for s in ("left", "right") for name in TWO[s]
    }
    found = guess_mapping(log, ARM, only)
    assert {g.column for g in found} == {"t", *TWO[side]}
    assert any("--columns" in doubt for g in found for doubt in g.doubts) == (not only)


@pytest.mark.parametrize(
    ("position", "command"),
    [
        ("q/{k}", "q_des/{k}"),
        ("q/{k}", "q_d/{k}"),
        ("actual_q_{k}", "target_q_{k}"),
        ("follower.{name}.pos", "leader.{name}.pos"),
        ("{name}_q", "{name}_qref"),
        ("data/{name}_joint", "cmd/{name}_joint"),
    ],
)
def test_ways_to_name_positions_and_commands(recorded, position, command):
    """Beside velocities and currents, by number or by name."""
    log = {"t": recorded["Timestamp"]}
    for k, name in enumerate(("shoulder", "elbow")):
        own = {"k": k, "name": name}
        log |= {position.format(**own): recorded[f"{name}_position"], command.format(**own): recorded[f"goal_{name}"]}
        log |= {f"dq/{k}": recorded["battery"], f"current_{k}": recorded["battery"]}
    found = {g.target: g.column for g in guess_mapping(log, ARM)}
    expected = {f"qpos/{n}": position.format(k=k, name=n) for k, n in enumerate(("shoulder", "elbow"))}
    expected |= {f"ctrl/a{k + 1}": command.format(k=k, name=n) for k, n in enumerate(("shoulder", "elbow"))}
    assert found == {"time": "t"} | expected


def test_names_of_joints_without_the_words_that_all_share():
    """`panda_joint1` is column q1, `elbow_joint` column elbow; fewer numbers than joints are the first joints."""
    assert assign(["panda_joint1", "panda_joint2"], ["q1", "q2"]).columns == {0: "q1", 1: "q2"}
    assert assign(["elbow_joint", "wrist_joint"], ["elbow.pos", "wrist.pos"]).columns[1] == "wrist.pos"
    found = assign(["joint1", "joint2", "finger"], ["q/0", "q/1"])
    assert found.columns == {0: "q/0", 1: "q/1"}
    assert "first 2" in found.doubts[0]


def test_a_log_without_stamps_asks_for_its_rate(recorded, tmp_path):
    """The mapping has a rate to correct, and can be read."""
    columns = {name: values for name, values in recorded.items() if name != "Timestamp"}
    pl.DataFrame(columns).write_csv(tmp_path / "run.csv")
    (tmp_path / "mine.toml").write_text(mapping_text(guess_mapping(columns, ARM), "run.csv"))
    log = read_log(tmp_path / "run.csv", mapping=read_mapping(tmp_path / "mine.toml"))
    assert log.time[1] == pytest.approx(0.01)


def test_position_commands_of_motors_need_a_servo(recorded):
    """A robot of motors follows a position: it is taken, and told; with torques in the log, they are taken."""
    motors = loads(re.sub(r'<position (.*?) kp="\d+" kv="\d+"', r"<motor \1", xml()))
    assert not np.any(motors.actuators.bias)
    found = {g.target: g for g in guess_mapping(recorded, motors)}
    assert found["ctrl/a1"].servo
    torques = {f"tau_{name}": recorded["shoulder_position"] for name in ("shoulder", "elbow")}
    found = {g.target: g for g in guess_mapping(recorded | torques, motors)}
    assert (found["ctrl/a1"].column, found["ctrl/a1"].servo) == ("tau_shoulder", False)
    assert "--servo" in found["ctrl/a1"].doubts[0]


def test_slides_in_millimeters():
    """The range of a slide tells its unit."""
    model = loads('<mujoco><worldbody><body><joint name="rail" type="slide" range="0 0.8"/><geom size=".1"/></body>'
                  "</worldbody></mujoco>")  # fmt: skip
    t = np.arange(0, 1, 0.01)
    found = guess_mapping({"t": t, "rail": 300 + 200 * np.sin(t)}, model)
    assert [g.unit for g in found] == ["", "mm"]


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


MIXED = """<mujoco><worldbody><body><joint name="elbow" axis="0 1 0"/><inertial pos="0 0 -.1" mass="1"
  diaginertia=".01 .01 .01"/><body pos="0 0 -.2"><joint name="finger" axis="1 0 0"/><inertial pos="0 0 -.1" mass=".1"
  diaginertia=".01 .01 .01"/></body></body></worldbody><actuator><motor name="m" joint="elbow"/>
  <position name="grip" joint="finger" kp="1" ctrlrange=".1 .5"/></actuator></mujoco>"""
"""A motor and a position servo, as arms with grippers have."""


def test_motors_beside_servos_get_torques(tmp_path):
    """A position is no torque, though another actuator is a servo; a gripper that was not recorded is held."""
    time = np.arange(100) / 50
    columns = {"time": time, "elbow_q": np.sin(time), "elbow_q_des": np.sin(time + 0.1), "elbow_tau": np.cos(time)}
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    found = guess_columns(loads(MIXED), tmp_path / "a.csv")
    lines = {g.target: g.line() for g in found.guesses}
    assert 'from = "elbow_tau"' in lines["ctrl/m"]
    assert lines["ctrl/grip"].endswith('"ctrl/grip" = 0.1')
    assert found.missing == ()
    (tmp_path / "mine.toml").write_text(found.text)
    assert set(read_log(tmp_path / "a.csv", mapping=tmp_path / "mine.toml").column("ctrl/grip")) == {0.1}


def test_encoder_steps(recorded):
    """Integers of an absolute encoder of 4,096 steps, beyond any range in radians or degrees."""
    steps = {
        name: np.round(values * 4096 / 360 + 2048) if name.endswith("position") or name.startswith("goal") else values
        for name, values in recorded.items()
    }
    found = {g.target: g for g in guess_mapping(steps, ARM)}
    guess = found["qpos/elbow"]
    assert (guess.unit, guess.scale) == ("rev", 1 / 4096)
    np.testing.assert_allclose(2 * np.pi * guess.scale * steps["elbow_position"] + guess.offset,
                               np.radians(recorded["elbow_position"]), atol=1e-3)  # fmt: skip
    assert "encoder steps" in guess.doubts[0]
    assert found["ctrl/a1"].scale == guess.scale


def test_states_hold_positions_then_velocities():
    """Twice as many numbers as joints are taken as a state, and numbers in place of names are a doubt."""
    found = assign(["hip", "knee"], [f"states/{k}" for k in range(4)])
    assert found.columns == {0: "states/0", 1: "states/1"}
    assert any("velocities" in doubt for doubt in found.doubts)
    assert any("order" in doubt for doubt in assign(["hip", "knee"], ["q_0", "q_1"]).doubts)
    assert not assign(["joint1", "joint2"], ["q_0", "q_1"]).doubts


def test_stamps_without_a_name(recorded):
    """A column that grows steadily holds the stamps; numbers of rows do not."""
    columns = {"row": np.arange(len(recorded["battery"])) * 1.0, "tick": recorded["Timestamp"], **recorded}
    del columns["Timestamp"]
    (time,) = (g for g in guess_mapping(columns, ARM) if g.target == "time")
    assert (time.column, time.unit) == ("tick", "ms")
    assert "taken as time stamps" in time.doubts[0]
