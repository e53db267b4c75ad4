"""Basin hopping with networks: restarts draw weights and parameters, and depend on the seed alone."""

import dataclasses

import numpy as np
import pytest

from tests.identification.suggestion.planted import POLE, recorded
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.identification.problem.build import ProblemOptions, build
from truesim.identification.search.open_loop import WEIGHT_REACH, search_space
from truesim.identification.search.run import SearchOptions, search
from truesim.identification.solve.stages import SolveOptions, solve_problem
from truesim.optimize.starts import first_start
from truesim.physics.blueprint import MLP, Blueprint, Rule

RULE = Rule("joint.friction_torque", ("joint.velocity",), MLP((2,)), name="friction", scales={"joint.velocity": 5.0})


def rubbing(model, data):
    """Dry friction that no parameter stands for [N m]."""
    return -0.15 * np.tanh(data.qvel / 0.1)


@pytest.fixture(scope="module")
def problem():
    """A mass and a network of seven weights."""
    log = recorded(POLE, 0, rubbing, seconds=2.0)
    return build(loads(POLE), [log], ["bodies/pole.mass"], ProblemOptions(blueprint=Blueprint((RULE,))))


def test_restarts_draw_weights_and_parameters(problem):
    """Weights within their own reach, the mass within its own, different in each chain."""
    box = search_space(problem)
    starts = np.stack([first_start(box, 0, chain) for chain in range(1, 40)])
    moves = starts - problem.parameters.start
    assert np.all(np.ptp(moves, axis=0) > WEIGHT_REACH)
    assert np.abs(moves[:, 1:]).max() <= WEIGHT_REACH


def test_the_same_seed_finds_the_same_weights(problem):
    """Bit for bit; another seed goes other ways; the fit from the best basin explains the log."""
    plan = SearchOptions(solves=4, seed=1)
    first, again, other = (search(problem, p) for p in (plan, plan, dataclasses.replace(plan, seed=2)))
    np.testing.assert_array_equal(first.best.theta, again.best.theta)
    assert any(not np.array_equal(a.start, b.start) for a, b in zip(first.solves, other.solves, strict=True))
    assert len({tuple(solve.start[1:]) for solve in first.solves}) == 4
    fitted = solve_problem(problem, SolveOptions(iterations=15, window=0.3), theta=first.best.theta)
    mass, _ = problem.values(fitted.theta)
    np.testing.assert_allclose(mass[0], 0.8, rtol=0.05)


def test_searches_that_cannot_be_are_refused(problem):
    """Many weights, and MuJoCo, which has no networks."""
    many = dataclasses.replace(RULE, network=MLP((16, 16)))
    log = recorded(POLE, 0, rubbing, seconds=2.0)
    large = build(loads(POLE), [log], [], ProblemOptions(blueprint=Blueprint((many,))))
    with pytest.raises(TruesimError, match=r"321 weights are too many.*--search local"):
        search(large)
    with pytest.raises(TruesimError, match="no networks to train"):
        search(problem, SearchOptions("cmaes", "mujoco"))
