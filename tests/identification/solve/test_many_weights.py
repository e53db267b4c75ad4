"""Networks with many weights: reverse-mode gradients, training by Adam, early stopping, curriculum."""

import dataclasses

import numpy as np
import pytest

from tests.identification.suggestion.planted import POLE, recorded
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.identification.diagnose.evaluation import validation_loss
from truesim.identification.fit import Fit
from truesim.identification.problem import kernels
from truesim.identification.problem import problem as problems
from truesim.identification.problem.build import build, prepare_logs, same_problem
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import MANY_WEIGHTS, Problem
from truesim.identification.solve.adam import batches
from truesim.identification.solve.gradient import cost_gradient
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.noise import initial_defect_std, initial_noise
from truesim.identification.solve.normal_equations import ResidualWeights, normal_equations, point
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.prior import penalty
from truesim.identification.solve.stages import solve_problem
from truesim.physics.blueprint import GRU, MLP, Blueprint, Rule
from truesim.physics.parameters import Prior

FREE = ["bodies/pole.mass"]
FRICTION = Rule(
    "joint.friction_torque",
    ("joint.position", "joint.velocity"),
    MLP((5,), seed=3),
    name="friction",
    scales={"joint.velocity": 5.0},
)
DAMPING = 1e-3


def sticky(model, data):
    """Friction that falls with speed, on a joint that cogs [N m]."""
    v = data.qvel
    return -(0.1 + 0.1 * np.exp(-((v / 0.5) ** 2))) * np.tanh(v / 0.05) + 0.15 * np.sin(4 * data.qpos)


@pytest.fixture(scope="module")
def logs():
    """Two to train on, one to validate on, one held out."""
    return [recorded(POLE, seed, sticky, seconds=4.0) for seed in range(4)]


def made(logs, *rules, **options) -> Problem:
    """A problem of the pole with networks."""
    return build(loads(POLE), logs, FREE, ProblemOptions(blueprint=Blueprint(rules), **options))


def somewhere(problem: Problem) -> np.ndarray:
    """Coordinates with nonzero output of all networks."""
    return problem.parameters.start + 0.2 * np.random.default_rng(0).normal(size=problem.parameters.size)


def point_and_gradient(problem: Problem, theta: np.ndarray, length: int):
    """The point, and its gradient in windows of `length` segments."""
    weights = ResidualWeights(initial_noise(problem), 0.1 * initial_defect_std(problem), 8.0)
    windows = problem.layout.windows(length)
    at = point(problem, theta, problem.initial_nodes())
    return at, weights, windows, cost_gradient(problem, at, weights, windows, DAMPING)


@pytest.mark.parametrize(("most", "backend"), [(1000, "native"), (0, "xla")])
def test_reverse_mode_gradient_equals_that_of_the_normal_equations(logs, monkeypatch, most, backend):
    """To 1e-8, by either backend, for logs with parameters of their own, in single segments and joined ones."""
    gru = Rule("joint.torque", ("joint.velocity",), GRU(2, seed=1), name="gru")
    rules = (FRICTION, gru) if backend == "native" else (FRICTION,)
    own = {"per_log": {"*": {"joints/hinge.damping": "free"}}}
    forward = made(logs[:2], *rules, **own)
    theta = somewhere(forward)
    assert forward.trained.size == 0
    monkeypatch.setattr(problems, "MANY_WEIGHTS", 1)
    monkeypatch.setattr(kernels, "MAX_NATIVE_WEIGHTS", most)
    backward = made(logs[:2], *rules, **own)
    assert backward.solved.size == 3
    for length in (1, 7):
        at, weights, windows, known = point_and_gradient(forward, theta, length)
        exact = eliminate_states(normal_equations(forward, at, weights, windows), DAMPING).gradient
        _, _, _, found = point_and_gradient(backward, theta, length)
        np.testing.assert_allclose(found.gradient, exact, rtol=0, atol=1e-8 * np.abs(exact).max())
        np.testing.assert_allclose(found.cost, known.cost, rtol=1e-12)
        still = np.zeros_like(theta)
        np.testing.assert_allclose(found.state_steps(still), known.state_steps(still), rtol=1e-7, atol=1e-10)


@pytest.fixture(scope="module")
def problem(logs):
    """A mass and a network with more than `MANY_WEIGHTS` weights."""
    return made(logs[:2], dataclasses.replace(FRICTION, network=MLP((14, 14)), penalty=1.0))


def test_the_gradient_is_that_of_finite_differences(problem):
    """Of a weighted sum of residuals and ends, and of the penalty."""
    theta, nodes, rng = somewhere(problem), problem.initial_nodes(), np.random.default_rng(1)
    residual = rng.normal(size=problem.layout.valid.shape)
    state = rng.normal(size=(problem.layout.size, 2))
    used = rng.uniform(size=problem.layout.size) < 0.7
    gradient = problem.gradient(theta, nodes, residual, state, used)

    def total(theta):
        simulated, _ = problem.differentiate(theta, nodes)
        ends = np.concatenate([simulated.q, simulated.v], axis=1)
        return (residual * simulated.residual)[used].sum() + (state * ends)[used].sum()

    for k in (0, 1, 40, len(theta) - 1):
        step = 1e-5 * np.eye(len(theta))[k]
        difference = (total(theta + step) - total(theta - step)) / 2e-5
        np.testing.assert_allclose(gradient[k], difference, rtol=1e-6, atol=1e-7)
        change = penalty(problem, theta + step)[0] - penalty(problem, theta - step)[0]
        np.testing.assert_allclose(penalty(problem, theta)[1][k], change / 2e-5, rtol=1e-6, atol=1e-9)


def test_batches_hold_every_window_once(problem, monkeypatch):
    """And whole ones only."""
    monkeypatch.setattr("truesim.identification.solve.adam.XLA_BATCH_SIZE", 40)
    windows = problem.layout.windows(9)
    parts = batches(problem, windows)
    assert len(parts) > 3
    np.testing.assert_array_equal(np.sort(np.concatenate([b.segments for b in parts])), np.arange(problem.layout.size))
    np.testing.assert_allclose(sum(b.share for b in parts), 1.0)
    for part in parts:
        assert part.windows.joined.sum() == windows.joined[part.segments].sum()
        np.testing.assert_array_equal(part.problem.layout.first, problem.layout.first[part.segments])


@pytest.fixture(scope="module")
def trained(problem, logs):
    """A fit with a log to validate on and another held out."""
    model, options = loads(POLE), ProblemOptions(blueprint=problem.blueprint)
    others = [same_problem(problem, model, prepare_logs(model, [log]), FREE, options) for log in logs[2:]]
    seen = []
    solution = solve_problem(
        problem, SolveOptions(iterations=15, window=0.3), seen.append, validation_loss=validation_loss(others[0])
    )
    return Fit.of(solution, others[1]), seen, others[0]


def test_a_large_network_learns(trained, problem):
    """The held-out error falls, the mass stays physics, and what is kept did best on the log to validate on."""
    fit, seen, validation = trained
    assert problem.trained.size > MANY_WEIGHTS
    before, after = (fit.errors[part]["qpos/hinge"].median for part in ("held_out_start", "held_out"))
    assert after < 0.25 * before
    (mass,) = fit.estimates
    np.testing.assert_allclose(mass.value, 0.8, rtol=0.05)
    score = validation_loss(validation)
    assert score(fit.solution.theta) <= min(score(p.theta) for p in seen[:: len(seen) // 5]) + 1e-12
    assert fit.networks.weights["friction"].size == problem.trained.size


def test_training_ends_when_other_logs_gain_no_more(problem):
    """Every stage ends after as many iterations as patience allows; the coordinates that did best there are kept."""
    seen = []

    def score(theta):
        seen.append(theta)
        return abs(len(seen) - 2)

    stages = 5
    solution = solve_problem(problem, SolveOptions(patience=1, horizons=(0.1,), iterations=6), validation_loss=score)
    assert 2 + 2 < len(seen) <= 2 + 2 * stages
    np.testing.assert_array_equal(solution.theta, seen[1])


def test_horizons_grow(problem):
    """A curriculum of windows ends with the longest."""
    solution = solve_problem(problem, SolveOptions(horizons=(0.1, 0.4), iterations=1))
    np.testing.assert_allclose(solution.window_seconds, 0.4, rtol=0.1)


def test_a_penalty_holds_weights_back(problem):
    """A million times the penalty: smaller changes."""
    stiffer = tuple(
        dataclasses.replace(p, prior=Prior(p.prior.mean, p.prior.std / 1000)) if p.prior else p
        for p in problem.parameters
    )
    held = dataclasses.replace(problem, parameters=type(problem.parameters)(stiffer), like=problem)
    changes = []
    for case in (problem, held):
        solution = solve_problem(case, SolveOptions(horizons=(0.1,), iterations=2))
        weights = solution.theta[case.solved.size :] - case.trained.start
        changes.append(np.sqrt(np.mean(weights**2)))
    assert changes[1] < 0.5 * changes[0]


def test_levenberg_marquardt_is_for_few_weights(problem):
    """And says so."""
    with pytest.raises(TruesimError, match=r"at most 200 network weights; there are 267.*adam"):
        solve_problem(problem, SolveOptions(optimizer="lm"))
