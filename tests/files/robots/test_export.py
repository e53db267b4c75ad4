"""A model saves in the other format and moves as before."""

import mujoco
import numpy as np
import pinocchio
import pytest

from tests.files.robots.conftest import LEG, changed, differences
from truesim.core.errors import TruesimError
from truesim.files.robots import load, loads, save
from truesim.physics.dynamics import forward_dynamics

CHAIN = """<mujoco model="chain"><compiler angle="radian"/><worldbody>
  <body name="cart" pos="0 .1 .2" quat="1 .2 0 0">
    <joint name="x" type="slide" axis="1 0 0" range="-2 2" armature=".1"/>
    <joint name="tilt" pos="0 .1 .05" axis="0 1 .2" damping=".3"/>
    <geom type="box" size=".1 .2 .05"/>
    <body name="pole" pos="0 0 .3" euler=".1 .2 .3">
      <joint name="hinge" axis="1 0 0" pos="0 0 -.1" frictionloss=".1" stiffness="2"/>
      <geom type="capsule" size=".03 .2" pos="0 0 .2"/>
      <body name="ball" pos="0 0 .4"><geom size=".06"/></body>
    </body>
  </body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("floating", [False, True])
def test_urdf_saves_as_mjcf(tmp_path, floating):
    """A changed URDF model, saved as MJCF, is the same model number by number, and MuJoCo opens it."""
    model = changed(loads(LEG, path="leg.urdf", floating_base=floating), {"joints/knee.armature": 0.02})
    save(model, tmp_path / "leg.xml")
    back = load(tmp_path / "leg.xml")
    assert back.joints.names == model.joints.names
    assert differences(model, back) == []
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "leg.xml")).joint("knee").armature == 0.02


def test_mjcf_saves_as_urdf(tmp_path):
    """A tree with several joints per body and anchors off the origin accelerates as before, to 1e-12."""
    model = loads(CHAIN, path="chain.xml")
    save(model, tmp_path / "chain.urdf")
    back = load(tmp_path / "chain.urdf")
    assert back.joints.names == model.joints.names
    rng = np.random.default_rng(1)
    q, v, tau = rng.standard_normal((3, model.nv))
    a, b = (np.asarray(forward_dynamics(m, q, v, tau)) for m in (model, back))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.max(np.abs(a)))
    for field in ("armature", "damping", "frictionloss", "stiffness", "range"):
        np.testing.assert_allclose(getattr(back.joints, field), getattr(model.joints, field), rtol=1e-15)


def test_pinocchio_reads_the_same_robot(tmp_path):
    """Pinocchio's accelerations from the exported URDF are MuJoCo's from the MJCF, without what URDF lacks."""
    text = CHAIN
    for extra in ('armature=".1"', 'stiffness="2"', 'damping=".3"'):
        text = text.replace(extra, "")
    save(loads(text, path="chain.xml"), tmp_path / "chain.urdf")
    robot = pinocchio.buildModelFromUrdf(str(tmp_path / "chain.urdf"))
    reference = mujoco.MjModel.from_xml_string(text)
    reference.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(reference)
    rng = np.random.default_rng(1)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = rng.standard_normal((3, 3))
    mujoco.mj_forward(reference, data)
    x, tilt, hinge = data.qpos
    q = np.array([x, np.cos(tilt), np.sin(tilt), np.cos(hinge), np.sin(hinge)])
    a = pinocchio.aba(robot, robot.createData(), q, data.qvel, data.qfrc_applied)
    np.testing.assert_allclose(a, data.qacc, rtol=0, atol=1e-11 * np.max(np.abs(a)))


def test_what_urdf_lacks_is_said(arm, tmp_path):
    """Actuators and sites have no place in URDF: each is listed."""
    said = [str(finding) for finding in save(arm, tmp_path / "arm.urdf")]
    assert "4 x actuator ('lift', 'servo', 'spin', …): URDF has no place for it" in said
    assert "site 'tip': URDF has no place for it" in said


def test_a_ball_joint_is_refused(tmp_path):
    """URDF has no ball joints: one sentence, and no file."""
    model = loads(
        '<mujoco><worldbody><body><joint name="neck" type="ball"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(TruesimError, match=r"^URDF has no ball joints, and joint 'neck' is one"):
        save(model, tmp_path / "ball.urdf")
    assert list(tmp_path.iterdir()) == []
