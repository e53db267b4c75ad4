"""Files with parts that are not simulated run through the routines, which leave out what the definition leaves out."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.physics.constraints.scenes import simulator_of
from truesim.core.errors import TruesimError
from truesim.physics.routines.from_mujoco import from_mujoco
from truesim.physics.simulation import Simulator, rollout
from truesim.physics.simulation.findings import left_out
from truesim.physics.simulation.table_step import reason_against

HAND = """<mujoco>
  <option density='1.2' viscosity='.01' solver='PGS' noslip_iterations='2' timestep='.004'/>
  <worldbody><geom type='plane' size='2 2 .1'/><site name='high' pos='0 0 1'/>
    <body pos='0 0 .3'><joint name='a' axis='0 1 0' range='-60 60' damping='.02'/>
      <geom type='capsule' size='.02' fromto='0 0 0 .2 0 0'/><site name='tip' pos='.2 0 0'/>
      <body pos='.2 0 0'><joint name='b' axis='0 1 0' damping='.01'/>
        <geom type='capsule' size='.02' fromto='0 0 0 .2 0 0'/></body></body>
    <body pos='.1 0 .1'><freejoint/><geom size='.05'/><site name='rotor'/></body></worldbody>
  <tendon><spatial name='string' limited='true' range='0 .2' stiffness='9'>
    <site site='high'/><site site='tip'/></spatial>
    <fixed name='coupling' limited='true' range='-.2 .2' stiffness='2'>
      <joint joint='a' coef='1'/><joint joint='b' coef='-.5'/></fixed></tendon>
  <equality><tendon tendon1='string'/><tendon tendon1='coupling' polycoef='.1 0 0 0 0'/></equality>
  <actuator><motor site='rotor' gear='0 0 1 0 0 0'/><position tendon='string' kp='3'/>
    <position name='servo' tendon='coupling' kp='5' kv='.1' forcerange='-.3 .3'/>
    <general joint='b' dyntype='filter' dynprm='.1' gainprm='2'/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return simulator_of(HAND)[1]


def test_motion_is_that_of_the_definition(simulator):
    assert simulator.model.nu == 2
    assert reason_against(simulator) is None
    state = simulator.initial_state(v=jnp.ones(8))
    commands = jnp.asarray(np.random.default_rng(0).normal(size=(60, 2)))
    _, routines = rollout(simulator, state, commands)
    _, definition = rollout(simulator, state, commands, backend="xla")
    np.testing.assert_allclose(routines.q, definition.q, rtol=0, atol=1e-11)
    assert np.ptp(routines.q, axis=0).max() > 0.1


def test_values_of_simulated_rows_are_written(simulator):
    """A gain and a tendon's stiffness reach the rows that the file has them in."""
    changed = simulator.replace({"actuators/servo.gain": 9.0, "tendons/coupling.stiffness": 30.0})
    state, commands = simulator.initial_state(), jnp.full((30, 2), 0.05)
    _, routines = rollout(changed, state, commands)
    _, definition = rollout(changed, state, commands, backend="xla")
    np.testing.assert_allclose(routines.q, definition.q, rtol=0, atol=1e-11)
    assert np.abs(rollout(simulator, state, commands)[1].q - routines.q).max() > 1e-4


def test_tables_of_a_whole_file_name_what_is_missing():
    with pytest.raises(TruesimError, match=r"solver mjSOL_PGS; activation dynamics; fluid forces; the no-slip solver"):
        from_mujoco(mujoco.MjModel.from_xml_string(HAND))


def test_what_changes_the_motion_is_named():
    """Nonlinear springs, fused bodies and disabled actuators are told before a simulation."""
    xml = """<mujoco><compiler fusestatic='true'/><option actuatorgroupdisable='2'/><worldbody>
      <geom type='plane' size='2 2 .1'/><body><joint name='a' stiffness='1 2'/><geom size='.1'/></body></worldbody>
      <actuator><motor name='on' joint='a'/><motor name='off' joint='a' group='2'/></actuator></mujoco>"""
    model, _ = simulator_of(xml)
    assert model.actuators.names == ("on",)
    told = " ".join(left_out(model, contact=True))
    for part in ("joint 'a': quadratic and cubic stiffness", "fusestatic", "actuator 'off': its group is disabled"):
        assert part in told
