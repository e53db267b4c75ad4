"""The logs of a problem as an objective, on our engine and on MuJoCo."""

import mujoco
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.data import Log
from truesim.formats import loads
from truesim.formats.compiled_write import WRITERS, compiled_model
from truesim.identify.build import Options, build
from truesim.identify.search import Hopping, OpenLoop, hop
from truesim.identify.search.blackbox import conclude_on_mujoco
from truesim.identify.search.evolution import Evolution, evolve
from truesim.identify.search.mujoco_engine import MujocoEngine
from truesim.identify.search.run import Plan, search
from truesim.model import paths

ROBOT = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="arm">
  <joint name="hinge" axis="0 1 0" damping="0.05"/>
  <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.001"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
FREE = ["bodies/arm.mass", "joints/hinge.damping", "actuators/motor.delay", "sensors/qpos/hinge.bias"]
TRUTH = np.array([0.8, 0.12, 0.0, 0.0])


def recorded(xml=ROBOT, seconds=3.0, name="run", noise=1e-4):
    """A log of an arm that is heavier and rougher than its file says."""
    model = mujoco.MjModel.from_xml_string(xml)
    model.body_mass[1], model.dof_damping[0] = TRUTH[:2]
    data, time = mujoco.MjData(model), np.arange(0, seconds, 0.005)
    command, position = np.sin(3 * time) + 0.5 * np.sin(11 * time), np.empty(len(time))
    for k, value in enumerate(command):
        position[k], data.ctrl[0] = data.qpos[0], value
        mujoco.mj_step(model, data)
    position += noise * np.random.default_rng(0).normal(size=len(time))
    return Log(time, {"qpos/hinge": position, "ctrl/motor": command}, name)


@pytest.fixture(scope="module")
def problem():
    """Mass, damping, delay and bias of the arm."""
    return build(loads(ROBOT), [recorded()], FREE, Options(priors={"bodies/arm.mass": (0.7, 0.5)}))


@pytest.fixture(scope="module")
def objective(problem):
    """Its objective on our engine."""
    return OpenLoop(problem)


def somewhere(objective, count):
    """Candidates around the start."""
    start = objective.box.start
    moved = start + 0.2 * np.abs(np.random.default_rng(3).normal(size=(count, len(start))))
    return np.clip(moved, objective.box.low, objective.box.high)


def test_derivatives_are_those_of_the_cost(objective):
    """Gradients against central differences; costs agree with the equations', whatever the batch."""
    theta = somewhere(objective, 3)
    found = objective.equations(theta)
    np.testing.assert_allclose(objective.costs(theta), found.cost, rtol=1e-10)
    np.testing.assert_array_equal(objective.costs(theta[1:2]), objective.costs(theta)[1:2])
    step = 1e-5
    for k in range(theta.shape[1]):
        nudge = step * np.eye(theta.shape[1])[k]
        slope = (objective.costs(theta + nudge) - objective.costs(theta - nudge)) / (2 * step)
        np.testing.assert_allclose(found.gradient[:, k], slope, rtol=2e-4, atol=1e-3 * np.abs(found.gradient).max())
    assert np.all(np.linalg.eigvalsh(found.matrix) > 0)


def test_mujoco_and_our_engine_agree(problem, objective):
    """The same cost of the same candidates, delays, biases and priors included."""
    theta = somewhere(objective, 4)
    theirs = MujocoEngine(problem, threads=2).costs(theta)
    np.testing.assert_allclose(theirs, objective.costs(theta), rtol=1e-5)


def test_hopping_over_a_problem_finds_the_truth(problem, objective):
    """From starts far away all but a few chains come to the same values, which are the true ones."""
    found = hop(objective, Hopping(chains=6, solves=6))
    values, _ = problem.values(found.best.theta)
    np.testing.assert_allclose(values[:2], TRUTH[:2], rtol=0.03)
    assert abs(values[3]) < 2e-3
    assert found.basins().count[0] >= 3


def test_cmaes_on_mujoco_gives_a_fit(problem):
    """Values with intervals, errors that fell, a verdict; the robot of the fit has the values."""
    engine = MujocoEngine(problem, threads=2)
    found = evolve(engine, Evolution(solves=600, population=10))
    fit = conclude_on_mujoco(engine, found, MujocoEngine(problem))
    mass = fit.estimates[0]
    assert mass.low < TRUTH[0] < mass.high
    assert mass.high - mass.low < 0.2
    assert fit.errors["train"]["qpos/hinge"].median < 0.2 * fit.errors["train_start"]["qpos/hinge"].median
    assert fit.errors["held_out"].keys() == fit.errors["train"].keys()
    np.testing.assert_allclose(paths.read(fit.model, "bodies/arm.mass"), mass.value)


TENDON = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="arm">
  <joint name="hinge" axis="0 1 0" damping="0.05"/>
  <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.001"/></body></worldbody>
  <tendon><fixed name="pull" stiffness="1"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><motor name="motor" tendon="pull"/></actuator></mujoco>"""


def test_mujoco_fits_what_we_do_not_simulate():
    """A motor on a spring tendon, which our engine leaves out: the mass is found all the same."""
    log = recorded(TENDON)
    problem = build(loads(TENDON), [log], FREE[:2])
    assert problem.simulator.model.nu == 0
    found = evolve(MujocoEngine(problem, threads=2, logs=[log]), Evolution(solves=400))
    values, _ = problem.values(found.best.theta)
    np.testing.assert_allclose(values, TRUTH[:2], rtol=0.1)


def test_what_mujoco_has_no_place_for_is_named(problem):
    """Stribeck friction is ours alone."""
    rough = build(loads(ROBOT), [recorded()], ["joints/hinge.stiction"])
    with pytest.raises(TruesimError, match=r"no place for joints/hinge.stiction"):
        MujocoEngine(rough)


def test_written_numbers_are_read_back():
    """Every kind of number that can be written into a compiled model comes back as it was written."""
    model = loads(ROBOT)
    rng = np.random.default_rng(1)
    for path in paths.paths(model):
        if (path.group, path.field) not in WRITERS or path.field in ("axis", "orientation", "range"):
            continue
        old = np.asarray(paths.read(model, path), float)
        new = old * 1.1 + (
            0.0 if path.field in ("inertia", "gain_slope", "bias") else 0.01 * rng.uniform(size=old.shape)
        )
        model = paths.write(model, path, new)
    compiled = compiled_model(model)
    np.testing.assert_allclose(compiled.body_mass[1], model.bodies.mass[0])
    np.testing.assert_allclose(compiled.body_ipos[1], model.bodies.com[0])
    np.testing.assert_allclose(np.sort(compiled.body_inertia[1]), np.sort(model.bodies.inertia[0][:3]))
    np.testing.assert_allclose(compiled.dof_armature[0], model.joints.armature[0])
    np.testing.assert_allclose(compiled.actuator_gainprm[0, 0], model.actuators.gain[0])
    np.testing.assert_allclose(compiled.opt.gravity, model.gravity)


def test_plans_that_cannot_work_are_refused():
    """The message says what would."""
    with pytest.raises(TruesimError, match="did you mean 'hopping'"):
        Plan("hoping")
    with pytest.raises(TruesimError, match="no derivatives"):
        Plan("hopping", engine="mujoco")
    with pytest.raises(TruesimError, match="number of workers"):
        Plan("cmaes", workers="ray")


def test_a_plan_is_enough(problem):
    """One call searches; the same seed finds the same."""
    first, second = (search(problem, Plan(seed=2, solves=3)) for _ in range(2))
    np.testing.assert_array_equal(first.best.theta, second.best.theta)
    reached = search(problem, Plan(seed=2, goal=2 * first.best.cost))
    assert reached.solves[-1].cost < 2 * first.best.cost
