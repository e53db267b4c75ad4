"""The logs of a problem as an objective, on our engine and on MuJoCo."""

import mujoco
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.files.robots.compiled_write import WRITERS, compiled_model
from truesim.identification.diagnose.covariance import uncertainty
from truesim.identification.posterior import gaussian_posterior, laplace, mixture
from truesim.identification.problem.build import ProblemOptions, build
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.search import OpenLoop
from truesim.identification.search.blackbox import diagnose_on_mujoco
from truesim.identification.search.mujoco_engine import MujocoEngine
from truesim.identification.search.open_loop import prior_equations
from truesim.identification.search.run import SearchOptions, search
from truesim.identification.solve.prior import penalty, prior_residuals
from truesim.optimize import BasinHoppingOptions, basin_hopping
from truesim.optimize.cma_es import CmaEsOptions, cma_es
from truesim.physics.model import paths

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
    return build(loads(ROBOT), [recorded()], FREE, ProblemOptions(priors={"bodies/arm.mass": (0.7, 0.5)}))


@pytest.fixture(scope="module")
def objective(problem):
    """Its objective on our engine."""
    return OpenLoop(problem)


def somewhere(objective, count):
    """Candidates around the start."""
    start = objective.space.start
    moved = start + 0.2 * np.abs(np.random.default_rng(3).normal(size=(count, len(start))))
    return np.clip(moved, objective.space.low, objective.space.high)


def test_derivatives_are_those_of_the_cost(objective):
    """Gradients against central differences; costs agree with the equations', whatever the batch."""
    theta = somewhere(objective, 3)
    found = objective.equations(theta)
    np.testing.assert_allclose(objective.costs(theta), found.cost, rtol=1e-10)
    np.testing.assert_array_equal(objective.costs(theta[1:2]), objective.costs(theta)[1:2])
    step = 1e-5
    for k in range(theta.shape[1]):
        nudge = step * np.eye(theta.shape[1])[k]
        gradient = (objective.costs(theta + nudge) - objective.costs(theta - nudge)) / (2 * step)
        np.testing.assert_allclose(found.gradient[:, k], gradient, rtol=2e-4, atol=1e-3 * np.abs(found.gradient).max())
    assert np.all(np.linalg.eigvalsh(found.matrix) > 0)


def test_mujoco_and_our_engine_agree(problem, objective):
    """The same cost of the same candidates, delays, biases and priors included."""
    theta = somewhere(objective, 4)
    theirs = MujocoEngine(problem, threads=2).costs(theta)
    np.testing.assert_allclose(theirs, objective.costs(theta), rtol=1e-5)


def test_the_prior_is_that_of_the_fit(problem):
    """Cost and gradient of every candidate are those of `penalty`; the matrix is that of the prior's residuals."""
    theta = problem.parameters.start + 0.3 * np.random.default_rng(0).normal(size=(5, len(FREE)))
    found = prior_equations(problem, theta)
    for k, one in enumerate(theta):
        cost, gradient = penalty(problem, one)
        _, J = prior_residuals(problem, one)
        np.testing.assert_allclose(found.cost[k], cost, rtol=1e-13)
        np.testing.assert_allclose(found.gradient[k], gradient, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found.matrix[k], J.T @ J, rtol=1e-13, atol=1e-13)


def test_hopping_over_a_problem_finds_the_truth(problem, objective):
    """From starts far away all but a few chains come to the same values, which are the true ones."""
    found = basin_hopping(objective, BasinHoppingOptions(chains=6, solves=6))
    values, _ = problem.values(found.best.theta)
    np.testing.assert_allclose(values[:2], TRUTH[:2], rtol=0.03)
    assert abs(values[3]) < 2e-3
    assert found.basins().count[0] >= 3


def test_cmaes_on_mujoco_gives_a_fit(problem):
    """Values with intervals, errors that fell, a status; the robot of the fit has the values."""
    engine = MujocoEngine(problem, threads=2)
    found = cma_es(engine, CmaEsOptions(solves=600, population=10))
    solution, fit = diagnose_on_mujoco(engine, found, MujocoEngine(problem))
    mass = fit.estimates[0]
    assert mass.low < TRUTH[0] < mass.high
    assert mass.high - mass.low < 0.2
    assert fit.errors["train"]["qpos/hinge"].median < 0.2 * fit.errors["train_start"]["qpos/hinge"].median
    assert fit.errors["held_out"].keys() == fit.errors["train"].keys()
    model = fitted_model(problem, solution.theta)
    np.testing.assert_allclose(paths.read(model, "bodies/arm.mass"), mass.value)
    check_readers_of_a_fit_on_mujoco(solution, fit)


def check_readers_of_a_fit_on_mujoco(solution, fit):
    """The Gaussian posterior works from the covariance of the fit; what needs derivatives is refused."""
    posterior = gaussian_posterior(solution, fit.uncertainty.coordinates)
    np.testing.assert_array_equal(posterior.mean, solution.theta)
    np.testing.assert_array_equal(posterior.covariance, fit.uncertainty.coordinates)
    for reader in (uncertainty, laplace, mixture):
        with pytest.raises(TruesimError, match="simulated by MuJoCo"):
            reader(solution)


TENDON = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody>
  <site name="anchor" pos="0.5 0 -0.2"/><body name="arm">
  <joint name="hinge" axis="0 1 0" damping="0.05"/>
  <site name="end" pos="0 0 -0.4"/>
  <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.001"/></body></worldbody>
  <tendon><spatial name="pull" stiffness="1"><site site="anchor"/><site site="end"/></spatial></tendon>
  <actuator><motor name="motor" tendon="pull"/></actuator></mujoco>"""


def test_mujoco_fits_what_we_do_not_simulate():
    """A motor on a spatial tendon, which our engine leaves out: the mass is found all the same."""
    log = recorded(TENDON)
    problem = build(loads(TENDON), [log], FREE[:2])
    assert problem.simulator.model.nu == 0
    found = cma_es(MujocoEngine(problem, threads=2, logs=[log]), CmaEsOptions(solves=400))
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
        SearchOptions("hoping")
    with pytest.raises(TruesimError, match="no derivatives"):
        SearchOptions("hopping", engine="mujoco")
    with pytest.raises(TruesimError, match="at least one worker"):
        SearchOptions("cmaes", workers="0")


def test_a_plan_is_enough(problem):
    """One call searches; the same seed finds the same."""
    first, second = (search(problem, SearchOptions(seed=2, solves=3)) for _ in range(2))
    np.testing.assert_array_equal(first.best.theta, second.best.theta)
    reached = search(problem, SearchOptions(seed=2, goal=2 * first.best.cost))
    assert reached.solves[-1].cost < 2 * first.best.cost
