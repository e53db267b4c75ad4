"""Every kind of sensor against MuJoCo's readings."""

import dataclasses

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.comparison import relative_error
from tests.evaluation import compiled
from tests.random_trees import random_configuration
from tests.robots import start
from truesim.core.errors import NameUnknownError
from truesim.files.robots.compiled import from_compiled
from truesim.physics.model import paths
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.sensors import SENSOR_MODELS, from_encoders, read_encoders, read_sensors

FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
ORIENTED = ("framequat", "framexaxis", "frameyaxis", "framezaxis")
OBJECTS = {"site": "s", "geom": "g", "xbody": "b", "body": "b"}
REFERENCES = {"site": "r", "xbody": "a", "geom": "floor"}


def _frame_sensors() -> str:
    lines = []
    for kind in FRAMES:
        for objects, name in OBJECTS.items():
            if objects == "body" and kind in ORIENTED:
                continue  # principal axes of inertia: not simulated, and listed as such
            lines.append(f'<{kind} objtype="{objects}" objname="{name}"/>')
            for reference, other in REFERENCES.items():
                lines.append(f'<{kind} objtype="{objects}" objname="{name}" reftype="{reference}" refname="{other}"/>')
    return "".join(lines)


ROBOT = f"""
<mujoco><compiler angle="radian"/><option gravity="1 2 -9"><flag contact="disable"/></option><worldbody>
  <geom name="floor" type="plane" size="1 1 1" pos=".1 .2 -.3" quat="1 .2 .1 0"/>
  <body name="a" pos=".1 .2 .3"><joint name="free" type="free"/><site name="r" pos=".1 .2 .3" quat="1 .3 0 -.5"/>
    <inertial pos=".1 0 0" mass="1" diaginertia=".1 .2 .15"/>
    <body name="b" pos=".3 0 0" quat="1 0 .4 0"><joint name="ball" type="ball" pos=".1 0 .2"/>
      <inertial pos="0 .1 .2" mass="1" fullinertia=".1 .12 .15 .01 .02 .03"/>
      <site name="s" pos="-.1 .3 .2" quat="1 .3 .7 -.5"/>
      <geom name="g" size=".1" pos=".2 .1 0" quat="0 1 1 0" mass="0"/>
      <body pos="0 .3 0"><joint name="hinge" axis="1 2 0" ref=".3" stiffness="4" frictionloss=".3" range="-.5 .5"/>
        <inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/></body></body></body>
</worldbody><actuator><position name="p" joint="hinge" kp="20" kv="1" gear="2"/>
  <motor name="t" joint="ball"/></actuator>
<sensor>
  <jointpos joint="hinge"/><jointvel joint="hinge"/><jointactuatorfrc joint="hinge"/>
  <jointpos joint="hinge" cutoff=".2"/><jointactuatorfrc joint="hinge" cutoff="3"/>
  <ballquat joint="ball"/><ballangvel joint="ball"/><ballangvel joint="ball" cutoff=".5"/>
  <actuatorpos actuator="p"/><actuatorvel actuator="p"/><actuatorfrc actuator="p"/>
  <actuatorfrc actuator="p" cutoff="1"/>
  <velocimeter site="s"/><gyro site="s"/><accelerometer site="s"/><accelerometer site="r" cutoff="5"/>
  {_frame_sensors()}
</sensor></mujoco>"""


@pytest.fixture(scope="module")
def simulator():
    """The robot, simulated."""
    return Simulator.of(from_compiled(mujoco.MjModel.from_xml_string(ROBOT), None))


@pytest.fixture(scope="module")
def ours(simulator):
    """Our readings, compiled for any numbers of the robot."""
    return compiled(read_sensors, simulator, simulator.initial_state(), np.zeros(2))


@pytest.fixture(scope="module")
def readings(simulator, ours):
    """Our readings and MuJoCo's at random states, by sensor."""
    m = mujoco.MjModel.from_xml_string(ROBOT)
    m.opt.tolerance = 0
    pairs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, v, u = random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nu)
        d = mujoco.MjData(m)
        d.qpos, d.qvel, d.ctrl = q, v, u
        mujoco.mj_forward(m, d)
        state = State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))
        pairs.append((ours(simulator, state, u), d.sensordata.copy()))
    return m, simulator.model, pairs


def test_every_supported_kind_is_read(readings):
    """The robot above carries every kind in the table of readers, and none of its sensors is left out."""
    m, model, _ = readings
    assert {sensor.kind for sensor in model.sensors.declared} == set(SENSOR_MODELS)
    assert len(model.sensors.declared) == m.nsensor


@pytest.mark.parametrize("kind", SENSOR_MODELS)
def test_readings_agree_with_mujoco(readings, kind):
    """Readings in every frame, relative to every reference, cut off or not, are MuJoCo's (quaternions up to sign)."""
    m, model, pairs = readings
    for i, sensor in enumerate(model.sensors.declared):
        if sensor.kind != kind:
            continue
        for ours, data in pairs:
            theirs = data[m.sensor_adr[i] : m.sensor_adr[i] + m.sensor_dim[i]]
            mine = np.atleast_1d(ours[sensor.name])
            assert mine.size == len(sensor.channels)
            if kind in ("framequat", "ballquat"):
                theirs = theirs * np.sign(theirs @ mine)
            assert relative_error(mine, theirs) < 1e-10, sensor


def test_bias_and_scale_of_readings(simulator, ours):
    """Each channel reads `scale * truth + bias`, before it is cut off; an orientation has neither."""
    model, state = simulator.model, start(simulator.model)
    changes = {"sensor12/y.bias": 0.3, "sensor12/y.scale": 1.1, "sensor3.bias": 5.0, "qpos/hinge.bias": 0.05}
    for path, value in changes.items():
        model = paths.write(model, f"sensors/{path}", value)
    truth, read = (ours(s, state, np.zeros(2)) for s in (simulator, dataclasses.replace(simulator, model=model)))
    np.testing.assert_allclose(read["sensor12"], np.array(truth["sensor12"]) * [1, 1.1, 1] + [0, 0.3, 0], rtol=1e-14)
    assert read["sensor3"] == 0.2  # its cutoff
    same = [name for name in truth if name not in ("sensor12", "sensor3")]
    assert all(np.array_equal(read[name], truth[name]) for name in same)
    q, v = read_encoders(model, state.q, state.v)
    np.testing.assert_allclose(q, state.q + np.eye(model.nq)[-1] * 0.05, rtol=1e-14)
    np.testing.assert_array_equal(v, state.v)
    np.testing.assert_allclose(from_encoders(model, q, v)[0], state.q, atol=1e-15)
    with pytest.raises(NameUnknownError, match="sensors/qpos/ball/qw"):
        paths.parse(model, "sensors/qpos/ball/qw.bias")


def test_units_of_channels(simulator):
    """Biases are in the unit of what is read."""
    model = simulator.model
    units = {str(path): paths.unit(model, path) for path in paths.paths(model) if path.group == "sensors"}
    assert units["sensors/qpos/hinge.bias"] == "rad"
    assert units["sensors/qvel/free/vx.bias"] == "m/s"
    assert units["sensors/sensor14/x.bias"] == "m/s^2"
    assert units["sensors/sensor10.bias"] == "N m"
    assert units["sensors/qpos/ball/qw.delay"] == "s"
