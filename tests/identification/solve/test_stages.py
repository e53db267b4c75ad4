"""Fits of a small arm: accuracy, and invariance to changes of the logs."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from tests.identification.recorded import ARM_TRUTH, arm_log
from truesim.identification.diagnose.covariance import uncertainty
from truesim.identification.diagnose.estimates import EstimateFlag, Flag
from truesim.identification.fit import Fit
from truesim.identification.solve.levenberg_marquardt import Ending, StageOptions, solve
from truesim.identification.solve.noise import initial_defect_std, initial_noise
from truesim.identification.solve.normal_equations import ResidualWeights, point
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.stages import solve_problem


def values(solution) -> np.ndarray:
    """Estimates, in SI units."""
    return solution.problem.values(solution.theta)[0]


def stds(solution) -> np.ndarray:
    """Standard deviations of the estimates."""
    return np.sqrt(np.diag(uncertainty(solution).values))


@pytest.fixture(scope="module")
def usual(arm_of):
    """The fit to one clean log."""
    return solve_problem(arm_of(arm_log()))


def test_the_truth_is_found(usual):
    """Within one per cent and within four standard deviations, which are themselves small."""
    assert usual.ending is Ending.CONVERGED
    assert np.abs(values(usual) / ARM_TRUTH - 1).max() < 0.01
    assert np.abs((values(usual) - ARM_TRUTH) / stds(usual)).max() < 4
    assert np.all(stds(usual) < 0.01 * ARM_TRUTH)
    np.testing.assert_allclose(usual.weights.noise, 1e-3, rtol=0.1)


def test_conclusion(usual):
    """A good fit has no flags, hides nothing, and predicts better than its start."""
    fit = Fit.of(usual)
    assert fit.status == "converged"
    assert fit.not_identifiable == ()
    assert all(e.flags == () and e.low < e.value < e.high for e in fit.estimates)
    assert fit.errors["train"]["qpos/elbow"].median < 0.1 * fit.errors["train_start"]["qpos/elbow"].median
    np.testing.assert_allclose(fit.model.bodies.mass, [fit.estimates[0].value, fit.estimates[1].value], rtol=1e-12)


def test_the_same_problem_gives_the_same_bits(arm_of, usual):
    """No clock, order or random number takes part."""
    np.testing.assert_array_equal(solve_problem(arm_of(arm_log())).theta, usual.theta)


def test_a_program_in_single_precision_gets_the_same_bits(arm_of, usual):
    """Fits compute in double precision whatever the program's own setting is, and leave it alone."""
    with jax.enable_x64(False):
        fit = Fit.of(solve_problem(arm_of(arm_log())))
        assert not jax.config.jax_enable_x64
    np.testing.assert_array_equal(fit.solution.theta, usual.theta)
    assert fit.model.bodies.mass.dtype == np.float64


def test_when_a_log_was_made_makes_no_difference(arm_of, usual):
    """Stamps count from anywhere; these are exact in binary."""
    log = arm_log()
    later = solve_problem(arm_of(dataclasses.replace(log, time=log.time + 64.0)))
    np.testing.assert_array_equal(later.theta, usual.theta)


def test_two_halves_are_as_good_as_one_log(arm_of, usual):
    """But for one more initial state to estimate, which widens the intervals a little."""
    log = arm_log()
    parts = {"first": slice(256), "second": slice(256, None)}
    split = solve_problem(arm_of(*(dataclasses.replace(log.rows(rows), name=name) for name, rows in parts.items())))
    assert np.all(np.abs(values(split) - values(usual)) < stds(split))


def test_missing_samples_do_no_harm(arm_of, usual):
    """A burst of NaN moves no estimate by more than its standard deviation."""
    log = arm_log()
    elbow = log.columns["qpos/elbow"].copy()
    elbow[200:230] = np.nan
    burst = solve_problem(arm_of(dataclasses.replace(log, columns={**log.columns, "qpos/elbow": elbow})))
    assert burst.ending is Ending.CONVERGED
    assert np.all(np.abs(values(burst) - values(usual)) < stds(usual))


def test_outliers_count_little(arm_of, usual):
    """Two percent of outliers hardly widen the intervals of the robust loss; those of least squares double."""
    log, rng = arm_log(), np.random.default_rng(0)
    wild = np.where(rng.uniform(size=len(log.time)) < 0.02, rng.normal(size=len(log.time)), 0.0)
    elbow = log.columns["qpos/elbow"] + wild
    problem = arm_of(dataclasses.replace(log, columns={**log.columns, "qpos/elbow": elbow}))
    robust, plain = (solve_problem(problem, SolveOptions(robust=k)) for k in (SolveOptions.robust, np.inf))
    np.testing.assert_allclose(robust.weights.noise, 1e-3, rtol=0.3)
    assert np.abs((values(robust) - ARM_TRUTH) / stds(robust)).max() < 4
    assert np.all(stds(robust) < 1.5 * stds(usual))
    assert np.all(stds(plain) > 2 * stds(usual))


def test_a_step_never_raises_the_cost_nor_leaves_the_bounds(arm_of):
    """Where the truth lies outside of the bounds the estimate ends on one, and says so."""
    problem = arm_of(arm_log(), bounds={"bodies/lower.mass": (0.3, 0.5), "joints/shoulder.damping": (0.15, 1.0)})
    low, high = problem.parameters.bounds
    weights = ResidualWeights(initial_noise(problem), initial_defect_std(problem), 8.0)
    seen = []
    windows = problem.layout.windows(problem.layout.size)
    start = point(problem, problem.parameters.start, problem.initial_nodes())
    outcome = solve(problem, start, weights, windows, StageOptions(), lambda progress, _: seen.append(progress))
    costs = [progress.cost for progress in seen]
    assert outcome.converged
    assert len(costs) > 3
    assert all(b <= a for a, b in itertools.pairwise(costs))
    assert all(np.all((progress.theta >= low) & (progress.theta <= high)) for progress in seen)
    fit = Fit.of(solve_problem(problem))
    flags = {e.path: list(map(str, e.flags)) for e in fit.estimates}
    assert "at upper bound" in flags["bodies/lower.mass"]
    assert "at lower bound" in flags["joints/shoulder.damping"]


def test_a_sharp_prior_holds_its_value(arm_of):
    """And is named as the source of what is known."""
    fit = Fit.of(solve_problem(arm_of(arm_log(), priors={"bodies/upper.mass": (1.3, 1e-5)})))
    np.testing.assert_allclose(fit.estimates[0].value, 1.3, atol=5e-5)
    assert EstimateFlag(Flag.FROM_PRIOR) in fit.estimates[0].flags


def test_stopping_keeps_the_best_so_far(arm_of):
    """Ctrl-C ends the search, not the program."""
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    problem = arm_of(arm_log())
    stopped = solve_problem(problem, callback=stop)
    assert stopped.ending is Ending.INTERRUPTED
    assert len(stopped.history) == 2
    assert Fit.of(stopped).status == "interrupted"


def test_adam_comes_to_the_same_estimates(arm_of, usual):
    """Adam converges to the same estimate."""
    adam = solve_problem(arm_of(arm_log()), SolveOptions(optimizer="adam", iterations=20))
    assert np.abs((values(adam) - values(usual)) / stds(usual)).max() < 3
