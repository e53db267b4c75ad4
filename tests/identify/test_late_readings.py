"""Readings that arrive late: the delay is found, and masses are not bent by it."""

import dataclasses

import numpy as np
import pytest

from tests.identify.recorded import ARM, ARM_WRONG, record
from tests.robots import robot
from truesim.identify import Options, build, conclude, solve_problem

DELAY = 0.0093
"""Of both encoders [s]; the log has a sample every 3.9 ms."""


def test_a_delay_of_readings_is_found():
    """One delay for both encoders, together with two masses, from positions alone."""
    log = record(ARM, lambda t: [3 * np.sin(4 * t), np.sin(7 * t)], 4.0, noise=1e-4)
    late = {
        name: np.interp(log.time - DELAY, log.time, values) if name.startswith("qpos") else values
        for name, values in log.columns.items()
    }
    problem = build(
        robot(ARM_WRONG),
        [dataclasses.replace(log, columns=late)],
        ["bodies/*.mass", "joints/*.damping"],
        Options(ties=["sensors/qpos/*.delay"]),
    )
    fit = conclude(solve_problem(problem))
    found = {e.path: e for e in fit.estimates}
    assert found["sensors/qpos/shoulder.delay"].value == pytest.approx(DELAY, abs=1e-4)
    assert found["bodies/upper.mass"].value == pytest.approx(1.0, rel=0.01)
    assert found["bodies/lower.mass"].value == pytest.approx(0.6, rel=0.01)
    assert not found["sensors/qpos/shoulder.delay"].flags
