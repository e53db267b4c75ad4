"""Recorded cases with known answers, from their own start within their own bounds."""

import numpy as np
import pytest

from experiments.sysid_cases.cases import (
    clean_signal,
    covered,
    errors,
    fitted,
    last_link,
    problem_of,
    read_case,
    with_noise,
)
from truesim.math.spatial.inertia import unphysical

DRAWS = 40
"""Fresh draws of noise over which intervals are counted."""


@pytest.fixture(scope="module")
def pendulum(sysid_cases):
    """The short pendulum's case and its problem."""
    case = read_case(sysid_cases, "pendulum2_4s")
    return case, problem_of(case)


def check(fit, truth) -> None:
    """Converged, with a median error of at most one per cent."""
    assert fit.status == "converged"
    assert np.median(errors(fit, truth)) <= 0.01


def test_pendulum_of_4_seconds(pendulum):
    """Masses, damping and dry friction of a double pendulum under torque."""
    case, problem = pendulum
    check(fitted(problem), case.truth)


def test_pendulum_of_10_seconds(pendulum, sysid_cases):
    """The same pendulum for longer, where a single simulation from the start diverges."""
    case, problem = pendulum
    longer = read_case(sysid_cases, "pendulum2_10s")
    assert longer.file.read_text() == case.file.read_text()
    check(fitted(problem_of(case, longer.log, problem)), longer.truth)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm7_servo", "arm7_torque"])
def test_arm(sysid_cases, name):
    """Twenty-one parameters of an arm of seven joints, under servos and under recorded torques."""
    case = read_case(sysid_cases, name)
    check(fitted(problem_of(case)), case.truth)


@pytest.mark.slow
def test_intervals_cover_the_truth(sysid_cases):
    """As often as 95 % intervals should, over fresh draws of noise."""
    case = read_case(sysid_cases, "arm7_servo")
    clean, first, inside = clean_signal(case), problem_of(case), []
    for seed in range(DRAWS):
        inside.append(covered(fitted(problem_of(case, with_noise(case, clean, seed), first)), case.truth))
    assert 0.90 <= np.mean(inside) <= 0.99


@pytest.mark.slow
def test_full_inertia_of_the_last_link(sysid_cases):
    """Ten inertial parameters, seven dampings and seven armatures: at least 20 of 24 within their intervals."""
    problem, truth = last_link(read_case(sysid_cases, "arm7_servo"))
    fit = fitted(problem)
    assert covered(fit, truth).sum() >= 20
    assert truth.size == 24
    bodies = fit.model.bodies
    assert all(unphysical(m, i) is None for m, i in zip(bodies.mass, bodies.inertia, strict=True))
