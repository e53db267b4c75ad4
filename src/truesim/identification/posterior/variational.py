"""Variational posterior: a mixture that maximizes the evidence lower bound, started from the Laplace approximation.

The optimization runs in coordinates in which the Laplace approximation is a standard normal distribution.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.kernels import Kernels
from truesim.identification.posterior.laplace import laplace
from truesim.identification.posterior.mixture import Mixture, MixtureHistory
from truesim.identification.posterior.objectives import EvidenceLowerBound
from truesim.identification.posterior.profile import ProfileCost
from truesim.identification.posterior.trajectories import Cost
from truesim.identification.solve.solution import Solution

CLOSEST_KERNELS, FARTHEST_KERNELS = 0.2, 1.5
"""Smallest and largest initial distance of the kernels from the best fit, in standard deviations. Where the Laplace
approximation fits badly, kernels start narrow and far apart, so that they reach the ends of a curved posterior."""
NARROWEST_KERNEL = 0.3
"""Smallest initial standard deviation of a kernel, in standard deviations of the Laplace approximation."""
LAPLACE_PROBES = 32
"""Number of samples that measure how well the Laplace approximation fits."""
EQUAL_WEIGHT_EPOCHS = 0.8
"""Fraction of epochs in which weights are held equal, so that no kernel is dropped before it has converged."""
MATCHED_SCATTER = 0.06
"""The optimization ends when the log densities of mixture and posterior typically differ by less than this."""


@dataclasses.dataclass(frozen=True)
class MixtureOptions:
    """Size, epochs and seed of a variational mixture."""

    kernels: int = 3
    epochs: int = 100
    """Maximum number of natural-gradient steps."""
    samples: int = 8
    """Samples of each kernel in each epoch; at least twice the number of coordinates plus two."""
    rate: float = 0.7
    """Learning rate, at most one; it decays to a tenth by the end."""
    seed: int = 0
    """Seed of the initial kernels and of all samples."""

    def __post_init__(self) -> None:
        for name in ("kernels", "epochs", "samples"):
            if getattr(self, name) < 1:
                raise TruesimError(f"A mixture cannot have {getattr(self, name)} {name}; give at least 1.")


MixtureCallback = Callable[[int, int], None]
"""Called after every epoch with its number and the maximum number of epochs."""


def mixture(
    solution: Solution,
    options: MixtureOptions | None = None,
    callback: MixtureCallback | None = None,
    found: Uncertainty | None = None,
) -> tuple[Posterior, MixtureHistory]:
    """Variational posterior of a solved problem, and its history.

    Args:
        solution: The solved problem.
        options: Size, epochs and seed of the mixture.
        callback: Called after every epoch.
        found: Covariance of the solution, if it is known already.
    """
    around = laplace(solution, found)
    return mixture_around(ProfileCost(solution, around.covariance), around, options, callback)


def mixture_around(
    cost: Cost, start: Posterior, options: MixtureOptions | None = None, callback: MixtureCallback | None = None
) -> tuple[Posterior, MixtureHistory]:
    """Mixture closest to the density `exp(-cost)`, and its history.

    Args:
        cost: Negative logarithm of prior times likelihood, with its gradient.
        start: Laplace approximation.
        options: Size, epochs and seed of the mixture.
        callback: Called after every epoch.
    """
    options = options or MixtureOptions()
    center, factor = start.mean, np.linalg.cholesky(start.covariance)

    def scaled_cost(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = cost(center + z @ factor.T)
        return values, gradients @ factor

    with threadpool_limits(1):
        distance = _kernel_distance(scaled_cost, start.size, options.seed)
        search = Mixture(
            _initial_kernels(options.kernels, start.size, distance, options.seed),
            EvidenceLowerBound(options.samples),
            rate=libraries.optax.exponential_decay(options.rate, options.epochs, 0.1),
            seed=options.seed,
        )
        for epoch in range(options.epochs):
            scatter = search.epoch(scaled_cost, equal=epoch < EQUAL_WEIGHT_EPOCHS * options.epochs)
            if callback is not None:
                callback(epoch + 1, options.epochs)
            if scatter < MATCHED_SCATTER:
                break
    found = search.posterior()
    posterior = Posterior.of(
        found.weights,
        center + found.means @ factor.T,
        factor @ found.covariances @ factor.T,
        names=start.names,
        bounds=(start.low, start.high),
    )
    return posterior, search.history.transform(center, factor)


def _kernel_distance(cost: Cost, size: int, seed: int) -> float:
    """Initial distance of kernels: typical error of the log density of the Laplace approximation."""
    z = np.random.default_rng(seed).normal(size=(LAPLACE_PROBES, size))
    f = cost(z)[0] - (z**2).sum(axis=1) / 2
    return float(np.clip(np.abs(f - np.median(f)).mean(), CLOSEST_KERNELS, FARTHEST_KERNELS))


def _initial_kernels(count: int, size: int, distance: float, seed: int) -> Kernels:
    """Kernels whose means are stratified samples of a Gaussian in every coordinate; a single kernel is the Gaussian."""
    if count == 1:
        return Kernels.around(np.zeros((1, size)), np.ones(size))
    places = np.tile((np.arange(count) + 0.5) / count, (size, 1))
    means = libraries.scipy.stats.norm.ppf(np.random.default_rng(seed).permuted(places, axis=1)).T
    width = np.sqrt(max(1 - distance**2, NARROWEST_KERNEL**2))
    return Kernels.around(distance * means / means.std(axis=0), np.full(size, width))
