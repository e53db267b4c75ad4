"""Identification of robots that touch something: a pushed box, from starts at which it would not move."""

import numpy as np
import pytest

from experiments.boxpush.__main__ import FRICTION, MASS, STARTS, problem_from
from truesim.identification import Fit, solve_problem
from truesim.identification.diagnose.status import Code
from truesim.identification.solve.levenberg_marquardt import Ending

TRUTH = {FRICTION: 0.5, MASS: 2.0}


@pytest.fixture(scope="module")
def problem(sysid_cases):
    """The pushed box, from the file's own start."""
    return problem_from(sysid_cases, STARTS[0])


@pytest.mark.parametrize("start", STARTS)
def test_friction_and_mass_of_a_pushed_box(problem, start):
    """Within half a per cent and within their intervals, even from where friction exceeds every push.

    The velocity of the box differs from that of rigid contact by nine times the sensor's noise, which the status says.
    """
    names = problem.parameters.names
    wanted = dict(zip((FRICTION, MASS), start, strict=True))
    parameters = zip(problem.parameters, names, strict=True)
    theta = np.concatenate([p.transform.coordinates(np.asarray(wanted[name])) for p, name in parameters])
    solution = solve_problem(problem, theta=theta)
    assert solution.ending is Ending.CONVERGED
    fit = Fit.of(solution)
    assert fit.status == "model does not fit"
    assert [(d.code, d.subjects) for d in fit.diagnostics] == [(Code.RESIDUAL_ABOVE_NOISE, ("sensor/vx",))]
    for estimate in fit.estimates:
        truth = TRUTH[estimate.path]
        assert abs(estimate.value / truth - 1) < 0.005
        assert estimate.low <= truth <= estimate.high
