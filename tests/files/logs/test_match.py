"""Columns and parts of the robot."""

import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.files.logs import Log, matching, prepare
from truesim.files.logs.match import resembling_column
from truesim.files.robots import loads

ROBOT = loads("""
<mujoco><worldbody><body><joint name="elbow"/><geom size=".1"/></body></worldbody>
<actuator><motor name="drive" joint="elbow"/></actuator><sensor><jointvel name="tacho" joint="elbow"/></sensor>
</mujoco>""")


def log(*names: str) -> Log:
    return Log(np.arange(5) * 0.1, {name: np.arange(5.0) for name in names}, "run.csv")


def test_columns_and_what_they_are():
    """Known columns are explained, others set aside, the rest of the robot listed."""
    found = matching(log("qpos/elbow", "sensor/tacho", "battery"), ROBOT)
    assert found.used == {"qpos/elbow": "position of joint 'elbow'", "sensor/tacho": "sensor 'tacho' (jointvel)"}
    assert found.unused == {"battery": None}
    assert found.absent == ("qvel/elbow", "ctrl/drive")
    found.check("run.csv")


@pytest.mark.parametrize("column", ["qpos/elbw", "qpos/Elbow", "qpos_elbow", "qpos.elbow"])
def test_a_slip_is_answered_with_the_column_that_was_meant(column):
    """The error names both."""
    found = matching(log(column, "ctrl/drive"), ROBOT)
    assert found.unused == {column: "qpos/elbow"}
    with pytest.raises(TruesimError, match=rf"run\.csv has a column '{column}'.*did you mean 'qpos/elbow'"):
        found.check("run.csv")


def test_a_column_that_is_there_already_is_not_suggested():
    """An old copy of a column is no slip."""
    assert matching(log("qpos/elbow", "qpos/elbow2"), ROBOT).unused == {"qpos/elbow2": None}


def test_nothing_in_common():
    """The error shows what both have."""
    with pytest.raises(TruesimError, match=r"No column of run\.csv.*'foo', 'bar'.*'qpos/elbow'"):
        matching(log("foo", "bar"), ROBOT).check("run.csv")


def test_derived_columns_do_not_count_as_recorded():
    """A prepared log matches as the log it came from."""
    assert "qvel/elbow" in matching(prepare(log("qpos/elbow"), ROBOT), ROBOT).absent


def test_a_guess_by_name():
    """A column that names the joint resembles its position, if that is the only one left."""
    assert resembling_column("elbow_deg", ["qpos/elbow"]) == "qpos/elbow"
    assert resembling_column("elbow_deg", ["qpos/elbow", "ctrl/elbow"]) is None
    assert resembling_column("elbows", ["qpos/elbow"]) is None
