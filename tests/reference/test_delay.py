"""Delays of commands and of sensors against MuJoCo's own."""

import mujoco
import numpy as np
import pytest

from tests.evaluation import evaluate
from truesim.files.robots.compiled import from_compiled
from truesim.physics.simulation import Simulator, record
from truesim.physics.simulation.measurements import measure

ARM = """<mujoco><option timestep=".0025"/><worldbody><body>
  <joint name="a" axis="0 1 0" damping="4.5" armature=".1"/><inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/>
  <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping="1"/>
    <inertial pos=".1 0 0" mass=".5" diaginertia=".01 .01 .01"/></body></body></worldbody>
  <actuator><position name="a" joint="a" kp="85" kv=".6" delay="{0}" nsample="9" interp="{1}"/>
    <motor name="b" joint="b"/></actuator>
  <sensor><jointpos name="late" joint="a" delay="{0}" nsample="9" interp="{1}"/>
    <jointvel name="now" joint="b"/></sensor>
</mujoco>"""


@pytest.mark.parametrize("case", [(0.0125, "linear"), (0.0113, "linear"), (0.0125, "zoh")], ids=str)
def test_motion_and_readings_are_those_of_mujoco(case):
    """Commands of zero before the start, one actuator delayed and one not, a sensor with and one without delay."""
    m = mujoco.MjModel.from_xml_string(ARM.format(*case))
    d = mujoco.MjData(m)
    model = from_compiled(m, None)
    commands = np.sin(np.arange(200)[:, None] * [0.05, 0.02]) + 0.3
    q, sensors = [], []
    for command in commands:
        d.ctrl = command
        q.append(d.qpos.copy())
        mujoco.mj_step(m, d)
        sensors.append(d.sensordata.copy())
    simulator = Simulator.of(model)
    trajectory = evaluate(record, simulator, simulator.initial_state(), commands)
    np.testing.assert_allclose(trajectory.q[:-1], q, atol=1e-12)
    np.testing.assert_allclose(measure(model, trajectory)[:-1, :2], sensors, atol=1e-12)


def test_other_interpolations_are_listed():
    """Where MuJoCo interpolates otherwise, the file's findings say so."""
    found = [
        str(finding)
        for finding in from_compiled(mujoco.MjModel.from_xml_string(ARM.format(0.01, "cubic")), None).findings
    ]
    assert [text for text in found if "cubic" in text] == [
        "actuator 'a': interpolation 'cubic' of its delay: linear acts instead",
        "sensor 'late': interpolation 'cubic' of its delay: linear acts instead",
    ]
