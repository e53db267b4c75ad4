"""Gains of servos by name: one number for gain and bias."""

import jax
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.files.robots import load, loads, save
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_servo
from truesim.physics.model.targets import expand
from truesim.physics.parameters import free
from truesim.physics.simulation import Simulator

ROBOT = """<mujoco><worldbody><body><joint name="a" type="hinge" axis="0 1 0"/><geom size="0.1" mass="1"/>
  <body pos="0 0 0.3"><joint name="b" type="hinge" axis="0 1 0"/><geom size="0.1" mass="1"/></body></body></worldbody>
  <actuator><position name="p" joint="a" kp="20" kv="3"/><velocity name="v" joint="a" kv="4"/>
  <motor name="m" joint="b"/></actuator></mujoco>"""


def test_a_gain_is_one_number():
    """Writing kp or kv keeps gain and bias consistent."""
    model = paths.write(loads(ROBOT), "actuators/p.kp", 50.0)
    model = paths.write(model, "actuators/v.kv", 7.0)
    model = paths.write(model, "actuators/p.kv", 2.0)
    np.testing.assert_array_equal(model.actuators.gain, [50, 7, 1])
    np.testing.assert_array_equal(model.actuators.bias[:2], [[0, -50, -2], [0, 0, -7]])
    assert paths.read(model, "actuators/p.kp") == 50
    assert paths.unit(model, paths.parse(model, "actuators/p.kv")) == "N m s/rad"


def test_patterns_find_servos_only():
    """A motor has no gains; asking for them says how to make it a servo."""
    model = loads(ROBOT)
    assert [str(t) for t in expand(model, "actuators/*.kp")] == ["actuators/p.kp"]
    assert [p.name for p in free(model, ["actuators/*.kv"])] == ["actuators/p.kv", "actuators/v.kv"]
    assert "actuators/p.kp" not in [str(t) for t in expand(model, "actuators/p.*")]
    with pytest.raises(TruesimError, match="is a motor"):
        paths.parse(model, "actuators/m.kp")


def test_gains_are_written_into_the_file(tmp_path):
    """As the file's own attribute, and read back."""
    assert save(paths.write(loads(ROBOT), "actuators/p.kp", 50.0), tmp_path / "r.xml") == ()
    assert 'kp="50"' in (tmp_path / "r.xml").read_text()


def test_gains_have_derivatives():
    """Simulator.replace takes them inside grad."""
    simulator = Simulator.of(loads(ROBOT))
    gradient = jax.grad(lambda k: simulator.replace({"actuators/p.kp": k}).model.actuators.bias[0, 1])(3.0)
    assert gradient == -1.0


def test_a_motor_becomes_a_servo(tmp_path):
    """By numbers alone: the robot file's sidecar keeps them."""
    urdf = (
        '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>'
        '<joint name="a" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="2" effort="3" velocity="5"/></joint></robot>'
    )
    (tmp_path / "r.urdf").write_text(urdf)
    model = with_servo(load(tmp_path / "r.urdf"), "joints/*", kp=50.0, kv=2.0)
    assert paths.read(model, "actuators/a.kp") == 50
    np.testing.assert_array_equal(model.actuators.control_range[0], [-1, 2])
    save(model, tmp_path / "s.urdf")
    assert paths.read(load(tmp_path / "s.urdf"), "actuators/a.kv") == 2
    with pytest.raises(TruesimError, match="no gain"):
        with_servo(model, "joints/*")
    with pytest.raises(TruesimError, match="joints/elbow"):
        with_servo(model, "joints/elbow", kp=1.0)
