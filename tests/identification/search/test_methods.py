"""Gradients and CMA-ES on the same costs, and one second of a filmed pendulum."""

import os
from pathlib import Path

import pytest

from experiments.ibm_double_pendulum import window
from experiments.search_methods.__main__ import SAME, evolved, found_values, gradient, within
from experiments.search_methods.cases import lecture, servo

FEWER = 10
"""Times fewer simulated steps that a gradient has to need."""


def compared(case):
    """Both methods find the truth, at the same cost, one of them in far fewer steps, derivatives counted as steps."""
    by_gradient = gradient(case)
    by_evolution = evolved(case, by_gradient.best.cost * (1 + SAME))
    for found in (by_gradient, by_evolution):
        assert within(case, found_values(case, found)), found_values(case, found)
    assert by_evolution.best.cost < by_gradient.best.cost * (1 + SAME)
    assert by_evolution.evaluations > FEWER * by_gradient.evaluations
    return by_evolution.evaluations / by_gradient.evaluations / (1 + len(case.truth))


def test_latency_and_strength_of_the_lecture():
    """5 ms and 10 N m, from 1 ms and 2 N m."""
    assert compared(lecture()) > FEWER


@pytest.mark.slow
def test_servo_of_one_joint():
    """Armature, two frictions, bias and delay from 20 s of a chirp."""
    assert compared(servo()) > FEWER


@pytest.mark.slow
def test_one_second_of_the_filmed_pendulum():
    """The error that the papers' own second has to be fitted to, in one simulation from a fitted initial state."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(os.environ.get("TRUESIM_DATA", beside)) / "ibm_double_pendulum"
    if not folder.is_dir():
        pytest.skip(f"the recordings are not at {folder}; set TRUESIM_DATA to the data folder")
    assert window.error(window.fit()) < window.REQUIRED
