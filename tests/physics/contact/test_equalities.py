"""Welds and coupled joints: closed at every step, and moving as in MuJoCo."""

import jax
import mujoco
import numpy as np
import pytest

from tests.physics.contact.scenes import Runner, rigid, scene
from truesim.physics.contact.closure import closure

STEPS = 200
STIFF = 'solref=".002 1" solimp=".9999 .9999 .001"'
COUPLED = f"""<mujoco><option timestep=".001"/><default><geom contype="0" conaffinity="0" mass="1"/></default>
  <worldbody>
  <body name="a" pos="0 0 1"><joint name="a" axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body>
  <body name="b" pos="1 0 1"><joint name="b" axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .4 0 0"/></body>
  <body name="tip" pos=".3 0 1"><freejoint/><geom type="box" size=".05 .04 .03"/></body></worldbody>
  <equality><joint joint1="b" joint2="a" polycoef="0 .5 .2 0 0" {STIFF}/>
    <weld body1="a" body2="tip" {STIFF}/></equality>
  </mujoco>"""


@pytest.fixture(scope="module")
def motion():
    """The scene in MuJoCo and ours."""
    m = mujoco.MjModel.from_xml_string(COUPLED)
    data = mujoco.MjData(m)
    for _ in range(STEPS):
        mujoco.mj_step(m, data)
    return Runner(rigid(scene(COUPLED)), STEPS)(), data


def test_welds_and_couplings_stay_closed(motion):
    """To 1e-9 m and rad after every step, while the joints turn by more than half a radian."""
    (q, _, report), _ = motion
    model = scene(COUPLED)
    opened = jax.jit(jax.vmap(lambda x: closure(model, x).violation))(q)
    assert opened.shape[1] == 7
    assert np.max(np.abs(opened)) < 1e-9
    assert np.ptp(q[:, 0]) > 0.5
    assert np.all(report.converged)


def test_they_move_as_in_mujoco(motion):
    """MuJoCo's constraints give a little; after 0.2 s the motion is the same to a millimetre and a milliradian."""
    (q, _, _), data = motion
    np.testing.assert_allclose(q[-1], data.qpos, atol=1e-3)
    np.testing.assert_allclose(q[-1, 1], 0.5 * q[-1, 0] + 0.2 * q[-1, 0] ** 2, atol=1e-9)
