"""What looks odd in a log is said in a sentence."""

import numpy as np
import pytest

from truesim.files.logs import Log, anomalies, prepare
from truesim.files.logs.checks import clipped_fraction, is_moving
from truesim.files.robots import loads

ROBOT = loads(
    """
<mujoco><compiler angle="radian"/><worldbody>
  <body><joint name="wheel" axis="0 1 0"/><geom size=".1"/>
    <body><joint name="elbow" axis="0 1 0" limited="true" range="-2 2"/><geom size=".1"/></body></body>
</worldbody><actuator><motor name="drive" joint="wheel" ctrllimited="true" ctrlrange="-1 1"/></actuator>
<sensor><gyro name="imu" site="s"/></sensor></mujoco>""".replace("<geom", '<site name="s"/><geom', 1)
)
TIME = np.arange(1000) * 0.004
SWING = np.sin(2 * np.pi * TIME)
RATE = 2 * np.pi * np.cos(2 * np.pi * TIME)


def said(**columns: np.ndarray) -> list[str]:
    log = Log(TIME, {name.replace("_", "/"): values for name, values in columns.items()}, "run.csv")
    return [str(finding) for finding in anomalies(log, ROBOT)]


@pytest.mark.parametrize(
    ("columns", "subject"),
    [
        ({"qpos_elbow": np.rad2deg(SWING)}, "qpos/elbow"),
        ({"qpos_wheel": np.rad2deg(SWING)}, "qpos/wheel"),
        ({"qpos_wheel": np.rad2deg(SWING), "qvel_wheel": RATE}, "qpos/wheel"),
        ({"qpos_wheel": SWING, "qvel_wheel": np.rad2deg(RATE)}, "qvel/wheel"),
    ],
    ids=["beyond the limits", "too fast", "position against velocity", "velocity against position"],
)
def test_degrees_are_noticed(columns, subject):
    """One sentence names the column and what to write in a mapping file."""
    sentences = said(**columns)
    assert len(sentences) == 1
    assert sentences[0].startswith(subject)
    assert "looks like degrees" in sentences[0]
    assert "unit = 'deg'" in sentences[0]


@pytest.mark.parametrize(
    "columns",
    [
        {"qpos_elbow": 1.9 * SWING},
        {"qpos_elbow": 2.3 * SWING},
        {"qpos_wheel": 60 * TIME},
        {"qpos_wheel": SWING, "qvel_wheel": RATE},
        {"qpos_wheel": SWING, "qvel_wheel": RATE * np.nan},
    ],
    ids=["within limits", "a soft stop", "a wheel", "both in radians", "velocity missing"],
)
def test_radians_are_left_in_peace(columns):
    """Ordinary motion raises no suspicion."""
    assert not [sentence for sentence in said(**columns) if "degrees" in sentence]


def test_another_zero_is_not_taken_for_degrees():
    """An angle within a turn that leaves the range of its joint is told, but not refused as degrees."""
    sentences = said(qpos_elbow=3.2 + SWING)
    assert len(sentences) == 1
    assert "is its zero another" in sentences[0]
    assert "looks like degrees" not in sentences[0]


def test_a_robot_at_rest_is_a_finding():
    """Noise is no motion; a slow motion above the noise is."""
    noise = 1e-3 * np.random.default_rng(0).standard_normal(len(TIME))
    assert "no joint moves" in said(qpos_wheel=noise, qpos_elbow=0.3 + noise)[0]
    assert not said(qpos_wheel=noise, qpos_elbow=0.02 * TIME + noise)
    ticks = np.where(np.arange(len(TIME)) % 7 < 3, 0.0, 0.001)
    assert "no joint moves" in said(qpos_wheel=ticks)[0]


def test_constant_and_empty_channels():
    """A control that never changes is a note, a column without a value a warning."""
    sentences = said(qpos_wheel=SWING, ctrl_drive=0 * TIME + 0.25, qpos_elbow=np.full(len(TIME), np.nan))
    assert sentences == ["qpos/elbow: has no values.", "ctrl/drive: never changes from 0.25."]


def test_clipped_channels():
    """Controls at the actuator's bounds and sensors that stay at an extreme are noted; a square wave is not."""
    sentences = said(ctrl_drive=np.clip(1.5 * SWING, -1, 1), sensor_imu_x=np.clip(RATE, -5, 5))
    assert "ctrl/drive: is at the bound of the actuator in 53 % of the samples." in sentences
    assert any(sentence.startswith("sensor/imu/x: is at its minimum or maximum") for sentence in sentences)
    assert clipped_fraction(np.sign(SWING)) == 0
    assert clipped_fraction(SWING) == 0


def test_stamps_that_are_not_in_seconds():
    """Samples two seconds apart are probably milliseconds."""
    assert "unit = 'ms'" in str(anomalies(Log(np.arange(100) * 2.0, {}), ROBOT)[0])


def test_nothing_poisons_a_check():
    """Missing samples anywhere change no verdict and raise no warning of NumPy's."""
    holes = SWING.copy()
    holes[::3] = np.nan
    assert is_moving(holes)
    assert not said(qpos_elbow=holes)
    assert prepare(Log(TIME, {"qpos/elbow": np.full(len(TIME), np.nan)}), ROBOT).findings


def test_a_unit_that_is_neither_radians_nor_degrees():
    """Encoder counts lie beyond the range in degrees too; commands at their bounds are not told besides."""
    sentences = said(qpos_elbow=2000 * SWING, ctrl_drive=2000 * SWING)
    assert len(sentences) == 1
    assert sentences[0].startswith("qpos/elbow: runs from -2e+03 to 2e+03")
    assert "in which unit" in sentences[0]
