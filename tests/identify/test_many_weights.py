"""Networks with many weights: gradients by one pass backwards, training by Adam, early stopping, curriculum."""

import dataclasses

import numpy as np
import pytest

from tests.identify.suggest.planted import POLE, recorded
from truesim.core.errors import TruesimError
from truesim.formats import loads
from truesim.identify import kernels
from truesim.identify import problem as problems
from truesim.identify.adam import batches
from truesim.identify.api import alike
from truesim.identify.beliefs import penalty
from truesim.identify.build import Options, build
from truesim.identify.evaluate import judge
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.levenberg_marquardt import reduced
from truesim.identify.noise import first_allowance, first_noise
from truesim.identify.normal import Weights, normal, point
from truesim.identify.problem import MANY, Problem
from truesim.identify.result import conclude
from truesim.identify.slope import slope
from truesim.parameters import Prior
from truesim.simulate import GRU, MLP, Blueprint, Rule

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
    return build(loads(POLE), logs, FREE, Options(blueprint=Blueprint(rules), **options))


def somewhere(problem: Problem) -> np.ndarray:
    """Coordinates at which no network is silent."""
    return problem.parameters.start + 0.2 * np.random.default_rng(0).normal(size=problem.parameters.size)


def slopes(problem: Problem, theta: np.ndarray, length: int):
    """The point, and the gradient there in windows of so many stretches."""
    weights = Weights(first_noise(problem), 0.1 * first_allowance(problem), 8.0)
    windows = problem.layout.windows(length)
    at = point(problem, theta, problem.first_nodes())
    return at, weights, windows, slope(problem, at, weights, windows, DAMPING)


@pytest.mark.parametrize(("most", "backend"), [(1000, "native"), (0, "xla")])
def test_one_pass_backwards_is_the_gradient_of_the_normal_equations(logs, monkeypatch, most, backend):
    """To 1e-8, by either backend, for logs with parameters of their own, in single stretches and joined ones."""
    gru = Rule("joint.torque", ("joint.velocity",), GRU(2, seed=1), name="gru")
    rules = (FRICTION, gru) if backend == "native" else (FRICTION,)
    own = {"per_log": {"*": {"joints/hinge.damping": "free"}}}
    forward = made(logs[:2], *rules, **own)
    theta = somewhere(forward)
    assert forward.trained.size == 0
    monkeypatch.setattr(problems, "MANY", 1)
    monkeypatch.setattr(kernels, "NATIVE", most)
    backward = made(logs[:2], *rules, **own)
    assert backward.solved.size == 3
    for length in (1, 7):
        at, weights, windows, known = slopes(forward, theta, length)
        exact = reduced(normal(forward, at, weights, windows), DAMPING).gradient
        _, _, _, found = slopes(backward, theta, length)
        np.testing.assert_allclose(found.gradient, exact, rtol=0, atol=1e-8 * np.abs(exact).max())
        np.testing.assert_allclose(found.cost, known.cost, rtol=1e-12)
        still = np.zeros_like(theta)
        np.testing.assert_allclose(found.moves(still), known.moves(still), rtol=1e-7, atol=1e-10)


@pytest.fixture(scope="module")
def problem(logs):
    """A mass and a network with more weights than derivatives are taken of."""
    return made(logs[:2], dataclasses.replace(FRICTION, network=MLP((14, 14)), penalty=1.0))


def test_the_gradient_is_that_of_finite_differences(problem):
    """Of a weighted sum of residuals and ends, and of the penalty."""
    theta, nodes, rng = somewhere(problem), problem.first_nodes(), np.random.default_rng(1)
    residual = rng.normal(size=problem.layout.valid.shape)
    state = rng.normal(size=(problem.layout.size, 2))
    used = rng.uniform(size=problem.layout.size) < 0.7
    gradient = problem.pull(theta, nodes, residual, state, used)

    def total(theta):
        shot, _ = problem.differentiate(theta, nodes)
        ends = np.concatenate([shot.q, shot.v], axis=1)
        return (residual * shot.residual)[used].sum() + (state * ends)[used].sum()

    for k in (0, 1, 40, len(theta) - 1):
        step = 1e-5 * np.eye(len(theta))[k]
        difference = (total(theta + step) - total(theta - step)) / 2e-5
        np.testing.assert_allclose(gradient[k], difference, rtol=1e-6, atol=1e-7)
        change = penalty(problem, theta + step)[0] - penalty(problem, theta - step)[0]
        np.testing.assert_allclose(penalty(problem, theta)[1][k], change / 2e-5, rtol=1e-6, atol=1e-9)


def test_batches_hold_every_window_once(problem, monkeypatch):
    """And whole ones only."""
    monkeypatch.setattr("truesim.identify.adam.LANES", 40)
    windows = problem.layout.windows(9)
    parts = batches(problem, windows)
    assert len(parts) > 3
    np.testing.assert_array_equal(np.sort(np.concatenate([b.stretches for b in parts])), np.arange(problem.layout.size))
    np.testing.assert_allclose(sum(b.share for b in parts), 1.0)
    for part in parts:
        assert part.windows.joined.sum() == windows.joined[part.stretches].sum()
        np.testing.assert_array_equal(part.problem.layout.first, problem.layout.first[part.stretches])


@pytest.fixture(scope="module")
def trained(problem, logs):
    """A fit with a log to validate on and another held out."""
    model, options = loads(POLE), Options(blueprint=problem.blueprint)
    others = [alike(problem, model, [log], FREE, options) for log in logs[2:]]
    seen = []
    solution = solve_problem(problem, Settings(iterations=15, window=0.3), seen.append, judge=judge(others[0]))
    return conclude(solution, others[1]), seen, others[0]


def test_a_large_network_learns(trained, problem):
    """The held-out error falls, the mass stays physics, and what is kept did best on the log to validate on."""
    fit, seen, validation = trained
    assert problem.trained.size > MANY
    before, after = (fit.errors[part]["qpos/hinge"].median for part in ("held_out_start", "held_out"))
    assert after < 0.25 * before
    (mass,) = fit.estimates
    np.testing.assert_allclose(mass.value, 0.8, rtol=0.05)
    score = judge(validation)
    assert score(fit.solution.theta) <= min(score(p.theta) for p in seen[:: len(seen) // 5]) + 1e-12
    assert fit.networks.weights["friction"].size == problem.trained.size


def test_training_ends_when_other_logs_gain_no_more(problem):
    """Every stage ends after as many iterations as patience allows; the coordinates that did best there are kept."""
    seen = []

    def score(theta):
        seen.append(theta)
        return abs(len(seen) - 2)

    stages = 5
    solution = solve_problem(problem, Settings(patience=1, horizons=(0.1,), iterations=6), judge=score)
    assert 2 + 2 < len(seen) <= 2 + 2 * stages
    np.testing.assert_array_equal(solution.theta, seen[1])


def test_horizons_grow(problem):
    """A curriculum of windows ends with the longest."""
    solution = solve_problem(problem, Settings(horizons=(0.1, 0.4), iterations=1))
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
        solution = solve_problem(case, Settings(horizons=(0.1,), iterations=2))
        weights = solution.theta[case.solved.size :] - case.trained.start
        changes.append(np.sqrt(np.mean(weights**2)))
    assert changes[1] < 0.5 * changes[0]


def test_levenberg_marquardt_is_for_few_weights(problem):
    """And says so."""
    with pytest.raises(TruesimError, match=r"267 weights are too many.*more than 200.*adam"):
        solve_problem(problem, Settings(optimiser="lm"))
