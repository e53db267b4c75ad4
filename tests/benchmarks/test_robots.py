"""The peers simulate the same robot as we do."""

import mujoco
import numpy as np
import pytest

from benchmarks.robots import serial_arm_xml


def accelerations():
    """A random state of the arm, without damping, and MuJoCo's acceleration in it."""
    model = mujoco.MjModel.from_xml_string(serial_arm_xml())
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = np.random.default_rng(0).normal(size=(3, 7))
    mujoco.mj_forward(model, data)
    return model, data


def test_pinocchio_has_the_same_arm():
    """Pinocchio's acceleration is MuJoCo's; damping, which Pinocchio leaves to its caller, is part of the torque."""
    pinocchio = pytest.importorskip("pinocchio")
    from benchmarks.peers.pinocchio import serial_arm

    model, data = accelerations()
    arm = serial_arm(7)
    torque = data.ctrl - model.dof_damping * data.qvel
    got = pinocchio.aba(arm, arm.createData(), data.qpos, data.qvel, torque)
    np.testing.assert_allclose(got, data.qacc, rtol=1e-9)


def test_pytinydiffsim_has_the_same_arm():
    """So is pytinydiffsim's."""
    tds = pytest.importorskip("pytinydiffsim")
    from benchmarks.peers.tinydiffsim import serial_arm

    _, data = accelerations()
    arm = serial_arm()
    for i in range(7):
        arm.q[i], arm.qd[i], arm.tau[i] = data.qpos[i], data.qvel[i], data.ctrl[i]
    tds.forward_dynamics(arm, tds.Vector3(0, 0, -9.81))
    np.testing.assert_allclose([arm.qdd[i] for i in range(7)], data.qacc, rtol=1e-9)
