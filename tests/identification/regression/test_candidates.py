"""Comparison of candidates joint by joint."""

import numpy as np
import pytest

from truesim.identification.torque_candidates import Scores

WINDOWS = 40


def scores(torque: float, motion: float, scatter: float = 0.0, other: float = 0.0) -> Scores:
    """Scores of two joints `a` and `b`: logarithms of errors of `a`, and of `b` in both measures."""
    noise = scatter * np.random.default_rng(0).standard_normal(WINDOWS)
    windows = {"qpos/a": motion + noise, "qpos/b": np.full(WINDOWS, other)}
    return Scores({"a": torque, "b": other}, {"qpos/a": motion, "qpos/b": other}, windows)


PLAIN = scores(0.0, 0.0)


@pytest.mark.parametrize(
    ("found", "loses"),
    [
        (scores(0.01, 0.01), False),
        (scores(0.05, 0.0), True),
        (scores(0.0, 0.05), True),
        (scores(0.0, 0.05, scatter=0.5), False),
        (scores(0.0, 0.15, scatter=2.0), True),
        (scores(0.05, 0.05, other=-0.5), False),
        (scores(0.0, np.nan), True),
    ],
    ids=["little", "torque", "motion", "within scatter", "outliers", "much gained elsewhere", "not finite"],
)
def test_a_joint_may_not_lose(found, loses):
    assert found.loses_at("a", PLAIN) is loses


def test_a_joint_that_is_not_compared_loses_nothing():
    assert not scores(1.0, 1.0).loses_at("c", PLAIN)
