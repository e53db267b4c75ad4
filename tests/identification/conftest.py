"""Problems that several tests share, since kernels take seconds to compile."""

import dataclasses

import pytest

from tests.identification.recorded import ARM_FREE, ARM_WRONG, arm_log
from tests.robots import robot
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions


@pytest.fixture(scope="session")
def arm_of():
    """Makes problems of the planar arm, which begin with wrong masses and damping, from logs."""
    model = robot(ARM_WRONG)
    first = build(model, [arm_log()], ARM_FREE)

    def make(*logs, **options):
        return dataclasses.replace(build(model, logs, ARM_FREE, ProblemOptions(**options)), like=first)

    return make
