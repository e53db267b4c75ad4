"""A pendulum with correlated length and center of mass: the posterior is a ridge.

The center of mass lies at a fraction of the length, and only the product of both, its distance from the pivot, is
identifiable. The Laplace posterior is tangent to the ridge; a mixture fitted by likelihood and entropy follows its
bend. With two parameters the exact posterior can be computed on a grid, which gives the true widths.
"""

from typing import Any

import numpy as np

from experiments.real2sim.pendulum import NOISE, recorded, text, trajectory
from truesim.core.typing import Float
from truesim.identification.posterior import MixtureOptions, Posterior, Trajectories, mixture_around, trajectory_laplace
from truesim.identification.posterior.trajectories import Cost
from truesim.report.figures import PageFigure
from truesim.report.posterior_figures import pairs_figure

TRUTH = np.array([0.5, 0.7])
"""Length [m], and the fraction of it at which the center of mass lies."""
PRIOR = (np.array([0.55, 0.65]), np.array([0.12, 0.15]))
"""Mean and standard deviation of the prior."""
DRAWN = 2000
ALONG, ACROSS = np.linspace(0.2, 1.2, 400), np.linspace(-6e-3, 6e-3, 41)
"""The grid: lengths [m], and distances of the center of mass from that of the best fit [m]."""
OPTIONS = MixtureOptions(kernels=20)


def grid_posterior(cost: Cost, best: Float[np.ndarray, "2"]) -> tuple[np.ndarray, np.ndarray]:
    """Points of a grid along the ridge, and their probabilities."""
    length, center = (x.ravel() for x in np.meshgrid(ALONG, best.prod() + ACROSS))
    theta = np.stack([length, center / length], axis=1)
    logs = np.concatenate([-cost(some)[0] for some in np.array_split(theta, 50)]) - np.log(length)
    weights = np.exp(logs - logs.max())
    return theta, weights / weights.sum()


def coupled(seed: int) -> tuple[str, Any, Any, list[PageFigure]]:
    """Title, header and rows of a table, and the figure."""
    recording = recorded(text(TRUTH[:1], [TRUTH.prod()]), seed)
    predict = trajectory(recording, lambda theta: (theta[:1], theta[:1] * theta[1:]))
    trajectories = Trajectories(predict, TRUTH, noise=NOISE, prior=PRIOR)
    start = trajectory_laplace(trajectories, recording.headings, PRIOR[0])
    cost = trajectories.negative_log_posterior(recording.headings)
    bent, _ = mixture_around(cost, start, OPTIONS)
    theta, weights = grid_posterior(cost, start.mean)
    samples: dict[str, Posterior] = {"Laplace": start, "likelihood and entropy": bent}
    drawn = {name: posterior.sample(DRAWN, seed) for name, posterior in samples.items()}
    evenly = {name: (some, np.full(DRAWN, 1 / DRAWN)) for name, some in drawn.items()}
    rows = [_row(name, cost, *points) for name, points in {**evenly, "exact, on a grid": (theta, weights)}.items()]
    title = f"Length and center of mass of one pendulum, truth {TRUTH}, product {TRUTH.prod():.3f} m"
    header = ("posterior", "std of length [m]", "of fraction", "correlation", "product [m]", "its std [m]", "misfit")
    words = (
        "Only the product of length and fraction is identifiable. Dots are samples, the cross is the truth. "
        "The misfit of a typical sample, half a chi-square beyond that of the best fit, is 0.7 if it lies on the ridge."
    )
    figure = pairs_figure(drawn, ("length [m]", "fraction"), TRUTH)
    return title, header, rows, [PageFigure("A ridge", words, figure)]


def _row(name: str, cost: Cost, theta: Float[np.ndarray, "n 2"], weights: Float[np.ndarray, " n"]) -> tuple[Any, ...]:
    """Row of the table for a posterior."""
    product = theta.prod(axis=1)
    covariance, mean = np.cov(theta.T, aweights=weights, ddof=0), weights @ product
    std = np.sqrt(np.diag(covariance))
    misfit = np.concatenate([cost(some)[0] for some in np.array_split(theta, 50)])
    order = np.argsort(misfit)
    typical = misfit[order][np.searchsorted(np.cumsum(weights[order]), 0.5)] - misfit.min()
    apart = np.sqrt(weights @ (product - mean) ** 2)
    return (name, *map(float, (*std, covariance[0, 1] / std.prod(), mean, apart, typical)))
