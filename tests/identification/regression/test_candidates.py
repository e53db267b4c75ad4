"""Comparison of candidates joint by joint."""

import dataclasses

import numpy as np
import pytest

from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.regression.errors import TorqueError
from truesim.identification.torque_candidates import LOSS_FACTOR, Scores


def scores(torque: float, motion: float, median: float | None = None, other: float = 1.0) -> Scores:
    """Scores of two joints `a` and `b`: errors of `a`, and of `b` in all measures."""
    errors = Errors(motion, motion if median is None else median, 4)
    return Scores.of(
        {"a": TorqueError(torque, torque, 10), "b": TorqueError(other, other, 10)},
        {"qpos/a": errors, "qpos/b": dataclasses.replace(errors, rmse=other, median=other)},
    )


PLAIN = scores(1.0, 1.0)


def test_a_loss_counts_more_than_a_gain():
    gain, loss = (scores(factor, 1.0).cost(PLAIN) for factor in (0.8, 1.25))
    assert loss == pytest.approx(-LOSS_FACTOR * gain)
    assert scores(0.8, 1.25).cost(PLAIN) > 0 > scores(0.8, 1.0).cost(PLAIN)


def test_motion_counts_in_the_mean_of_both_of_its_measures():
    assert scores(1.0, 0.8, median=1.25).cost(PLAIN) == pytest.approx(0.0, abs=1e-12)
    assert scores(1.0, 0.8, median=0.9).cost(PLAIN) < 0


def test_much_gained_elsewhere_makes_up_for_a_loss():
    assert scores(1.05, 1.05, other=0.3).cost(PLAIN) < 0


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_an_error_that_is_not_finite_is_the_worst(broken):
    assert scores(1.0, broken).cost(PLAIN) > 5 > -5 > PLAIN.cost(scores(1.0, broken))
    assert np.isfinite(scores(broken, broken).mean)


def test_a_joint_without_torque_is_compared_by_its_motion():
    free = Scores.of({}, {"qpos/a": Errors(0.5, 0.5, 4)})
    assert free.cost(Scores.of({}, {"qpos/a": Errors(1.0, 1.0, 4)})) == pytest.approx(np.log(0.5) / 2)
