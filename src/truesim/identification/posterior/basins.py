"""Multimodal posteriors: one Gaussian in each basin in which several starts end."""

from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.laplace import laplace, trajectory_laplace
from truesim.identification.posterior.trajectories import Trajectories
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.levenberg_marquardt import StageOptions, solve
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem
from truesim.optimize import group_minima

LIGHTEST_BASIN = 1e-6
"""Basins with a smaller share of the weight are dropped."""
BASIN_DISTANCE = 1.0
"""Minima that differ by fewer standard deviations in every coordinate belong to one basin."""
START_REACH = 1.0
"""Largest distance of random starts from the first one in every coordinate: a factor of 2.7, or a whole value."""


def combine_basins(posteriors: Sequence[Posterior], costs: Sequence[float]) -> Posterior:
    """Mixture of the Gaussians of several minima, weighted by their probabilities.

    The weight of a basin is `exp(-cost)` times the square root of the determinant of its covariance.

    Args:
        posteriors: Laplace approximation of each minimum.
        costs: Half the chi-square of each, including priors.
    """
    if not posteriors:
        raise TruesimError("A posterior needs at least one basin.")
    volumes = np.array([np.linalg.slogdet(p.covariance)[1] / 2 for p in posteriors])
    logs = volumes - np.asarray(costs, float)
    weights = np.exp(logs - logs.max())
    kept = [k for k in range(len(weights)) if weights[k] > LIGHTEST_BASIN * weights.sum()]
    first = posteriors[0]
    return Posterior.of(
        weights[kept],
        np.stack([posteriors[k].mean for k in kept]),
        np.stack([posteriors[k].covariance for k in kept]),
        names=first.names,
        bounds=(first.low, first.high),
    )


def trajectory_multistart_posterior(
    trajectories: Trajectories, measured: np.ndarray, theta: Float[np.ndarray, "basins size"]
) -> Posterior:
    """Posterior of a measured trajectory from several minima, such as `Basins.theta` of basin hopping.

    Args:
        trajectories: Trajectory function, noise and prior.
        measured: Measurements, in the shape of a trajectory; NaN where nothing was measured.
        theta: Start in each basin; each is solved again.
    """
    each = [trajectory_laplace(trajectories, measured, start) for start in np.atleast_2d(theta)]
    costs = [float((trajectories.residual(p.mean, measured)[0] ** 2).sum() / 2) for p in each]
    kept = _distinct(np.stack([p.mean for p in each]), np.array(costs), each[0].std)
    return combine_basins([each[k] for k in kept], [costs[k] for k in kept])


def multistart_posterior(
    problem: Problem,
    starts: Float[np.ndarray, "starts size"],
    options: SolveOptions | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> tuple[Posterior, tuple[Solution, ...]]:
    """Posterior of all minima in which solves from several starts end, and their solutions, best first.

    All costs use the noise of the best solve, so that a minimum with larger residuals is less probable.

    Args:
        problem: The problem.
        starts: Coordinates of the starts.
        options: Options of each solve.
        callback: Called after every solve with the number of finished solves and of all solves.
    """
    solutions = []
    for k, start in enumerate(starts):
        solutions.append(solve_problem(problem, options, theta=start))
        if callback is not None:
            callback(k + 1, len(starts))
    best = min(solutions, key=lambda s: float(np.log(s.weights.noise).mean()))
    settled = [_solve_alike(s, best) for s in solutions]
    costs = np.array([cost for _, cost in settled])
    kept = _distinct(np.stack([s.theta for s, _ in settled]), costs, laplace(best).std)
    chosen = tuple(settled[k][0] for k in kept)
    return combine_basins([laplace(s) for s in chosen], costs[kept].tolist()), chosen


def scatter_starts(problem: Problem, theta: Float[np.ndarray, " size"], count: int, seed: int) -> np.ndarray:
    """Starts of a multistart solve: `theta` itself, then random coordinates around it within bounds."""
    low, high = problem.parameters.bounds
    apart = np.random.default_rng(seed).uniform(-START_REACH, START_REACH, size=(count - 1, len(theta)))
    return np.concatenate([theta[None], np.clip(theta + apart, low, high)])


def _solve_alike(solution: Solution, best: Solution) -> tuple[Solution, float]:
    """Solution that minimizes the cost with the weights and windows of the best one, and that cost."""
    with threadpool_limits(1):
        found = solve(solution.problem, solution.at, best.weights, best.windows, StageOptions())
    solved = Solution.at_point(
        solution.problem,
        found.at,
        weights=best.weights,
        windows=best.windows,
        sensor_noise=solution.sensor_noise,
        ending=solution.ending,
    )
    return solved, found.cost


def _distinct(theta: np.ndarray, costs: np.ndarray, width: np.ndarray) -> list[int]:
    """Index of the lowest minimum of each basin."""
    found = group_minima(theta, costs, width, BASIN_DISTANCE)
    return [int(np.flatnonzero((theta == one).all(axis=1))[0]) for one in found.theta]
