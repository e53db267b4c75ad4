"""Distributions that were found become randomizations."""

import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.policies.adaptation import Gaussian, to_randomization

FOUND = Gaussian(np.array([1.0, 0.1]), np.array([[0.04, 0.006], [0.006, 0.0025]]))
PATHS = ("bodies/pole.mass", "joints/hinge.damping")


def test_samples_keep_mean_correlation_and_range():
    """Samples of all paths are joint, and stay within their range."""
    rows = to_randomization(FOUND, PATHS, low=(0.0, 0.0)).samples
    assert tuple(rows) == PATHS
    assert np.mean(rows[PATHS[0]]) == pytest.approx(1.0, abs=0.03)
    assert np.corrcoef(rows[PATHS[0]], rows[PATHS[1]])[0, 1] == pytest.approx(0.6, abs=0.08)
    assert np.min(rows[PATHS[1]]) == 0.0


def test_every_parameter_needs_a_path():
    """The message has both counts."""
    with pytest.raises(TruesimError, match=r"2 parameters, but 1 paths"):
        to_randomization(FOUND, PATHS[:1])
