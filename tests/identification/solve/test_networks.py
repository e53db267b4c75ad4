"""Networks within the physics: trained with the parameters, validation on other logs, kept in the folder of a fit."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.neural_damping.__main__ import ROBOT, TRUTH, fit, recorded, weights
from truesim.core.errors import TruesimError
from truesim.files.robots import load, loads
from truesim.identification.diagnose.evaluation import evaluate
from truesim.identification.diagnose.network_effects import effects, errors_without_networks
from truesim.identification.fit import Fit
from truesim.identification.fit_folder import networks_in, read_document, robot_file, values_in
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.segments import Nodes
from truesim.identification.solve.normal_equations import point
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.stages import solve_problem
from truesim.physics.blueprint import GRU, MLP, Blueprint, Rule, Trained, read_networks, write_networks
from truesim.physics.simulation import Simulator

FRICTION = Rule("joint.friction_torque", ("joint.velocity",), MLP((3,)), name="friction")


@pytest.fixture(scope="module")
def log():
    """Noisy angles of a damped double pendulum."""
    return recorded(1e-3)


@pytest.fixture(scope="module")
def undamped():
    """The robot without its damping."""
    return loads(ROBOT.format(shoulder=0, elbow=0))


def test_two_weights_are_the_damping(log):
    """To a thousandth, from noisy angles alone, and the intervals know it."""
    found = fit(log)
    truth = -np.array(list(TRUTH.values()))
    np.testing.assert_allclose(weights(found), truth, atol=1e-3)
    std = np.sqrt(np.diag(found.uncertainty.values))
    assert np.all(np.abs(weights(found) - truth) < 4 * std)
    assert found.status == "converged"


@pytest.fixture(scope="module")
def hybrid(undamped, log):
    """A fit of a mass and of a network in the place of damping."""
    heavier = dataclasses.replace(undamped, bodies=dataclasses.replace(undamped.bodies, mass=np.array([1.0, 1.3])))
    problem = build(heavier, [log], ["bodies/lower.mass"], ProblemOptions(blueprint=Blueprint((FRICTION,))))
    return Fit.of(solve_problem(problem, SolveOptions(iterations=20)))


def test_physics_and_weights_are_found_together(hybrid):
    """The mass comes out right, since friction is learned beside it; the motion is met as well as encoders allow."""
    (mass,) = hybrid.estimates
    np.testing.assert_allclose(mass.value, 1.0, atol=5e-3)
    before, after = (max(e.median for e in hybrid.errors[part].values()) for part in ("train_start", "train"))
    assert after < 0.2 * before


def test_what_physics_explains_is_not_learned(log):
    """With damping free as well as a network, on a robot that is damped, the network stays silent."""
    free = ["joints/shoulder.damping", "joints/elbow.damping"]
    problem = build(
        loads(ROBOT.format(shoulder=0.5, elbow=0.02)), [log], free, ProblemOptions(blueprint=Blueprint((FRICTION,)))
    )
    solution = solve_problem(problem, SolveOptions(iterations=20))
    values, _ = problem.values(solution.theta)
    np.testing.assert_allclose(values[:2], [0.2, 0.1], atol=0.01)
    simulator = problem.simulator_at(solution.theta)
    torques = jax.vmap(simulator.learned.networks[0].net)(np.linspace(-5, 5, 11)[:, None])
    assert np.abs(torques).max() < 0.02


def test_the_folder_of_a_fit_holds_its_networks(hybrid, log, tmp_path):
    """Read back, they predict the same; nothing in the files is code."""
    hybrid.save(tmp_path)
    document = read_document(tmp_path)
    assert [p["path"] for p in document["parameters"]] == ["bodies/lower.mass"]
    assert [(n["name"], n["weights"]) for n in document["networks"]] == [("friction", 10)]
    assert document["correlations"]["names"] == ["bodies/lower.mass"]
    networks = networks_in(tmp_path)
    again = evaluate(load(robot_file(tmp_path)), [log], options=ProblemOptions(blueprint=networks))
    for row, errors in hybrid.errors["train"].items():
        np.testing.assert_allclose(again[row].rmse, errors.rmse, rtol=1e-6)
    values = values_in(tmp_path, document)
    np.testing.assert_array_equal(values["networks/friction"], hybrid.solution.theta[1:])


def test_networks_of_another_robot_are_refused(undamped, tmp_path):
    """And so are files that no blueprint can be read from."""
    each = Blueprint((dataclasses.replace(FRICTION, sharing="each"),))
    with pytest.raises(TruesimError, match="trained with 10 weights and has 20"):
        Simulator.of(undamped, blueprint=Trained(each, {"friction": np.zeros(10)}))
    own = Blueprint((dataclasses.replace(FRICTION, network=jax.tree_util.Partial(np.negative)),))
    write_networks(Trained(own, {"friction": np.zeros(0)}), tmp_path)
    with pytest.raises(TruesimError, match="networks of the class Partial: give their blueprint"):
        read_networks(tmp_path)
    assert read_networks(tmp_path, own).blueprint == own
    (tmp_path / "networks.npz").write_bytes(b"")
    with pytest.raises(TruesimError, match="cannot be read"):
        read_networks(tmp_path, own)


@pytest.fixture(scope="module")
def problem(undamped, log):
    """A network in the place of damping, and nothing else."""
    return build(undamped, [log], [], ProblemOptions(blueprint=Blueprint((FRICTION,))))


def test_training_ends_when_other_logs_gain_no_more(problem):
    """The coordinates that did best there are kept, however much the fit itself went on to improve."""
    seen = []

    def validation_loss(theta):
        seen.append(theta)
        return abs(len(seen) - 3)

    stages = 5
    solution = solve_problem(problem, SolveOptions(patience=4, horizons=(0.1,)), validation_loss=validation_loss)
    assert 3 + 5 < len(seen) <= 3 + 5 * stages
    np.testing.assert_array_equal(solution.theta, seen[2])


def test_horizons_grow(problem):
    """A curriculum of windows ends with the longest."""
    solution = solve_problem(problem, SolveOptions(horizons=(0.1, 0.5), iterations=3))
    np.testing.assert_allclose(solution.window_seconds, 0.5, rtol=0.1)
    with pytest.raises(TruesimError, match="must be positive"):
        SolveOptions(horizons=(0.1, 0.0))


def test_derivatives_know_what_networks_remember(log):
    """By central differences of weights and initial states, with a recurrent network and a value of the step before."""
    gru = Rule("joint.torque", ("joint.velocity",), GRU(2, seed=1), mode="residual", name="gru")
    late = Rule("joint.friction_torque", ("previous joint.torque",), MLP((2,)), name="late")
    cheaper = loads(ROBOT.format(shoulder=0, elbow=0).replace("RK4", "implicitfast"))
    problem = build(cheaper, [log], [], ProblemOptions(blueprint=Blueprint((gru, late))))
    theta = problem.parameters.start + 0.3 * np.random.default_rng(0).normal(size=problem.parameters.size)
    nodes = problem.initial_nodes()
    at = point(problem, theta, nodes)
    assert at.simulated.memory.shape[1] == 2 + 4
    epsilon = 1e-5
    for k in (0, 5, len(theta) - 1):
        step = epsilon * np.eye(len(theta))[k]
        ends = [problem.differentiate(theta + sign * step, nodes)[0] for sign in (1, -1)]
        difference = (ends[0].residual - ends[1].residual) / (2 * epsilon)
        np.testing.assert_allclose(at.sensitivity.residual[..., k], difference, rtol=1e-5, atol=1e-9)
    moved = [Nodes(nodes.q, nodes.v + sign * epsilon * np.array([1.0, 0.0])) for sign in (1, -1)]
    ends = [problem.differentiate(theta, n)[0] for n in moved]
    difference = (ends[0].residual - ends[1].residual) / (2 * epsilon)
    np.testing.assert_allclose(at.sensitivity.residual[..., len(theta) + 2], difference, rtol=1e-5, atol=1e-9)


def test_the_effect_of_a_network_is_measured_along_the_logs(hybrid):
    """Friction that the model does not have: the curve falls, and errors, noise of 1 mrad included, grow without it."""
    found = effects(hybrid.problem, hybrid.solution.theta)["friction"]
    assert (found.term, found.unit, found.input, found.input_unit) == (0.0, "N m", "joint.velocity", "rad/s")
    assert set(found.curves) == {"shoulder", "elbow"}
    x, y = np.array(found.x), np.array(found.curves["elbow"])
    inside = (x > 0.3 * found.seen[0]) & (x < 0.3 * found.seen[1])
    assert -0.3 < np.polyfit(x[inside], y[inside], 1)[0] < -0.05
    assert x[0] < found.seen[0] < found.seen[1] < x[-1]
    velocity, torque = np.array(found.points).T
    np.testing.assert_allclose(torque, np.interp(velocity, x, y), atol=0.02 * np.abs(y).max())
    without = errors_without_networks(hybrid.problem, hybrid.solution.theta, 0.5)
    ratios = [without[row] / error.median for row, error in hybrid.errors["train"].items()]
    assert min(ratios) > 1.5
    assert max(ratios) > 3


def test_a_network_in_the_place_of_physics_has_no_robot_without_it(undamped, log):
    """Nothing to compare with."""
    replacing = Blueprint((dataclasses.replace(FRICTION, mode="replace"),))
    problem = build(undamped, [log], [], ProblemOptions(blueprint=replacing))
    assert errors_without_networks(problem, problem.parameters.start, 0.5) is None
