"""A servo's delay, bias, friction and armature from a chirp that MuJoCo made."""

import pytest

from experiments.one_joint_actuator.__main__ import allowed, estimates, fit
from experiments.one_joint_actuator.machine import TRUTH, recorded


@pytest.mark.parametrize("delay", [0.0113])
def test_known_truth_is_found(delay):
    """Delay within 0.5 ms, bias within 2 mrad, the rest within 5 %."""
    for name, (value, _, _) in estimates(fit(recorded(delay))).items():
        truth = delay if name == "delay" else TRUTH[name]
        assert abs(value - truth) < allowed(name, truth), name
