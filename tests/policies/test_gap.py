"""Gap closed: its value, its interval, and when a comparison is not valid."""

import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.policies.gap import RealReturns

RNG = np.random.default_rng(0)


def returns(mean, std=0.5, seeds=3, episodes=20):
    return [RNG.normal(mean, std, episodes) for _ in range(seeds)]


def test_the_gap_closed_is_relative_to_nominal_and_oracle():
    found = RealReturns({"policy": [np.full(4, 8.0)], "nominal": [np.full(4, 2.0)], "oracle": [np.full(4, 10.0)]})
    closed = found.gap_closed()
    assert closed.value == pytest.approx(0.75)
    assert closed.low == pytest.approx(0.75), "nothing varies"
    assert found.gap_closed_from_uniform() is None
    assert found.is_valid()


@pytest.mark.parametrize(("between", "least"), [(0.0, 0.95), (1.0, 0.8)])
def test_intervals_cover_the_truth(between, least):
    """Intervals hold the truth where episodes vary, more often than 95 %; where few policies vary, somewhat less often.

    Drawing policies and then episodes counts the noise of episodes twice, which is on the safe side; five policies are
    too few for the bootstrap's own theory.
    """
    inside = 0
    for k in range(100):
        rng = np.random.default_rng([1, k])
        policies = [rng.normal(5.0 + between * rng.normal(), 1.0, 20) for _ in range(5)]
        mean = RealReturns({"policy": policies}, seed=k).mean("policy")
        inside += mean.low <= 5.0 <= mean.high
    assert least <= inside / 100


def test_a_weak_reference_makes_no_gap():
    """Where the best fixed controller is as good as the oracle, the comparison says that it is not valid."""
    roles = {"policy": returns(9), "nominal": returns(2), "fixed": returns(10), "oracle": returns(10.05)}
    assert RealReturns(roles).is_valid() is False
    assert RealReturns({**roles, "fixed": returns(5)}).is_valid() is True
    assert RealReturns({"policy": returns(9)}).is_valid() is None


def test_without_a_gap_nothing_is_closed():
    found = RealReturns({"policy": returns(5), "nominal": returns(9), "oracle": returns(8)})
    assert found.gap_closed() is None


def test_bad_returns_are_named():
    with pytest.raises(TruesimError, match="Returns of oracle"):
        RealReturns({"policy": returns(1), "oracle": [np.array([1.0, np.nan])]})
    with pytest.raises(TruesimError, match="did you mean 'oracle'"):
        RealReturns({"policy": returns(1), "oracel": returns(1)})
    with pytest.raises(TruesimError, match="at least one policy"):
        RealReturns({"nominal": returns(1)})
