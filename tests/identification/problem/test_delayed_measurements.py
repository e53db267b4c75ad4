"""Delayed measurements: the delay is estimated, and masses are not biased by it."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import ARM, ARM_WRONG, record
from tests.robots import robot
from truesim.identification import Fit, ProblemOptions, solve_problem
from truesim.identification.diagnose.estimates import Flag
from truesim.identification.problem.build import build

DELAY = 0.0093
"""Of both encoders [s]; the log has a sample every 3.9 ms."""


def test_a_sensor_delay_is_estimated():
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
        ProblemOptions(ties=["sensors/qpos/*.delay"]),
    )
    fit = Fit.of(solve_problem(problem))
    found = {e.path: e for e in fit.estimates}
    assert found["sensors/qpos/shoulder.delay"].value == pytest.approx(DELAY, abs=1e-4)
    assert found["bodies/upper.mass"].value == pytest.approx(1.0, rel=0.01)
    assert found["bodies/lower.mass"].value == pytest.approx(0.6, rel=0.01)
    kinds = {flag.kind for flag in found["sensors/qpos/shoulder.delay"].flags}
    assert kinds <= {Flag.WIDENED, Flag.MISFIT}  # linear interpolation between samples leaves residuals above the noise


def test_samples_without_a_later_measurement_are_not_compared():
    """The measurement of a state near the end of a log comes after its last sample."""
    log = record(ARM, lambda t: [np.sin(t), 0.0], 1.0)
    options = ProblemOptions(ties=["sensors/qpos/*.delay"])
    (found,) = build(robot(ARM_WRONG), [log], [], options).recordings
    assert found.lookahead > 1
    assert not found.valid[-found.lookahead :].any()
    assert found.valid[: -found.lookahead].all()
