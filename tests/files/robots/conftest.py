"""Small robots, and what several tests ask of a saved file."""

import difflib

import jax
import mujoco
import numpy as np
import pytest

from truesim.files.robots import loads
from truesim.physics.model import paths

ARM = """<?xml version='1.0'?>
<!-- the user's own arm -->
<mujoco model="arm">
  <compiler angle="degree"/>
  <option gravity="0 0 -9.81"/>   <!-- on Earth -->
  <default>
    <joint damping="0.5" armature="0.01"/>
    <default class="stiff"><joint stiffness="3" springref="10"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="upper" pos="0 0 1">
      <inertial pos="0 0 -.2"   mass="2.0" diaginertia="0.02 0.02 0.005"/>
      <joint name='shoulder' axis="0 1 0" range='-90 90' damping = "0.7"/>
      <geom type="capsule" size=".04 .2" pos="0 0 -.2"/>
      <body pos="0 0 -.4" euler="0 0 30" childclass="stiff">
        <joint axis="0 1 0"/>
        <geom type="box" size=".03 .02 .15" pos="0 0 -.15" euler="0 10 0"/><geom size=".05" pos=".01 .02 -.3"/>
        <body name="hand" pos="0 0 -.3">
          <inertial pos="0 .01 -.05" mass=".3" fullinertia="3e-3 2.5e-3 1e-3 1e-4 0 -2e-4"/>
          <joint name="wrist" axis="1 0 0" frictionloss=".02"/>
          <site name="tip" pos="0 0 -.1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="lift" joint="shoulder" gear="5"/>
    <position name="servo" joint="wrist" kp="20" kv="0.4" ctrlrange="-1 1"/>
    <velocity name="spin" joint="wrist" kv="2"/>
    <general name="law" joint="shoulder" gainprm="3" biastype="affine" biasprm="0 -1"/>
  </actuator>
</mujoco>
"""

LEG = """<?xml version="1.0"?>
<robot name="leg">
  <!-- the user's own leg -->
  <link name="hip">
    <inertial>
      <origin xyz="0 0 0.05" rpy="0 0 0"/>
      <mass value="3.0"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>
    </inertial>
  </link>
  <joint name="knee" type="revolute">
    <parent link="hip"/><child link="shin"/>
    <origin xyz="0 0.1 -0.3" rpy="0.1 0.2 0.3"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="0.5" effort="40" velocity="10"/>
    <dynamics damping="0.3" friction="0.1"/>
  </joint>
  <link name="shin">
    <inertial>
      <origin xyz="0 0 -0.15" rpy="0.3 0 0.2"/>
      <mass value='1.20'/>
      <inertia ixx="0.010" ixy="0.001" ixz="0" iyy="0.012" iyz="-0.0005" izz="0.004"/>
    </inertial>
    <collision><origin xyz="0 0 -0.15"/><geometry><cylinder radius="0.03" length="0.3"/></geometry></collision>
  </link>
  <joint name="ankle" type="fixed">
    <origin xyz="0 0 -0.3"/>
    <parent link="shin"/><child link="foot"/>
  </joint>
  <link name="foot"/>
  <joint name="toe" type="continuous">
    <parent link="foot"/><child link="tip"/>
    <origin xyz="0.05 0 0"/>
  </joint>
  <link name="tip">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
</robot>
"""


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def arm():
    """An arm with defaults, degrees, inertia from geoms, unnamed elements and comments."""
    return loads(ARM, path="arm.xml")


@pytest.fixture
def leg():
    """A leg with a rotated inertial frame, a fixed massless link and a continuous joint."""
    return loads(LEG, path="leg.urdf")


def changed(model, values):
    """The model with these values at these paths."""
    for path, value in values.items():
        model = paths.write(model, path, np.asarray(value, dtype=float))
    return model


def diff(old: str, new: str) -> list[str]:
    """Lines taken out (-) and put in (+), line ends included."""
    lines = difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return [line for line in lines if line[0] in "+-"]


def differences(a, b, tolerance=1e-12):
    """Paths at which two models differ by more than `tolerance` of the value's largest entry."""
    return [
        str(path)
        for path in paths.paths(a)
        if np.max(np.abs(paths.read(a, path) - paths.read(b, path)), initial=0.0)
        > tolerance * np.max(np.abs(paths.read(a, path)), initial=0.0)
    ]


def accelerations(model: mujoco.MjModel, seed: int = 0) -> np.ndarray:
    """MuJoCo's own accelerations at a random state, without limits and contact."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data.qpos[:] = data.qpos + 0.5 * rng.standard_normal(model.nq)
    data.qvel[:] = rng.standard_normal(model.nv)
    data.ctrl[:] = 0.5 * rng.standard_normal(model.nu)
    mujoco.mj_forward(model, data)
    return data.qacc.copy()
