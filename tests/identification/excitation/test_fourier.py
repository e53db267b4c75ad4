"""Periodic excitation of arms within limits."""

import numpy as np
import pytest

from tests.identification.regression.arms import EFFORT, load_arm
from truesim.core.errors import TruesimError
from truesim.identification.excitation.fourier import FourierOptions, design_fourier, file_speeds
from truesim.identification.excitation.limits import Limits


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    model = load_arm(tmp_path_factory.mktemp("arm"))
    assert set(file_speeds(model).values()) == {2.0}
    limits = Limits.of(model, positions={"*": (-2.0, 2.0)}, speeds=file_speeds(model))
    return design_fourier(model, limits, FourierOptions(candidates=6, iterations=10))


def test_the_motion_is_periodic_within_limits_and_at_rest_at_its_ends(motion):
    assert np.abs(motion.q).max() <= 2.0
    assert np.abs(motion.v).max() <= 2.0
    assert np.all(np.abs(motion.torque).max(axis=0) <= EFFORT)
    half = len(motion.time) // 2
    assert np.allclose(motion.q[0], motion.q[half], atol=1e-9)
    assert np.abs(motion.v[[0, -1]]).max() < 1e-9
    assert np.allclose(np.gradient(motion.q, motion.time, axis=0)[1:-1], motion.v[1:-1], atol=2e-3)


def test_the_search_lowers_the_condition_number(motion):
    assert motion.condition < motion.typical_condition
    assert min(motion.reversals.values()) >= 2
    assert set(motion.columns()) >= {"time", "qpos/j0", "qvel/j5", "ctrl/j5"}


def test_too_few_harmonics_are_refused():
    with pytest.raises(TruesimError, match="need 3"):
        FourierOptions(harmonics=2)
