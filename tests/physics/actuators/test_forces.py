"""Forces of actuators and springs against MuJoCo's."""

import mujoco
import numpy as np
import pytest

from tests.comparison import assert_fields_agree
from tests.evaluation import compiled
from tests.random_trees import random_configuration
from truesim.files.robots.compiled import from_compiled
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.model import paths
from truesim.physics.simulation.passive import damping_forces, spring_forces

ROBOT = """
<mujoco><compiler angle="radian"/><option><flag constraint="disable" {flags}/></option><worldbody>
  <body pos=".1 .2 .3" quat="1 .5 -.2 .3"><joint name="free" type="free" stiffness="3" damping=".4"/>
    <inertial pos=".1 0 0" mass="1" diaginertia=".1 .2 .15"/>
    <body pos=".3 0 0" quat="1 0 .4 0"><joint name="ball" type="ball" stiffness="2" damping=".3"/>
      <inertial pos="0 .1 0" mass="1" diaginertia=".1 .1 .15"/>
      <body pos="0 .3 0"><joint name="hinge" axis="1 2 0" ref=".3" stiffness="4" springref="-.2" damping=".5"
          actuatorfrcrange="-2 1.5" actuatorfrclimited="{limited}"/>
        <joint name="slide" type="slide" axis="0 1 1" ref="-.1" stiffness="5" springref=".3" damping=".6"/>
        <inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/></body></body></body>
</worldbody><actuator>
  <motor joint="hinge" gear="3" ctrlrange="-.5 .5"/>
  <motor joint="slide" gear="-2"/>
  <position joint="hinge" kp="20" kv="2" gear="1.5"/>
  <position joint="slide" kp="20" dampratio="1" ctrlrange="-.3 .4"/>
  <velocity joint="slide" kv="3" gear=".5"/>
  <general joint="hinge" gaintype="affine" gainprm="2 .5 -.3" biastype="affine" biasprm=".1 -8 -2" forcerange="-1 2"/>
  <general joint="slide" gainprm="2" forcerange="-.4 .3" forcelimited="{limited}"/>
  <motor joint="ball" gear="1 -2 .5"/>
  <motor jointinparent="ball" gear="1 -2 .5"/>
  <position joint="ball" kp="3" gear=".2 1 -.4"/>
  <position jointinparent="ball" kp="3" gear=".2 1 -.4"/>
  <general joint="ball" gear=".2 1 -.4" gainprm="3" biastype="affine" biasprm="0 -2 -1"/>
  <motor joint="free" gear="1 2 3 -1 .5 .2"/>
  <motor jointinparent="free" gear="1 2 3 -1 .5 .2"/>
  <velocity joint="free" kv="2" gear="0 1 0 0 0 2"/>
</actuator></mujoco>"""
ROUNDING = 1e-12


@pytest.mark.parametrize("flags", ["", 'clampctrl="disable"', 'actuation="disable"', 'spring="disable"'])
@pytest.mark.parametrize("limited", ["true", "false"])
def test_forces_agree_with_mujoco(flags, limited):
    """Length, velocity and force of every kind of actuator on every kind of joint, and springs, are MuJoCo's."""
    m = mujoco.MjModel.from_xml_string(ROBOT.format(flags=flags, limited=limited))
    model = from_compiled(m, None)
    assert model.nu == m.nu
    ours = None
    for seed in range(10):
        rng = np.random.default_rng(seed)
        inputs = (random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nu) * 2)
        ours = ours or compiled(fields, model, *inputs)
        d = mujoco.MjData(m)
        d.qpos, d.qvel, d.ctrl = inputs
        mujoco.mj_forward(m, d)
        theirs = {
            "length": d.actuator_length,
            "velocity": d.actuator_velocity,
            "force": d.actuator_force,
            "generalized": d.qfrc_actuator,
            "springs": d.qfrc_spring,
            "dampers": d.qfrc_damper,
        }
        found = dict(ours(model, *inputs))
        if "actuation" in flags:  # MuJoCo does not compute what it then does not need
            del found["velocity"], theirs["velocity"]
        assert_fields_agree(found, theirs, ROUNDING)


def fields(model, q, v, command):
    """Ours."""
    springs = {"springs": spring_forces(model, q), "dampers": damping_forces(model, v)}
    return {**actuator_forces(model, q, v, command)._asdict(), **springs}


def test_a_robot_without_actuators():
    """No actuator, no force."""
    model = from_compiled(
        mujoco.MjModel.from_xml_string(
            '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'
        ),
        None,
    )
    forces = actuator_forces(model, np.zeros(1), np.zeros(1), np.zeros(0))
    assert forces.force.shape == (0,)
    np.testing.assert_array_equal(forces.generalized, [0.0])


def test_offset_is_added_to_the_bounded_control():
    """`gain * (clip(control) + offset)`: the offset is of the drive, not of the command."""
    text = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody><actuator>
      <motor name="m" joint="a" gear="3" ctrlrange="-.5 .5"/></actuator></mujoco>"""
    model = paths.write(from_compiled(mujoco.MjModel.from_xml_string(text), None), "actuators/m.offset", 0.2)
    assert float(actuator_forces(model, np.zeros(1), np.zeros(1), np.array([2.0])).force[0]) == 0.7
