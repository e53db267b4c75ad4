"""The simulator: what a file asks for, steps, rollouts, recordings."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.robots import CONSTRAINED, SMOOTH, robot, start
from truesim.files.robots.compiled import from_compiled
from truesim.physics.constraints.weights import dof_weights
from truesim.physics.simulation import (
    Implicit,
    ImplicitFast,
    ImplicitStiff,
    RungeKutta4,
    SemiImplicitEuler,
    Simulator,
    State,
    record,
    rollout,
)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("", SemiImplicitEuler()),
        ('integrator="RK4"', RungeKutta4()),
        ('integrator="implicit"', Implicit()),
        ('integrator="implicitfast"', ImplicitFast()),
    ],
)
def test_the_file_chooses_the_integrator(option, expected):
    """What an MJCF file asks for is the default, its time step included."""
    text = SMOOTH.replace('<option timestep="0.01"/>', f'<option timestep="0.003" {option}/>')
    simulator = Simulator.of(robot(text))
    assert simulator.integrator == expected
    assert float(simulator.timestep) == 0.003
    assert Simulator.of(robot(text), integrator=ImplicitStiff(), timestep=0.1).integrator == ImplicitStiff()


@pytest.mark.parametrize("flag", ["eulerdamp", "frictionloss", "limit", "constraint", "damper", "spring", "gravity"])
def test_the_file_switches_parts_off(flag):
    """Flags that disable a part of the physics disable it here as in MuJoCo: one step is the same."""
    text = CONSTRAINED.replace('contact="disable"', f'contact="disable" {flag}="disable"')
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.tolerance = 0
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.ctrl = [0.5, 0.2], [0.7, -1.3], [0.3, -0.2]
    simulator = Simulator.of(from_compiled(m, None))
    state = State(jnp.asarray(d.qpos), jnp.asarray(d.qvel), jnp.zeros(()))
    ours, _ = evaluate(lambda s, x, u: s.step(x, u), simulator, state, d.ctrl)
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(ours.v, d.qvel, rtol=1e-12)
    np.testing.assert_allclose(ours.q, d.qpos, rtol=1e-12)


def test_inverse_weights_are_those_of_mujoco():
    """They follow the masses: MuJoCo stores them when it compiles, we compute them when a mass changes."""
    text = """<mujoco><worldbody><body pos="0 0 1" quat="1 .3 0 0"><freejoint/>
      <inertial pos=".1 .2 0" mass="2" diaginertia=".1 .2 .15"/><body pos=".3 0 0"><joint type="ball" armature=".02"/>
      <inertial pos="0 .1 0" mass="1" diaginertia=".1 .1 .15"/><body pos="0 .3 0"><joint axis="1 2 0" ref="30"/>
      <inertial pos="0 0 .1" mass="{mass}" diaginertia=".1 .1 .1"/></body></body></body></worldbody></mujoco>"""
    light, heavy = (mujoco.MjModel.from_xml_string(text.format(mass=mass)) for mass in (1, 3))
    model = from_compiled(light, None)
    changed = dataclasses.replace(model, bodies=dataclasses.replace(model.bodies, mass=np.array([2.0, 1.0, 3.0])))
    np.testing.assert_allclose(evaluate(dof_weights, model), light.dof_invweight0, rtol=1e-10)
    np.testing.assert_allclose(evaluate(dof_weights, changed), heavy.dof_invweight0, rtol=1e-10)


def test_rollout_is_many_steps():
    """The last state and every kept value are those of single steps; checkpointing changes nothing."""
    model = robot(SMOOTH)
    simulator, state = Simulator.of(model), start(model)
    commands = np.random.default_rng(0).normal(size=(4, model.nu))

    def all_ways(simulator, state, commands):
        single, kept = state, []
        for command in commands:
            single, info = simulator.step(single, command)
            kept.append(info.acceleration)
        ways = [
            rollout(simulator, state, commands, keep=lambda s, info: info.acceleration, checkpoint=checkpoint)
            for checkpoint in (True, False)
        ]
        return (single, jnp.stack(kept)), *ways

    (single, kept), *ways = evaluate(all_ways, simulator, state, commands)
    for last, accelerations in ways:
        np.testing.assert_allclose(accelerations, kept, rtol=1e-12)
        np.testing.assert_allclose(last.q, single.q, rtol=1e-13)
        np.testing.assert_allclose(last.time, 0.04, rtol=1e-13)


def test_a_recording_begins_at_the_start():
    """One sample more than steps; the command holds from its sample on; sensors are read at every sample."""
    text = SMOOTH.replace("</actuator>", '</actuator><sensor><jointpos name="angle" joint="a"/></sensor>')
    model = robot(text)
    simulator, state = Simulator.of(model), start(model)
    commands = np.random.default_rng(0).normal(size=(3, model.nu))
    trajectory = evaluate(record, simulator, state, commands)
    np.testing.assert_allclose(trajectory.time, [0, 0.01, 0.02, 0.03], rtol=1e-13)
    np.testing.assert_allclose(trajectory.q[0], state.q, atol=0)
    np.testing.assert_array_equal(trajectory.command[-1], commands[-1])
    np.testing.assert_array_equal(trajectory.sensors["angle"], trajectory.q[:, 0])


def test_one_compilation_serves_all_parameters():
    """Parameters are inputs: another mass, time step or state does not trace again."""
    model = robot(SMOOTH)
    simulator, traces = Simulator.of(model), []

    @jax.jit
    def run(parts):
        traces.append(1)
        return parts

    arrays = jax.tree.map(jnp.asarray, simulator)
    run(arrays)
    heavier = dataclasses.replace(model.bodies, mass=model.bodies.mass * 2)
    run(jax.tree.map(jnp.asarray, Simulator.of(dataclasses.replace(model, bodies=heavier), timestep=0.02)))
    assert len(traces) == 1


def test_robots_without_joints_stand_still():
    """A scene of welded bodies has no degree of freedom, and a step changes nothing but time."""
    model = robot(
        '<mujoco><worldbody><body><geom size=".1"/><body><geom size=".1"/></body></body></worldbody></mujoco>'
    )
    simulator = Simulator.of(model)
    state, info = evaluate(lambda s, x: s.step(x, jnp.zeros(0)), simulator, simulator.initial_state())
    assert state.q.shape == state.v.shape == info.acceleration.shape == (0,)
    assert float(state.time) == 0.002


ONE_JOINT = """
<mujoco><compiler angle="radian"/><option timestep="0.01"><flag contact="disable"/></option><worldbody>
  <body><joint name="a" axis="0 1 0" damping=".3" {joint}/><inertial pos=".1 0 .2" mass="1" diaginertia=".02 .02 .01"/>
</body></worldbody><actuator>{actuator}</actuator></mujoco>"""
UNUSUAL = {
    "constant impedance": ('range="-.1 .1" solimplimit=".5 .9 0 .5 2"', ""),
    "falling impedance": ('range="-.1 .1" solimplimit=".9 .5 .1 .5 2"', ""),
    "linear impedance": ('range="-.1 .1" solimplimit=".5 .9 .1 .5 1"', ""),
    "stiffness and damping": ('range="-.1 .1" solreflimit="-300 -9"', ""),
    "mixed reference": ('range="-.1 .1" solreflimit="-100 1"', ""),
    "unsafe reference": ('range="-.1 .1" solreflimit=".001 1"', ""),
    "sticking": ('frictionloss="30" solimpfriction=".5 .9 0 .5 2"', ""),
    "clipped joint": ('actuatorfrcrange="-1 1"', '<velocity joint="a" kv="30"/>'),
    "clipped force": ("", '<velocity joint="a" kv="30" forcerange="-1 1"/>'),
    "clipped control": ("", '<general joint="a" gaintype="affine" gainprm="1 .2 -8" ctrlrange="-1 1"/>'),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", UNUSUAL)
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_unusual_settings_step_as_in_mujoco(case, integrator):
    """SolveOptions at the edge of what MuJoCo allows mean the same here."""
    joint, actuator = UNUSUAL[case]
    text = ONE_JOINT.format(joint=joint, actuator=actuator).replace("<option", f'<option integrator="{integrator}"')
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.tolerance = 0
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.ctrl = 0.13, 0.7, 3.0
    simulator = Simulator.of(from_compiled(m, None))
    state = State(jnp.asarray(d.qpos), jnp.asarray(d.qvel), jnp.zeros(()))
    ours, _ = evaluate(lambda s, x, u: s.step(x, u), simulator, state, d.ctrl)
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(ours.v, d.qvel, rtol=1e-12)
