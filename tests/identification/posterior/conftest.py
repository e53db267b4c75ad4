"""A solved problem that the tests of posteriors share."""

import pytest

from tests.identification.recorded import arm_log
from truesim.identification.solve.stages import solve_problem


@pytest.fixture(scope="package")
def solved(arm_of):
    """The planar arm, fitted to one log."""
    return solve_problem(arm_of(arm_log()))
