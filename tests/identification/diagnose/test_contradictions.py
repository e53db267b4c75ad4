"""Hopeless input: logs that contradict each other or in which nothing changes, and fits worse than their start."""

import mujoco
import numpy as np
import pytest

import truesim as ts
from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code, _worse_than_start

SWING = """<mujoco><option timestep=".002"/><worldbody><body><joint name="a" axis="0 1 0" damping="{damping}"/>
  <inertial pos="0 0 -.3" mass="1" diaginertia=".02 .02 .001"/></body></worldbody>
  <actuator><motor name="a" joint="a"/></actuator></mujoco>"""


def swing(name, damping, seed=0, seconds=4.0):
    """A log of a driven pendulum at 100 Hz."""
    model = mujoco.MjModel.from_xml_string(SWING.format(damping=damping))
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    time = np.arange(0, seconds, 0.01)
    torque, q = 2.0 * np.sin(2 * np.pi * (0.3 + 0.2 * time) * time), []
    for command in torque:
        q.append(data.qpos[0])
        data.ctrl = command
        mujoco.mj_step(model, data, 5)
    return Log(time, {"qpos/a": np.array(q) + 1e-4 * random.normal(size=len(q)), "ctrl/a": torque}, name)


def test_logs_that_fit_alone_but_not_together():
    """The parameter that differs most is named, with its values and their logs."""
    logs = [swing("light.csv", 0.05), swing("stiff.csv", 0.6, seed=1)]
    fit = ts.identify(loads(SWING.format(damping=0.2)), logs, ["joints/*.damping"])
    assert fit.status == "model does not fit"
    (sentence,) = [explain(d) for d in fit.diagnostics if d.code is Code.CONTRADICTORY_LOGS]
    assert "contradict each other" in sentence
    assert "joints/a.damping is 0.05 by light.csv and 0.6 by stiff.csv" in sentence


def test_logs_of_one_robot_do_not_contradict_each_other():
    """Two runs with the same damping converge."""
    logs = [swing("one.csv", 0.3), swing("two.csv", 0.3, seed=1)]
    assert ts.identify(loads(SWING.format(damping=0.2)), logs, ["joints/*.damping"]).status == "converged"


def test_logs_in_which_nothing_changes():
    """Refused before the fit, by name."""
    log = swing("still.csv", 0.3, seconds=1.0)
    still = Log(log.time, {name: np.full(len(x), 0.1) for name, x in log.columns.items()}, "still.csv")
    with pytest.raises(TruesimError, match=r"Nothing changes in still\.csv"):
        ts.identify(loads(SWING.format(damping=0.2)), [still], ["joints/*.damping"])


def test_a_fit_that_ends_worse_than_it_began():
    """The errors of all rows together count, and the worst row is named."""
    start = {"a": Errors(1.0, 1.0, 5), "b": Errors(1.0, 1.0, 5)}
    better = {"a": Errors(2.0, 2.0, 5), "b": Errors(0.1, 0.1, 5)}
    worse = {"a": Errors(2.0, 2.0, 5), "b": Errors(4.0, 4.0, 5)}
    assert _worse_than_start(better, start) == []
    (found,) = _worse_than_start(worse, start)
    assert found.code is Code.WORSE_THAN_START
    assert "b: the error, 4, is 4.0 times" in explain(found)
