"""The experiments of the Real2Sim paper and the calibration of three machines keep what they promise."""

import numpy as np
import pytest

from experiments.calibration.__main__ import LEAST, MOST, calibration
from experiments.calibration.machines import MACHINES
from experiments.real2sim import coupled, lengths, online


def test_lengths_of_a_double_pendulum():
    """Both within two per cent after eighty epochs, from every start."""
    _, _, rows, pictures = lengths.double_pendulum(seed=0)
    assert len(rows) == 4
    assert all(row[-1] == "yes" and max(abs(row[3]), abs(row[4])) < 2.0 for row in rows)
    assert len(pictures) == 1


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_lengths_of_a_triple_pendulum_online(seed):
    """Real2SimLoss: every kernel within two per cent, covariance falling. With entropy: Laplace's posterior at last."""
    _, _, (published, other), pictures = online.triple_pendulum(seed)
    assert published[4] == published[7] == other[4] == other[7] == "yes"
    assert published[1] == other[1] == 120
    assert 0.9 < other[8] < 1.1
    assert len(pictures) == 2


def test_a_ridge():
    """Length and fraction mirror each other; the mixture bends along the ridge, nearly as wide as the sum on a grid."""
    _, _, (laplace, bent, truth), _ = coupled.coupled(seed=0)
    assert laplace[3] < -0.99
    assert bent[3] < -0.97
    np.testing.assert_allclose(bent[1:3], truth[1:3], rtol=0.05)
    assert bent[5] < 1.5 * truth[5]
    assert bent[6] < 1.5 * truth[6] < 5 < laplace[6]


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_coverage_of_three_machines(name):
    """Regions of 95 % hold the truth in 89 to 99 % of 200 repeats, and its ranks are uniform."""
    for found in calibration(MACHINES[name], 200).values():
        assert LEAST <= found.coverage() <= MOST
        assert np.all(found.interval_coverage() >= LEAST)
        assert np.all(found.uniformity() > 0.01)
