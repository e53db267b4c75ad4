"""The normal equations against differences of the cost."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import arm_log
from truesim.identification.problem.segments import Nodes
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import ResidualWeights, cost, huber_weights, normal_equations, point

STEP = 1e-5
HUBER = 2.0


@pytest.fixture(scope="module")
def joined(arm_of):
    """Two logs, priors, windows of three segments, and residuals on both sides of Huber's threshold."""
    logs = [arm_log(0.6, name="one"), arm_log(0.5, seed=1, name="two")]
    problem = arm_of(*logs, priors={"bodies/upper.mass": (1.2, 0.1)})
    rng = np.random.default_rng(0)
    nodes = problem.initial_nodes()
    nodes = Nodes(nodes.q + 3e-3 * rng.normal(size=nodes.q.shape), nodes.v + 0.05 * rng.normal(size=nodes.v.shape))
    at = point(problem, problem.parameters.start + 0.1 * rng.normal(size=4), nodes)
    weights = ResidualWeights(np.array([1e-3, 2e-3]), np.array([1e-3, 2e-3, 0.1, 0.2]), HUBER)
    return problem, at, weights, problem.layout.windows(3)


def cost_gradient(joined, theta, q, v) -> float:
    """Difference quotient of the cost along a move of all unknowns."""
    problem, at, weights, windows = joined

    def moved(step):
        nodes = Nodes(at.nodes.q + step * q, at.nodes.v + step * v)
        return cost(problem, point(problem, at.theta + step * theta, nodes), weights, windows)

    return (moved(STEP) - moved(-STEP)) / (2 * STEP)


def test_both_sides_of_the_threshold_are_tested(joined):
    """Some residuals count squared, some linearly."""
    problem, at, weights, _ = joined
    large = np.abs(at.simulated.residual / weights.noise)[problem.layout.valid] > HUBER
    assert 0.1 < large.mean() < 0.9


def test_gradient_by_parameters(joined):
    """Of residuals, defects and priors."""
    problem, at, weights, windows = joined
    gradient = normal_equations(problem, at, weights, windows).gradient
    zero = np.zeros_like(at.nodes.q)
    for k, direction in enumerate(np.eye(4)):
        assert abs(cost_gradient(joined, direction, zero, zero) - gradient[k]) < 1e-6 * np.abs(gradient).max()


@pytest.mark.parametrize("place", [0, 1, 4, 7])
def test_gradient_by_first_states(joined, place):
    """An initial state affects its own segment, the defect before it and the defect after it."""
    problem, at, weights, windows = joined
    gradient = normal_equations(problem, at, weights, windows).chains.gradient[windows.window, windows.place]
    for k in range(4):
        move = np.zeros((problem.layout.size, 4))
        move[place, k] = 1.0
        found = cost_gradient(joined, np.zeros(4), move[:, :2], move[:, 2:])
        assert abs(found - gradient[place, k]) < 1e-6 * np.abs(gradient[place]).max()


def test_solving_the_equations_lowers_the_model_of_the_cost_to_zero_slope(joined):
    """Parameters and initial states that solve the equations leave no gradient: H x = -g for the whole system."""
    problem, at, weights, windows = joined
    equations = normal_equations(problem, at, weights, windows)
    system = eliminate_states(equations)
    y = -np.linalg.solve(system.corner, system.gradient)
    x = system.chains(y)
    D, E, F, g = equations.chains
    left = np.einsum("wmab,wmb->wma", D, x) + F @ y + g
    left[:, :-1] += np.einsum("wmab,wmb->wma", E[:, :-1], x[:, 1:])
    left[:, 1:] += np.einsum("wmba,wmb->wma", E[:, :-1], x[:, :-1])
    assert np.abs(left).max() < 1e-7 * np.abs(g).max()
    border = np.einsum("wmap,wma->p", F, x) + equations.corner @ y + equations.gradient
    assert np.abs(border).max() < 1e-7 * np.abs(equations.gradient).max()


def test_a_simulation_that_is_lost_has_a_large_but_finite_cost(joined):
    """It adds a finite cost and no gradient."""
    problem, at, weights, windows = joined
    residual, state = at.simulated.residual.copy(), at.sensitivity.state.copy()
    residual[2, 5:], state[2] = np.nan, np.inf
    simulated, sensitivity = at.simulated._replace(residual=residual), at.sensitivity._replace(state=state)
    lost = dataclasses.replace(at, simulated=simulated, sensitivity=sensitivity)
    equations = normal_equations(problem, lost, weights, windows)
    assert cost(problem, at, weights, windows) < equations.cost < np.inf
    assert all(np.all(np.isfinite(part)) for part in (*equations.chains, equations.corner, equations.gradient))


def test_hubers_weights():
    """Squares within the threshold, linear beyond it."""
    r = np.array([0.0, 1.0, -2.0, 4.0, -100.0])
    np.testing.assert_allclose((huber_weights(r, 2.0) * r) ** 2, [0, 1, 4, 8, 200])
    np.testing.assert_array_equal(huber_weights(r, np.inf), 1.0)
