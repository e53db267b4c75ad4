"""Jitter of stamps, found in residuals."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import ARM_TRUTH, arm_log
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.stamps import stamp_jitter
from truesim.identification.diagnose.status import Code, Diagnostic

NOISE = np.array([1e-3, 1e-3])


def jitter_of(arm_of, std, *, wrong=False, seed=0):
    """Jitter that is found in a log whose stamps jitter, with true or wrong values."""
    log = arm_log(12.0)
    time = log.time + std * np.random.default_rng(seed).normal(size=len(log.time))
    problem = arm_of(dataclasses.replace(log, time=np.maximum.accumulate(time)))
    truth = [p.transform.coordinates(np.asarray(x)) for p, x in zip(problem.parameters, ARM_TRUTH, strict=True)]
    theta = problem.parameters.start if wrong else np.concatenate(truth)
    return stamp_jitter(problem, problem.simulate(theta, problem.initial_nodes()), NOISE)


@pytest.mark.parametrize("std", [5e-4, 1.5e-3])
def test_its_size_is_found(arm_of, std):
    """In the residuals of two joints, whatever the size."""
    found = jitter_of(arm_of, std)
    assert found.std == pytest.approx(std, rel=0.25)
    assert 0.2 < found.share < 0.5  # a segment begins with a measured state, which is off as well


@pytest.mark.parametrize("wrong", [False, True])
def test_nothing_is_found_in_exact_stamps(arm_of, wrong):
    """Neither with true values nor with wrong ones, whose residuals are shared by the joints as well."""
    found = jitter_of(arm_of, 0.0, wrong=wrong)
    assert found.std == 0.0
    assert not found.squares.any()


def test_the_variance_of_each_residual_grows_with_its_rate(arm_of):
    """Its squares are those of the rate times the jitter: they vary from sample to sample and explain the share."""
    found = jitter_of(arm_of, 1.5e-3)
    assert found.squares.max() > 10 * np.median(found.squares) > 0


def test_the_sentence():
    """It names the size in milliseconds and the share in percent."""
    text = explain(Diagnostic(Code.STAMP_JITTER, (), 0.0021, 0.83))
    assert "2.1 ms" in text
    assert "83 %" in text
