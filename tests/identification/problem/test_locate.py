"""Configurations and initial states from sensors of body positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.files.logs import Log, prepare
from truesim.files.robots import loads
from truesim.identification.diagnose.evaluation import evaluate
from truesim.identification.problem.locate import locate, unmeasured
from truesim.physics.simulation import Simulator, State, record
from truesim.physics.simulation.sensors import read_sensors

ARM = loads("""
<mujoco><option timestep="0.005" gravity="9.81 0 0" integrator="RK4"/><worldbody><body name="upper">
  <joint name="upper" axis="0 0 1"/><inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/>
  <site name="middle" pos=".2 0 0"/><body name="lower" pos=".2 0 0"><joint name="lower" axis="0 0 1"/>
  <inertial pos=".1 0 0" mass=".5" diaginertia=".01 .01 .01"/><site name="tip" pos=".15 0 0"/></body></body></worldbody>
  <sensor><framepos name="middle" objtype="site" objname="middle"/><framepos name="tip" objtype="site" objname="tip"/>
  </sensor></mujoco>""")
SAMPLES = 240


@pytest.fixture(scope="module")
def filmed():
    """A swing of more than a turn, and a log of it that a camera in front would make: x and y of both markers."""
    simulator = Simulator.of(ARM)
    start = simulator.initial_state(q=jnp.array([2.5, 0.4]), v=jnp.array([5.0, 9.0]))
    motion = record(simulator, start, jnp.zeros((SAMPLES, 0)))
    q, v = np.asarray(motion.q)[:SAMPLES], np.asarray(motion.v)[:SAMPLES]
    read = jax.jit(jax.vmap(lambda q, v: read_sensors(simulator, State(q, v, jnp.zeros(())), jnp.zeros(0))))(q, v)
    columns = {
        f"sensor/{name}/{axis}": np.asarray(read[name][:, i])
        for name in ("middle", "tip")
        for i, axis in enumerate("xy")
    }
    return q, Log(0.005 * np.arange(SAMPLES), columns, "filmed")


def test_markers_give_angles(filmed):
    """Up to whole turns, at every sample, continuously, and marked as derived."""
    q, log = filmed
    found = locate([prepare(log, ARM)], ARM)[0]
    angles = np.stack([found.columns["qpos/upper"], found.columns["qpos/lower"]], axis=1)
    away = angles - q
    assert np.ptp(q[:, 1]) > 2 * np.pi
    np.testing.assert_allclose(away, np.broadcast_to(2 * np.pi * np.round(away[0] / 2 / np.pi), away.shape), atol=2e-4)
    assert {"qpos/upper", "qvel/lower"} <= found.derived
    assert unmeasured(found, ARM) == [0, 1]


def test_four_frames_are_enough_for_a_forecast(filmed):
    """The initial state is fitted through the simulator, which then forecasts without an error."""
    _, log = filmed
    errors = evaluate(ARM, [log], window=0.5, before=0.015)
    assert set(errors) == {"sensor/middle/x", "sensor/middle/y", "sensor/tip/x", "sensor/tip/y"}
    assert max(error.rmse for error in errors.values()) < 1e-4
