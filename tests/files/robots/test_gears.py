"""Gears that give: flexible joints and backlash as fixed tendons of MJCF."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import truesim as ts
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.files.robots.gears import with_gear
from truesim.physics.model import paths

TEXT = """<mujoco>
  <compiler angle="degree"/>
  <option timestep="0.001"/>
  <worldbody><body name="pole" pos="0 0 1" euler="0 0 20">
    <joint name="hinge" axis="0 1 0" damping="0.05" armature="0.02" frictionloss="0.05"{}/>
    <inertial pos="0 0 -.3" mass="1" diaginertia=".02 .02 .001"/></body></worldbody>
  <actuator><motor name="drive" joint="hinge"/></actuator>
</mujoco>"""
GEAR = ("tendons/hinge_gear.stiffness", "tendons/hinge_gear.damping", "tendons/hinge_gear.spring_length")


def geared(stiffness=60.0, damping=0.1, backlash=0.03, **more):
    return with_gear(loads(TEXT.format("")), "hinge", stiffness=stiffness, damping=damping, backlash=backlash, **more)


def drive(count):
    t = 1e-3 * np.arange(count)
    return t, 1.6 * np.sin(3 * t) + 1.2 * np.sin(11 * t + 1) + 0.8 * np.sin(23 * t)


@pytest.fixture(scope="module")
def motion():
    model, (_, control) = geared(), drive(6000)
    simulator = ts.Simulator.of(model)
    return np.asarray(ts.record(simulator, simulator.initial_state(), jnp.asarray(control)[:, None]).q)


def test_the_written_file_moves_alike_in_mujoco(motion, tmp_path):
    ts.save(geared(), tmp_path / "geared.xml")
    robot = mujoco.MjModel.from_xml_path(str(tmp_path / "geared.xml"))
    data, q = mujoco.MjData(robot), []
    for control in drive(1000)[1]:
        q.append(data.qpos.copy())
        data.ctrl[:] = control
        mujoco.mj_step(robot, data)
    names = [robot.joint(j).name for j in range(robot.njnt)]
    assert names == ["hinge_rotor", "hinge"]
    assert np.allclose(motion[:1000], q, atol=1e-10)
    assert np.ptp(motion[:, 0] - motion[:, 1]) > 0.03


def test_the_rotor_takes_over_what_the_motor_has():
    model = geared()
    assert model.driven(0) == "hinge_rotor"
    assert np.allclose(model.joints.armature, [0.02, 0.0])
    assert np.allclose(model.joints.frictionloss, [0.05, 0.0])
    changed = paths.write(loads(TEXT.format("")), "bodies/pole.mass", np.asarray(1.7))
    kept = with_gear(changed, "hinge", stiffness=60.0)
    assert float(paths.read(kept, "bodies/pole.mass")) == 1.7


@pytest.mark.parametrize("measured", [("hinge", "hinge_rotor"), ("hinge_rotor",)], ids=["both sides", "motor"])
def test_stiffness_and_backlash_are_found(motion, measured, tmp_path):
    (tmp_path / "robot.xml").write_text(TEXT.format(""))
    time, control = (x[::2] for x in drive(6000))
    noise = 1e-4 * np.random.default_rng(0).standard_normal((len(time), 2))
    q = motion[:6000:2] + noise
    columns = {f"qpos/{name}": q[:, ("hinge_rotor", "hinge").index(name)] for name in measured}
    log = ts.Log(time, {**columns, "ctrl/drive": control}, "run")
    gears = {"hinge": {"stiffness": 25.0, "damping": 0.05, "backlash": 0.01}}
    fit = ts.identify(tmp_path / "robot.xml", [log], GEAR, gears=gears)
    assert fit.values[GEAR[0]] == pytest.approx(60.0, rel=0.02)
    assert np.ptp(fit.values[GEAR[2]]) == pytest.approx(0.03, rel=0.05)


def test_mistakes_are_told():
    model = loads(TEXT.format(""))
    with pytest.raises(TruesimError, match="did you mean 'hinge'"):
        with_gear(model, "hinges", stiffness=1.0)
    with pytest.raises(TruesimError, match="positive stiffness"):
        with_gear(model, "hinge")
    bare = loads(TEXT.format("").replace('armature="0.02"', ""))
    with pytest.raises(TruesimError, match="needs inertia"):
        with_gear(bare, "hinge", stiffness=1.0)
    assert float(with_gear(bare, "hinge", stiffness=1.0, armature=0.1).joints.armature[0]) == 0.1
