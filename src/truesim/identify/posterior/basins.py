"""The posterior of several basins: where more than one set of parameters explains the logs, a Gaussian in each."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identify.fit import Settings, Solution, solve_problem
from truesim.identify.levenberg_marquardt import Search, solve
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.laplace import laplace, laplace_of
from truesim.identify.posterior.trajectories import Trajectories
from truesim.identify.problem import Problem
from truesim.identify.search import basins_of

NEGLIGIBLE = 1e-6
"""Basins of less weight than this are left out."""
APART = 1.0
"""Minima that differ by fewer standard deviations in every coordinate are one basin."""
REACH = 1.0
"""Starts lie within this distance of the first in every coordinate: a factor of 2.7 either way, or a whole value."""


def weighed(posteriors: Sequence[Posterior], costs: Sequence[float]) -> Posterior:
    """One posterior of the Gaussians of several minima, each weighed by the probability that it holds.

    A basin holds `exp(-cost)` times its volume, the root of its covariance's determinant.

    Args:
        posteriors: Laplace's posterior of each minimum.
        costs: Half the chi-square of each, priors included.
    """
    if not posteriors:
        raise TruesimError("There are no basins to make a posterior of.")
    volumes = np.array([np.linalg.slogdet(p.covariance)[1] / 2 for p in posteriors])
    logs = volumes - np.asarray(costs, float)
    weights = np.exp(logs - logs.max())
    kept = [k for k in range(len(weights)) if weights[k] > NEGLIGIBLE * weights.sum()]
    first = posteriors[0]
    return Posterior.of(
        weights[kept],
        np.stack([posteriors[k].mean for k in kept]),
        np.stack([posteriors[k].covariance for k in kept]),
        names=first.names,
        bounds=(first.low, first.high),
    )


def basins_posterior(
    trajectories: Trajectories, measured: np.ndarray, theta: Float[np.ndarray, "basins size"]
) -> Posterior:
    """The posterior of the basins that a search found, such as `Basins.theta` of basin hopping.

    Args:
        trajectories: The trajectory as a function of the parameters, its noise and the prior.
        measured: Like a trajectory; NaN where nothing was measured.
        theta: The minimum of each basin; each is descended to once more.
    """
    each = [laplace_of(trajectories, measured, start) for start in np.atleast_2d(theta)]
    costs = [float((trajectories.residual(p.mean, measured)[0] ** 2).sum() / 2) for p in each]
    kept = _different(np.stack([p.mean for p in each]), np.array(costs), each[0].std)
    return weighed([each[k] for k in kept], [costs[k] for k in kept])


def basins(
    problem: Problem,
    starts: Float[np.ndarray, "starts size"],
    settings: Settings | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> tuple[Posterior, tuple[Solution, ...]]:
    """The posterior of all minima that solves from several starts come to, and those minima, best first.

    Costs are compared with the noise of the best solve: a minimum that leaves larger residuals is less probable.

    Args:
        problem: The problem.
        starts: Coordinates to start from.
        settings: How each is solved.
        watch: Called after every solve with their number so far and in all.
    """
    solutions = []
    for k, start in enumerate(starts):
        solutions.append(solve_problem(problem, settings, theta=start))
        if watch is not None:
            watch(k + 1, len(starts))
    best = min(solutions, key=lambda s: float(np.log(s.weights.noise).mean()))
    settled = [_settled(s, best) for s in solutions]
    costs = np.array([cost for _, cost in settled])
    kept = _different(np.stack([s.theta for s, _ in settled]), costs, laplace(best).std)
    chosen = tuple(settled[k][0] for k in kept)
    return weighed([laplace(s) for s in chosen], costs[kept].tolist()), chosen


def scattered(problem: Problem, theta: Float[np.ndarray, "size"], count: int, seed: int) -> np.ndarray:
    """Coordinates to start from: `theta` itself, then random ones around it within bounds."""
    low, high = problem.parameters.bounds
    apart = np.random.default_rng(seed).uniform(-REACH, REACH, size=(count - 1, len(theta)))
    return np.concatenate([theta[None], np.clip(theta + apart, low, high)])


def _settled(solution: Solution, best: Solution) -> tuple[Solution, float]:
    """A solution after a descent on the cost of the best one, and that cost."""
    with threadpool_limits(1):
        found = solve(solution.problem, solution.at, best.weights, best.windows, Search())
    return dataclasses.replace(solution, at=found.at, weights=best.weights, windows=best.windows), found.cost


def _different(theta: np.ndarray, costs: np.ndarray, width: np.ndarray) -> list[int]:
    """One of each basin, the lowest."""
    found = basins_of(theta, costs, width, APART)
    return [int(np.flatnonzero((theta == one).all(axis=1))[0]) for one in found.theta]
