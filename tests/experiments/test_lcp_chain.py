"""A ball hits a hanging chain: joints hold, and the motion tells the masses."""

import numpy as np
import pytest

from experiments.lcp_chain.fit import TRUTH, Chain, evaluations, one_mass, ten_masses
from experiments.lcp_chain.scene import LINKS, RATE, drift


@pytest.fixture(scope="module")
def chain():
    """The chain, compiled."""
    return Chain()


def test_the_ball_hits_the_chain_and_no_joint_comes_apart(chain):
    """The ball flies straight until it hits after one and a half seconds, bounces, and carries the chain away."""
    ball = np.append(50.0, chain.truth.x[:, LINKS])
    speed = np.diff(ball) * RATE
    np.testing.assert_allclose(speed[: int(1.4 * RATE)], 150.0, rtol=1e-6)
    assert speed[int(1.6 * RATE)] < 50
    assert np.abs(chain.truth.angle[-1, :LINKS]).max() > 0.05
    assert drift(chain.truth) < 1e-3


@pytest.mark.parametrize("start", [0.05, 0.97])
def test_the_mass_is_found(chain, start):
    """To 1e-4 in at most 24 gradient evaluations from where lcp-physics starts."""
    found = one_mass(chain, start)
    assert abs(found.masses.sum() - TRUTH.sum()) < 1e-4
    assert evaluations(found) <= 24


def test_ten_masses_are_found(chain):
    """Each of them, in one fit."""
    found = ten_masses(chain, np.full(LINKS, 0.3))
    np.testing.assert_allclose(found.masses, TRUTH, atol=1e-4)


def test_derivatives_are_central_differences(chain):
    """Through both hits, to where differences show the solver's own rounding, which the second hit amplifies."""
    masses, h = np.full(LINKS, 0.65), 1e-3
    _, columns = chain.differentiate(masses, np.eye(LINKS))
    for k in (5, 9):
        step = h * np.eye(LINKS)[k]
        ends = [chain.differentiate(masses + sign * step, np.eye(LINKS)[:1])[0] for sign in (1, -1)]
        central = (ends[0] - ends[1]) / (2 * h)
        assert np.abs(columns[:, k] - central).max() < 5e-4 * np.abs(central).max()
