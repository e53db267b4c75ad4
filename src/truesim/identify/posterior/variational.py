"""The posterior as a mixture that holds likelihood and entropy in balance, begun from Laplace's.

The search runs in coordinates in which Laplace's posterior is a ball of radius one.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import optax
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.identify.fit import Solution
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.kernels import Kernels
from truesim.identify.posterior.laplace import laplace
from truesim.identify.posterior.mixture import Evolution, Mixture
from truesim.identify.posterior.objectives import Evidence
from truesim.identify.posterior.profile import Profile
from truesim.identify.posterior.trajectories import Cost

NEAR, FAR, WIDTH = 0.2, 1.5, 0.3
"""Where the search begins, in standard deviations: the least and the largest distance of the kernels from the best fit,
and their least spread. Where Laplace's posterior fits badly, kernels begin narrow and far apart, and so find the ends
of a bent posterior."""
PROBES = 32
"""Samples that tell how well Laplace's posterior fits."""
EQUAL = 0.8
"""Part of all epochs in which weights stay equal, so that no kernel is given up before it has found its place."""
ALIKE = 0.06
"""The search ends where the mixture's density typically differs from the posterior's by no more than this part."""


@dataclasses.dataclass(frozen=True)
class MixtureSettings:
    """How a mixture is fitted."""

    kernels: int = 3
    epochs: int = 100
    """Steps along the natural gradient, at most."""
    samples: int = 8
    """Of each kernel in each epoch; two more than twice the number of coordinates if that is more."""
    rate: float = 0.7
    """Learning rate, at most one; it falls to a tenth by the end."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("kernels", "epochs", "samples"):
            if getattr(self, name) < 1:
                raise TruesimError(f"A mixture with {getattr(self, name)} {name} cannot be fitted; give at least 1.")


Watch = Callable[[int, int], None]
"""Called after every epoch with their number so far and in all."""


def mixture(
    solution: Solution, settings: MixtureSettings | None = None, watch: Watch | None = None
) -> tuple[Posterior, Evolution]:
    """The posterior of a solved problem as a mixture, and how it came about.

    Args:
        solution: The solved problem.
        settings: How; sensible for most problems by default.
        watch: Called after every epoch.
    """
    around = laplace(solution)
    return mixture_around(Profile(solution, around.covariance), around, settings, watch)


def mixture_around(
    cost: Cost, start: Posterior, settings: MixtureSettings | None = None, watch: Watch | None = None
) -> tuple[Posterior, Evolution]:
    """The mixture nearest to the density `exp(-cost)`, and how it came about.

    Args:
        cost: Minus the logarithm of prior times likelihood, with its gradient.
        start: Where to begin: Laplace's posterior.
        settings: How.
        watch: Called after every epoch.
    """
    settings = settings or MixtureSettings()
    centre, factor = start.mean, np.linalg.cholesky(start.covariance)

    def scaled(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = cost(centre + z @ factor.T)
        return values, slopes @ factor

    with threadpool_limits(1):
        search = Mixture(
            _scattered(settings.kernels, start.size, _apart(scaled, start.size), settings.seed),
            Evidence(settings.samples),
            rate=optax.exponential_decay(settings.rate, settings.epochs, 0.1),
            seed=settings.seed,
        )
        for epoch in range(settings.epochs):
            scatter = search.epoch(scaled, equal=epoch < EQUAL * settings.epochs)
            if watch is not None:
                watch(epoch + 1, settings.epochs)
            if scatter < ALIKE:
                break
    found = search.posterior()
    posterior = Posterior.of(
        found.weights,
        centre + found.means @ factor.T,
        factor @ found.covariances @ factor.T,
        names=start.names,
        bounds=(start.low, start.high),
    )
    return posterior, search.evolution.mapped(centre, factor)


def _apart(cost: Cost, size: int) -> float:
    """How far apart kernels begin: by how much, in logarithms, Laplace's density differs from the posterior's."""
    z = np.random.default_rng(0).normal(size=(PROBES, size))
    f = cost(z)[0] - (z**2).sum(axis=1) / 2
    return float(np.clip(np.abs(f - np.median(f)).mean(), NEAR, FAR))


def _scattered(count: int, size: int, apart: float, seed: int) -> Kernels:
    """Kernels whose means share a Gaussian evenly between them, coordinate by coordinate; one alone is the Gaussian."""
    if count == 1:
        return Kernels.around(np.zeros((1, size)), np.ones(size))
    places = np.tile((np.arange(count) + 0.5) / count, (size, 1))
    means = norm.ppf(np.random.default_rng(seed).permuted(places, axis=1)).T
    width = np.sqrt(max(1 - apart**2, WIDTH**2))
    return Kernels.around(apart * means / means.std(axis=0), np.full(size, width))
