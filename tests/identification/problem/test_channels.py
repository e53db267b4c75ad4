"""Measured channels and their residuals."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import compiled
from tests.robots import robot, start
from truesim.core.errors import TruesimError
from truesim.files.logs import Log, prepare
from truesim.identification.problem.channels import known_channels, measured_channels, predicted_values, residual
from truesim.physics.model.columns import model_columns
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.sensors import read_encoders, read_sensors

MODEL = robot("""
<mujoco><worldbody>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size=".1"/><site name="imu" pos=".1 0 0"/>
    <body name="rod" pos="0 0 -.4"><joint name="elbow" axis="0 1 0"/><geom size=".1" pos="0 0 -.3"/></body></body>
  <body name="head" pos="1 0 0"><joint name="neck" type="ball"/><geom size=".1" pos="0 0 .2"/></body>
  <body name="drone" pos="0 1 1"><freejoint name="flight"/><geom size=".1"/></body>
</worldbody><actuator><motor name="push" joint="rail"/></actuator><sensor><jointpos name="angle" joint="elbow"/>
  <gyro name="gyro" site="imu"/><framequat name="attitude" objtype="xbody" objname="head"/></sensor></mujoco>""")
TIME = np.arange(40) * 0.005


def log_of(*columns: str) -> Log:
    """A log with these columns."""
    return Log(TIME, {name: np.zeros(len(TIME)) for name in columns})


def names(*columns: str, patterns: tuple[str, ...] = (), **log) -> list[str]:
    """The channels of a log with these columns."""
    held = dataclasses.replace(log_of(*columns), **log)
    return [channel.name for channel in measured_channels(MODEL, [held], patterns)]


def test_positions_and_sensors_count():
    """Velocities beside positions do not, unless asked for: filters made them."""
    columns = ("qpos/elbow", "qvel/elbow", "qvel/rail", "sensor/gyro/x", "sensor/gyro/y", "sensor/gyro/z", "ctrl/push")
    assert names(*columns) == ["qpos/elbow", "qvel/rail", "sensor/gyro"]
    assert names(*columns, patterns=("q*/elbow",)) == ["qpos/elbow", "qvel/elbow"]


def test_what_was_derived_does_not_count():
    """Computed columns are starting points, not measurements."""
    assert names("qpos/elbow", "qvel/rail", derived=frozenset({"qvel/rail"})) == ["qpos/elbow"]
    moving = Log(TIME, {"qpos/elbow": np.sin(TIME)})
    assert [c.name for c in measured_channels(MODEL, [prepare(moving, MODEL)])] == ["qpos/elbow"]


def test_a_part_of_a_vector_counts():
    """Two axes of a gyro are compared by themselves, as a camera sees two coordinates of a marker."""
    logs = [Log(np.arange(3.0), {name: np.zeros(3) for name in ("qpos/elbow", "sensor/gyro/x", "sensor/gyro/y")})]
    found = {channel.name: channel.columns for channel in measured_channels(MODEL, logs)}
    assert found["sensor/gyro"] == ("sensor/gyro/x", "sensor/gyro/y")


def test_wrong_columns_teach():
    """The error lists columns of the log and of the robot."""
    with pytest.raises(TruesimError, match=r"they have angle; the robot has .*qpos/rail.*mapping"):
        names("angle")
    with pytest.raises(TruesimError, match=r"'qpos/elbo'; the logs hold qpos/elbow"):
        names("qpos/elbow", patterns=("qpos/elbo",))


def test_rotations_have_three_rows():
    """Four columns, three rows, and a row that needs all four."""
    by_name = {channel.name: channel for channel in known_channels(MODEL)}
    ball, free = by_name["qpos/neck"], by_name["qpos/flight"]
    assert ball.rows == ("qpos/neck/rx", "qpos/neck/ry", "qpos/neck/rz")
    assert ball.sources() == [[0, 1, 2, 3]] * 3
    assert free.rows[:3] == ("qpos/flight/x", "qpos/flight/y", "qpos/flight/z")
    assert free.sources() == [[0], [1], [2], *[[3, 4, 5, 6]] * 3]
    assert by_name["sensor/attitude"].has_quaternion
    assert not by_name["sensor/gyro"].has_quaternion


@pytest.fixture(scope="module")
def compare():
    """A function from measurements to residuals at one state, and what is measured there."""
    simulator, state, channels = Simulator.of(MODEL), start(MODEL), known_channels(MODEL)

    def both(measured):
        sensors = read_sensors(simulator, state, jnp.zeros(1))
        encoders = read_encoders(MODEL, state.q, state.v)
        measured_values = [*encoders, *(jnp.atleast_1d(sensors[s.name]) for s in MODEL.sensors.declared)]
        return jnp.concatenate(measured_values), residual(channels, simulator, None, state, jnp.zeros(1), measured)

    columns = [column for channel in channels for column in channel.columns]
    run = compiled(both, np.ones(len(columns)))
    return lambda measured: np.asarray(run(measured)[1]), np.asarray(run(np.ones(len(columns)))[0])


def test_a_perfect_measurement_leaves_no_residual(compare):
    """Of every channel that the robot has; either sign of a quaternion is the same rotation."""
    difference, measured = compare
    channels = known_channels(MODEL)
    assert {c for channel in channels for c in channel.columns} == set(model_columns(MODEL)) - {
        f"ctrl/{name}" for name in MODEL.actuators.names
    }
    flipped, at = measured.copy(), 0
    for channel in channels:
        at += len(channel.columns)
        if channel.has_quaternion:
            flipped[at - 4 : at] *= -1
    for values in (measured, flipped):
        np.testing.assert_allclose(difference(values), 0.0, atol=1e-12)


def test_residual_is_prediction_minus_measurement(compare):
    """A measurement that is too large gives a negative residual, and the prediction is their sum."""
    difference, measured = compare
    channels = known_channels(MODEL)
    columns = [column for channel in channels for column in channel.columns]
    rows = [row for channel in channels for row in channel.rows]
    wrong = measured.copy()
    wrong[columns.index("qpos/elbow")] += 0.1
    r = difference(wrong)
    np.testing.assert_allclose(r[rows.index("qpos/elbow")], -0.1, rtol=1e-9)
    predicted = predicted_values(channels, r, wrong)
    np.testing.assert_allclose(predicted[rows.index("qpos/elbow")], measured[columns.index("qpos/elbow")])
