"""Estimates that depend on the time step are found without a second fit, and named."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.identification.two_joint_arm import FREE, STEP, stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import identify
from truesim.identification.diagnose.covariance import uncertainty
from truesim.identification.diagnose.halved_step import halved, simulate_halved
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code, Diagnostic, Status
from truesim.identification.diagnose.time_step import half_step_shift

MORE = (*FREE, "joints/*.armature")


def _fit(step: float):
    samples = stream(4.0)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    log = Log(np.array([s["time"] for s in samples]), columns, "run.csv")
    return identify(loads(xml().replace(f'timestep="{STEP}"', f'timestep="{step}"')), [log], MORE)


@pytest.fixture(scope="module")
def coarse():
    """A fit with the step that made the log."""
    return _fit(STEP)


def test_the_predicted_change_is_that_of_a_fit_with_half_the_step(coarse):
    """One Gauss-Newton step predicts the estimates of the other fit to a fraction of their difference."""
    fine = _fit(STEP / 2)
    with jax.enable_x64(True):
        problem, theta = coarse.problem, coarse.solution.theta
        predicted, _ = problem.values(theta + half_step_shift(coarse.solution))
        before, _ = problem.values(theta)
        after, _ = fine.problem.values(fine.solution.theta)
    with jax.enable_x64(True):
        std = np.sqrt(np.diag(uncertainty(fine.solution).values))  # without the error of the step
    print(before, after, predicted, std)
    assert np.abs((after - before) / std).max() > 3  # the step matters
    np.testing.assert_array_less(np.abs(predicted - after), 0.25 * np.abs(after - before) + 0.5 * std)


def test_a_fit_compiles_one_kernel(coarse):
    """Predictions and the shorter step take the values of the kernel of derivatives."""
    kernels = coarse.problem.kernels
    assert "derivatives" in vars(kernels)
    assert not {"values", "by_values"} & set(vars(kernels))
    arguments = coarse.problem.arguments(coarse.solution.theta, coarse.problem.initial_nodes())
    fresh = dataclasses.replace(kernels)
    for one, other in zip(kernels.predict(*arguments), fresh.predict(*arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert "values" in vars(fresh)


def test_intervals_in_two_halves_are_the_shorter_step(coarse):
    """A simulation of half intervals by the kernel of the fit equals one that is compiled for half the step."""
    theta, nodes = coarse.solution.theta, coarse.solution.at.nodes
    found, expected = simulate_halved(coarse.problem, theta, nodes), halved(coarse.problem).simulate(theta, nodes)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_estimates_that_move_are_named(coarse):
    """Those that leave their interval by more than a twentieth, with what they would be."""
    found = [d for d in coarse.diagnostics if d.code is Code.TIME_STEP]
    assert coarse.status is Status.CONVERGED
    assert found
    for d in found:
        estimate = next(e for e in coarse.estimates if e.path == d.subjects[0])
        assert not estimate.low <= d.value <= estimate.high
        assert abs(d.ratio - 1) > 0.05
    assert "depends on the time step: with 2.5 ms it would be" in explain(found[0])


def test_an_estimate_at_zero_has_no_relative_change():
    """Friction that ends at its bound of zero is named without a percentage, also after it was saved."""
    for ratio in (np.inf, np.nan):
        sentence = explain(Diagnostic(Code.TIME_STEP, ("joints/arm.frictionloss", "2"), 1.3e-4, ratio))
        assert sentence.endswith("with 2 ms it would be 0.00013 instead of zero.")
