"""Recordings with faults."""

import numpy as np
import pytest

from experiments.fault_coverage.__main__ import FAULTS, Fault, record


@pytest.mark.parametrize("name", FAULTS)
def test_recordings_are_valid_logs(name):
    """Of every fault: finite, with stamps that do not decrease."""
    log = record(FAULTS[name], seed=0, seconds=0.5)
    assert np.all(np.diff(log.time) >= 0)
    assert all(np.isfinite(values).all() for values in log.columns.values())


def test_noise_has_memory():
    """Its correlation from sample to sample is the one that was asked for."""
    still, noisy = (record(Fault(noise=n, memory=0.8), seed=0, seconds=6.0) for n in (0.0, 1e-3))
    noise = noisy.columns["qpos/wrist"] - still.columns["qpos/wrist"]
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0.8, abs=0.1)


def test_backlash_hides_small_motion():
    """The encoder stands still until the play is used up."""
    log = record(Fault(backlash=0.5, noise=0.0), seed=0, seconds=0.5)
    assert np.ptp(log.columns["qpos/wrist"]) == 0
