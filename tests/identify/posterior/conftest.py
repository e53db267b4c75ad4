"""A solved problem that the tests of posteriors share."""

import pytest

from tests.identify.recorded import arm_log
from truesim.identify.fit import solve_problem


@pytest.fixture(scope="package")
def solved(arm_of):
    """The planar arm, fitted to one log."""
    return solve_problem(arm_of(arm_log()))
