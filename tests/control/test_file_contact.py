"""Planning with the contact of the robot file: passes by the routines, and predictive control on feet."""

import dataclasses

import mujoco
import numpy as np
import pytest

from tests.control.robots import cart_pole
from truesim.bridges.mujoco import MujocoPlant
from truesim.control import (
    Command,
    Cost,
    JointVelocity,
    PlanOptions,
    Posture,
    PredictiveController,
    SamplingOptions,
    SamplingPlanner,
    SimulatedPlant,
    Task,
    TaskKernels,
    plan,
    run_closed_loop,
)
from truesim.control.planning import prepare
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.physics.contact import MujocoContact
from truesim.physics.simulation import RungeKutta4, Simulator

HOPPER = """<mujoco><compiler angle="radian"/><option timestep="0.01"/><worldbody><geom type="plane" size="5 5 1"/>
  <body name="trunk" pos="0 0 .5"><joint name="z" type="slide" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/>
    <geom type="sphere" size=".05" mass="3" contype="0" conaffinity="0"/>
    <body name="shank"><joint name="leg" type="slide" axis="0 0 -1"/>
      <geom name="foot" type="sphere" size=".05" pos="0 0 -.44" mass=".3"/></body></body></worldbody>
  <actuator><motor name="leg" joint="leg" ctrlrange="-60 60" ctrllimited="true"/>
    <motor name="wheel" joint="pitch" ctrlrange="-5 5" ctrllimited="true"/></actuator></mujoco>"""
"""A trunk on a leg, whose foot overlaps the floor a little."""
TRIPOD = """<mujoco><compiler angle="radian"/><option timestep="0.01" cone="elliptic"/><worldbody>
  <geom type="plane" size="5 5 1"/><body name="trunk" pos="0 0 .3"><freejoint/>
    <geom type="box" size=".2 .2 .05" mass="4" contype="0" conaffinity="0"/>{legs}</body></worldbody>
  <actuator>{motors}</actuator></mujoco>"""
LEG = """<body name="leg{k}" pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0" damping=".2"/>
  <geom type="sphere" size=".03" pos="0 0 -.275" mass=".3" friction="1"/></body>"""
MOTOR = '<motor name="motor{k}" joint="hip{k}" ctrlrange="-30 30" ctrllimited="true"/>'
PLACES = ((0.2, 0.15), (0.2, -0.15), (-0.2, 0.0))


def tripod() -> str:
    """A trunk on three legs that swing forward: it falls over its feet unless it is held."""
    legs = "".join(LEG.format(k=k, x=x, y=y) for k, (x, y) in enumerate(PLACES))
    return TRIPOD.format(legs=legs, motors="".join(MOTOR.format(k=k) for k in range(3)))


def task_of(text: str, steps: int, **changes) -> Task:
    """Standing where the file begins."""
    model = loads(text)
    simulator = Simulator.of(model, contact=MujocoContact.of(model), **changes)
    q = np.asarray(simulator.initial_state().q)
    costs = {
        "posture": Cost(Posture(q), 10.0),
        "velocity": Cost(JointVelocity(), 0.1),
        "effort": Cost(Command(), 1e-3),
        "end": Cost(Posture(q), 20.0, "final"),
    }
    return Task(simulator, steps, costs)


@pytest.fixture(scope="module")
def hopper():
    """A batch of two hoppers a little off their places, with the passes of the routines."""
    task = task_of(HOPPER, 12)
    starts = [task.simulator.initial_state(q=np.array([0.01, a, 0.0]), v=np.array([-0.3, 0.1, 0.2])) for a in (0, 0.1)]
    tasks = [task.replace(start=start) for start in starts]
    batch, _ = prepare(TaskKernels(task), tasks, [None, np.ones((12, 2))], PlanOptions(), False)
    return batch


def test_policies_are_those_of_the_compiled_backward_pass(hopper):
    """The backward pass on NumPy arrays, with commands at their bounds, equals the compiled one."""
    both, compiled = np.arange(2), TaskKernels(task_of(HOPPER, 12))
    ours_kernels, ours = hopper.kernels, hopper.policy(both)
    compiled.routines, hopper.kernels = None, compiled
    try:
        expected = hopper.policy(both)
    finally:
        hopper.kernels = ours_kernels
    for x, y in zip(ours[:3], expected[:3], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * np.abs(y).max())


def test_a_step_closes_its_part_of_the_defects(hopper):
    """A motion with step length a leaves the part 1 - a of every defect; its cost is that of its own terms."""
    both = np.arange(2)
    steps = hopper.policy(both).feedback, hopper.gaps, np.zeros_like(hopper.p)
    found = hopper._forward(both, steps, np.array([1.0, 0.5]))
    for k, left in enumerate((0.0, 0.5)):
        z, u = found.z[:, k], found.u[:, k]
        p, theta = (np.repeat(x[:, None], 12, axis=1) for x in (hopper.p, hopper.theta))
        gaps = hopper.kernels.expand(z[:, :-1], u, z[:, 1:], p, theta, hopper.rows[:, :-1])[1]
        np.testing.assert_allclose(gaps, left * hopper.gaps, atol=1e-9)
    costs = hopper.kernels.values(False, z[:, :-1], u, p, theta, hopper.rows[:, :-1]).costs.sum((1, 2))
    end = hopper.kernels.values(True, z[:, -1], u[:, -1], hopper.p, hopper.theta, hopper.rows[:, -1]).costs.sum(1)
    np.testing.assert_allclose(found.cost[:, 1], costs + end, rtol=1e-12)
    assert np.abs(hopper.gaps).max() > 1e-3


def test_expansions_are_derivatives_on_the_tangent_space():
    """With a free joint on three feet, A and B agree with central differences of the step."""
    task = task_of(tripod(), 2)
    kernels = TaskKernels(task)
    f = kernels.functions
    batch, _ = prepare(kernels, [task], [np.full((2, 3), 0.3)], PlanOptions(), False)
    z, u = batch.z[0, 1], batch.u[0, 1]
    e = f.unpack(batch.expansion[0, 1])
    eps = 1e-6
    changes = np.concatenate([np.eye(f.nx), -np.eye(f.nx)]) * eps
    zs = np.concatenate([kernels.moved(z, changes), np.tile(z, (2 * f.nu, 1))])
    us = np.concatenate([np.tile(u, (2 * f.nx, 1)), u + eps * np.eye(f.nu), u - eps * np.eye(f.nu)])
    arrived = kernels.expand(z, u, z, np.zeros(0), batch.theta[0], batch.rows[0, 0])[1]
    after = kernels.expand(zs, us, np.tile(z, (len(zs), 1)), np.zeros(0), batch.theta[0], batch.rows[0, 0])[1]
    assert arrived.shape == (f.nx,)
    n = f.nx
    A = (after[:n] - after[n : 2 * n]).T / (2 * eps)
    B = (after[2 * n : 2 * n + f.nu] - after[2 * n + f.nu :]).T / (2 * eps)
    np.testing.assert_allclose(e.A, A, atol=2e-4 * np.abs(A).max())
    np.testing.assert_allclose(e.B, B, atol=2e-4 * np.abs(B).max())


def test_a_push_is_answered_with_delayed_actuators():
    """In MuJoCo, with actuators that act 20 ms late, the trunk comes back over its feet after a push."""
    task = task_of(tripod(), 30, max_delay=0.02)
    task = task.replace(simulator=task.simulator.replace({"actuators/*.delay": 0.02}))
    controller = PredictiveController(task)
    model = mujoco.MjModel.from_xml_string(tripod())
    loops = []
    for control in (controller, lambda q, v, now: np.zeros(3)):
        data = mujoco.MjData(model)
        data.qvel[0] = 0.4
        loops.append(run_closed_loop(control, MujocoPlant(model, data, delay=0.02), 100))
    assert np.abs(loops[0].q[-1] - loops[0].q[0]).max() < 0.1
    assert loops[1].q[-1, 2] < 0.2  # without commands it falls
    assert controller.report.iterations == 1


def test_inputs_change_without_compiling():
    """A mass that changes gives the expansions of a controller that was made with it."""
    task, path = task_of(HOPPER, 5), "bodies/trunk.mass"
    heavy = task.replace(simulator=task.simulator.replace({path: 5.0}))
    options = PlanOptions()
    given, _ = prepare(TaskKernels(task, (path,)), [task, heavy], [None, None], options, False)
    alone, _ = prepare(TaskKernels(heavy), [heavy], [None], options, False)
    np.testing.assert_allclose(given.expansion[1], alone.expansion[0], rtol=1e-9, atol=1e-12)
    assert np.abs(given.expansion[0] - given.expansion[1]).max() > 1e-4


def test_planners_agree_about_costs():
    """The sampling planner and the optimization have one cost, and the latter finds the lower one."""
    task = task_of(HOPPER, 12)
    task = task.replace(start=task.simulator.initial_state(q=np.array([0.05, 0.1, 0.0])))
    found = plan(task)
    planner = SamplingPlanner(task, SamplingOptions(samples=32, rounds=4, nodes=4))
    sampled = planner.plan()
    assert found.cost < sampled.cost
    np.testing.assert_allclose(
        planner.kernels.cost(planner._flat(task.initial_state()), found.commands[None], planner._numbers),
        found.cost,
        rtol=1e-6,
    )


def test_a_simulated_plant_has_the_files_contact_and_delays():
    """A plant with the file's contact moves as MuJoCo does, its commands one step late."""
    simulator = task_of(HOPPER, 1, max_delay=0.01).simulator.replace({"actuators/*.delay": 0.01})
    commands = np.random.default_rng(0).uniform(-20, 20, (20, 2))
    model = mujoco.MjModel.from_xml_string(HOPPER)
    loops = [
        run_closed_loop(lambda q, v, now: commands[round(now / 0.01)], plant, 20)
        for plant in (SimulatedPlant(simulator), MujocoPlant(model, delay=0.01))
    ]
    np.testing.assert_allclose(loops[0].q, loops[1].q, atol=1e-9)


def test_what_cannot_be_planned_is_said():
    """Designed numbers, delays in a plan and foreign integrators are refused with the file's contact."""
    task = task_of(HOPPER, 5)
    other = dataclasses.replace(task.simulator, integrator=RungeKutta4())
    late = task_of(HOPPER, 5, max_delay=0.02)
    for refused, words in (
        (task.replace(simulator=other), "not possible here: the integrator is not the file's"),
        (task.replace(design={"bodies/trunk.mass": (1.0, 2.0)}), "bodies/trunk.mass is designed with the motion"),
        (late, "commands are delayed. PredictiveController plans without"),
    ):
        with pytest.raises(TruesimError, match=words):
            TaskKernels(refused)
    assert TaskKernels(cart_pole()).routines is None
