"""Posteriors of identification problems: curvature, basins, simulated repeats, ranges and robot files."""

import dataclasses
import json

import numpy as np
import pytest

from tests.identification.recorded import ARM_TRUTH, arm_log
from truesim.core.errors import TruesimError
from truesim.identification.posterior import (
    Calibration,
    MixtureOptions,
    ParameterPosterior,
    Posterior,
    laplace,
    mixture,
    multistart_posterior,
    ranges,
    repeat_fits,
)
from truesim.identification.posterior.basins import scatter_starts
from truesim.identification.posterior.profile import ProfileCost
from truesim.identification.posterior.ranges import sample_values, write_ranges
from truesim.identification.posterior.synthetic import replace_measurements, simulate_logs
from truesim.identification.problem.build import ProblemOptions, build
from truesim.identification.solve.stages import solve_problem


class Quiet(np.random.Generator):
    """A generator without noise."""

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Zeros."""
        return np.zeros(size)


def test_laplace_holds_the_truth(solved):
    """Its intervals are those of the fit, in coordinates."""
    posterior = laplace(solved)
    np.testing.assert_array_equal(posterior.mean, solved.theta)
    assert posterior.names == (
        "bodies/upper.mass",
        "bodies/lower.mass",
        "joints/shoulder.damping",
        "joints/elbow.damping",
    )
    values = sample_values(posterior, solved.problem, 2000)
    assert np.all(np.abs(values.mean(axis=0) - ARM_TRUTH) < 4 * values.std(axis=0))


def test_the_cost_of_parameters_alone(solved):
    """Its gradient is that of its values, and one standard deviation from the fit it is half a unit higher."""
    posterior = laplace(solved)
    profile, factor = ProfileCost(solved, posterior.covariance), np.linalg.cholesky(posterior.covariance)
    theta, step = posterior.sample(3, seed=1), 1e-4
    gradients = profile(theta)[1] @ factor
    for k, along in enumerate(factor.T):
        difference = (profile(theta + step * along)[0] - profile(theta - step * along)[0]) / (2 * step)
        np.testing.assert_allclose(gradients[:, k], difference, rtol=1e-3, atol=1e-4)
    best = profile(solved.theta[None])[0]
    around = profile(solved.theta + np.concatenate([factor.T, -factor.T]))[0]
    np.testing.assert_allclose(around - best, 0.5, rtol=0.1)


def test_beyond_a_bound_the_cost_goes_on_rising(solved):
    """Nothing is simulated there, and still its gradient is that of its values."""
    posterior = laplace(solved)
    profile, low = ProfileCost(solved, posterior.covariance), solved.problem.parameters.bounds[0]
    k = int(np.flatnonzero(np.isfinite(low))[-1])
    theta = np.tile(solved.theta, (3, 1))
    theta[:, k] = low[k] - posterior.std[k] * np.array([29.9, 30.0, 30.1])
    costs, gradients = profile(theta)
    assert costs[0] < costs[1] < costs[2] < np.inf
    np.testing.assert_allclose(gradients[1, k], (costs[2] - costs[0]) / (theta[2, k] - theta[0, k]), rtol=0.05)


def test_a_mixture_of_a_well_determined_problem_is_laplace(solved):
    """Where the cost is a parabola, likelihood and entropy leave Laplace's posterior as it is."""
    start = laplace(solved)
    found, evolution = mixture(solved, MixtureOptions(epochs=40))
    np.testing.assert_allclose(found.std / start.std, 1.0, atol=0.03)
    np.testing.assert_allclose((found.mean - start.mean) / start.std, 0.0, atol=0.03)
    assert evolution.means.shape[1:] == (3, 4)
    assert evolution.scatter[-1] < 0.1


def test_one_basin_is_found_once(solved):
    """From several starts the arm comes to one minimum, and its posterior is Laplace's."""
    starts = scatter_starts(solved.problem, solved.theta, 3, seed=0)
    found, solutions = multistart_posterior(solved.problem, starts)
    assert len(solutions) == len(found.weights) == 1
    np.testing.assert_allclose((found.mean - solved.theta) / laplace(solved).std, 0.0, atol=0.05)


def test_a_simulated_log_without_noise_gives_its_parameters_back(solved):
    """Through the whole chain: simulation, preparation, fit."""
    truth = laplace(solved).sample(2, seed=5)
    deviations = [x[1] for x in simulate_logs(solved, truth)]
    again = solve_problem(replace_measurements(solved, deviations, Quiet(np.random.PCG64())))
    assert again.problem.kernel is solved.problem.kernel
    np.testing.assert_allclose((again.theta - truth[1]) / laplace(solved).std, 0.0, atol=0.02)


def test_repeats_can_be_taken_up_again(solved):
    """A run that stopped after one repeat goes on with the second as if it had not."""
    truths = laplace(solved).sample(2, seed=1)
    both = list(repeat_fits(solved, ["laplace"], truths))
    later = list(repeat_fits(solved, ["laplace"], truths, skip=1))
    np.testing.assert_array_equal(both[1]["laplace"].rank, later[0]["laplace"].rank)
    with pytest.raises(TruesimError, match="laplace"):
        next(repeat_fits(solved, ["laplas"], truths))


def test_coverage_in_few_repeats(solved):
    """Within what chance leaves to a calibrated posterior in 40 repeats, at two levels."""
    truths = laplace(solved).sample(40, seed=2)
    found = Calibration.of(laplace(solved).names, [r["laplace"] for r in repeat_fits(solved, ["laplace"], truths)])
    for level in (0.95, 0.5):
        low, high = found.chance(level, 0.999)
        assert low <= found.coverage(level) <= high
        assert np.all(found.interval_coverage(level) >= low)


def test_overconfidence_is_noticed():
    """Truths that lie beyond 95 % regions in a third of the repeats are reported as such."""
    rng = np.random.default_rng(0)
    found = Calibration(("a",), np.clip(0.5 + 0.6 * rng.normal(size=(200, 1)), 0, 1), np.full(200, 0.97))
    assert found.coverage(0.95) == 0.0
    assert found.interval_coverage(0.95)[0] < 0.9
    assert found.uniformity()[0] < 1e-3


def test_ranges_go_to_json(solved, tmp_path):
    """By path, in SI units, with the correlations."""
    posterior = laplace(solved)
    found = ranges(posterior, solved.problem, 0.9)
    write_ranges(tmp_path / "r.json", found, level=0.9, values=sample_values(posterior, solved.problem, 500))
    document = json.loads((tmp_path / "r.json").read_text())
    mass = document["ranges"]["bodies/lower.mass"]
    assert mass["unit"] == "kg"
    assert mass["low"] < mass["mean"] < mass["high"]
    assert mass["high"] - mass["low"] == pytest.approx(2 * 1.645 * mass["std"], rel=0.1)
    assert np.shape(document["correlations"]["matrix"]) == (4, 4)


def test_samples_leave_by_path_in_si_units(solved):
    """Values of the coordinates' samples, by path; ranges likewise; equal seeds give equal samples."""
    posterior = ParameterPosterior(solved.problem, laplace(solved))
    drawn = posterior.sample(300, seed=7)
    assert tuple(drawn) == posterior.paths == tuple(solved.problem.parameters.names)
    flat = sample_values(posterior.coordinates, solved.problem, 300, seed=7)
    np.testing.assert_array_equal(np.stack(list(drawn.values()), axis=1), flat)
    np.testing.assert_array_equal(drawn["bodies/lower.mass"], posterior.sample(300, seed=7)["bodies/lower.mass"])
    found = posterior.ranges(0.9, seed=3)
    for r in ranges(posterior.coordinates, solved.problem, 0.9, seed=3):
        mine = found[r.path]
        assert mine.unit == r.unit
        numbers = (mine.mean, mine.std, mine.low, mine.high), (r.mean, r.std, r.low, r.high)
        np.testing.assert_allclose(*numbers, rtol=1e-11)
    with pytest.raises(TruesimError, match="level"):
        posterior.ranges(1.5)


def test_vectors_and_values_of_single_logs_have_their_shape(arm_of):
    """A vector is an array of samples by numbers; a value of one log has its name after an at sign."""
    model = arm_of(arm_log()).simulator.model
    table = {name: {"bodies/upper.mass": "free"} for name in ("first", "second")}
    logs = [dataclasses.replace(arm_log(), name=name) for name in table]
    problem = build(model, logs, ["bodies/lower.com"], ProblemOptions(per_log=table))
    size = problem.parameters.size
    coordinates = Posterior.of(np.ones(1), problem.parameters.start[None], 1e-4 * np.eye(size)[None])
    drawn = ParameterPosterior(problem, coordinates).sample(5, seed=0)
    assert {path: x.shape for path, x in drawn.items()} == {
        "bodies/lower.com": (5, 3),
        "bodies/upper.mass@first": (5,),
        "bodies/upper.mass@second": (5,),
    }
    few = Posterior.of(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    with pytest.raises(TruesimError, match="2 coordinates"):
        ParameterPosterior(problem, few)


def test_every_draw_follows_the_seed(solved):
    """Samples, the mass within bounds and the credibility differ from seed to seed, and repeat with it."""
    whole = laplace(solved)
    cut = dataclasses.replace(whole, low=whole.mean - 0.3 * whole.std)
    for draw in (
        lambda seed: cut.log_density(whole.mean, seed),
        lambda seed: cut.credibility(whole.mean + 0.5 * whole.std, seed=seed),
        lambda seed: mixture(solved, MixtureOptions(epochs=2, seed=seed))[0].means,
    ):
        np.testing.assert_array_equal(draw(1), draw(1))
        assert np.any(draw(1) != draw(2))
