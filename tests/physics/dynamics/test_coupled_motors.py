import mujoco
import numpy as np
import pytest

import truesim as ts
from truesim.core.errors import TruesimError
from truesim.files.robots import load, loads
from truesim.physics.dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from truesim.physics.model import paths
from truesim.physics.model.tendons import couplings, with_coupling

ARM = """
<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody>
    <body name="a"><joint name="one" axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body name="b" pos="0.3 0 0"><joint name="two" axis="0 0 1"/>
        <geom type="box" size="0.05 0.02 0.03" pos="0.1 0 0"/>
        <body name="c" pos="0.2 0 0"><joint name="three" axis="1 0 0" damping="0.1"/>
          <geom type="box" size="0.05 0.02 0.03" pos="0.05 0.02 0"/></body></body></body>
  </worldbody>
  <tendon><fixed name="motor" armature="0.2" damping="0.3" FRICTION>
    <joint joint="two" coef="1"/><joint joint="three" coef="-1"/></fixed></tendon>
  <actuator><motor name="one" joint="one"/><motor name="two" joint="two"/><motor name="three" joint="three"/></actuator>
</mujoco>
"""
URDF = """<robot name="r"><link name="base"/><link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="b"><inertial>
<origin xyz="0.1 0.02 0"/><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="one" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="10" velocity="3"/></joint><joint name="two" type="revolute"><parent link="a"/>
<child link="b"/><origin xyz="0.3 0 0"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" effort="10" velocity="3"/>
</joint></robot>"""


def test_dynamics_are_those_of_mujoco():
    text = ARM.replace("FRICTION", "")
    model, m = loads(text), mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    data.qpos[:], data.qvel[:], data.ctrl[:] = rng.normal(size=(3, 3))
    mujoco.mj_forward(m, data)
    full = np.zeros((3, 3))
    mujoco.mj_fullM(m, data, full)
    M = np.asarray(mass_matrix(model, data.qpos))
    assert np.abs(M - full).max() < 1e-6
    tau = data.qfrc_passive + data.qfrc_actuator
    a = np.asarray(forward_dynamics(model, data.qpos, data.qvel, tau))
    assert np.abs(a - data.qacc).max() < 1e-4 * np.abs(data.qacc).max()
    assert np.abs(np.asarray(inverse_dynamics(model, data.qpos, data.qvel, a)) - tau).max() < 1e-4


def test_motion_with_friction_is_that_of_mujoco():
    text = ARM.replace("FRICTION", 'frictionloss="0.15"')
    model, m = loads(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    controls = np.tile([0.3, 0.5, -0.2], (300, 1))
    for row in controls:
        data.ctrl[:] = row
        mujoco.mj_step(m, data)
    simulator = ts.Simulator.of(model, contact=None)
    final, _ = ts.rollout(simulator, simulator.initial_state(), controls)
    assert np.abs(np.asarray(final.q) - data.qpos).max() < 1e-6


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_a_motor_is_written_and_read_back(tmp_path, suffix):
    model = with_coupling(loads(URDF, path="robot.urdf"), "motor", {"one": 1.0, "two": 1.0})
    for field, value in (("armature", 0.12345678901), ("damping", 0.5), ("frictionloss", 0.7)):
        model = paths.write(model, f"tendons/motor.{field}", np.asarray(value))
    file = tmp_path / f"robot{suffix}"
    ts.save(model, file)
    again = load(file)
    assert couplings(again) == {"motor": {"one": 1.0, "two": 1.0}}
    for field in ("armature", "damping", "frictionloss"):
        assert paths.read(again, f"tendons/motor.{field}") == paths.read(model, f"tendons/motor.{field}")
    if suffix == ".xml":
        m = mujoco.MjModel.from_xml_path(str(file))
        assert m.tendon_armature[0] == pytest.approx(0.12345678901, rel=1e-5)


def test_an_unknown_joint_is_named():
    with pytest.raises(TruesimError, match="thre"):
        with_coupling(loads(URDF, path="robot.urdf"), "motor", {"one": 1.0, "thre": 1.0})
