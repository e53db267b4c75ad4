"""The posterior as a mixture that holds likelihood and entropy in balance, begun from Laplace's.

The search runs in coordinates in which Laplace's posterior is a ball of radius one, so that one learning rate suits
every problem, and what is known well moves no less than what is known badly.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import optax
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.identify.fit import Solution
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.laplace import laplace
from truesim.identify.posterior.mixture import Evolution, Mixture
from truesim.identify.posterior.objectives import Evidence, Kernels
from truesim.identify.posterior.profile import Profile
from truesim.identify.posterior.trajectories import Cost

APART = 0.7
"""Distance of the kernels from the best fit where the search begins, in standard deviations; their spread makes up for
the rest."""
COOLED, PROBES = 0.5, 32
"""Part of all epochs after which the whole cost counts, and samples by which it is decided how much does at first."""


@dataclasses.dataclass(frozen=True)
class MixtureSettings:
    """How a mixture is fitted."""

    kernels: int = 3
    epochs: int = 100
    """Steps of Adam."""
    samples: int = 4
    """Of each kernel in each epoch."""
    rate: float = 0.1
    """Learning rate, in standard deviations; it falls to a fiftieth by the end."""
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

    means = np.random.default_rng(settings.seed).normal(size=(settings.kernels, start.size))
    search = Mixture(
        Kernels.around(APART * (means - means.mean(axis=0)), np.full(start.size, np.sqrt(1 - APART**2))),
        Evidence(settings.samples),
        rate=optax.cosine_decay_schedule(settings.rate, settings.epochs, alpha=0.02),
        seed=settings.seed,
    )

    def scaled(z: np.ndarray, part: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = cost(centre + z @ factor.T)
        return part * values, part * slopes @ factor

    with threadpool_limits(1):
        warm = _warm(scaled, start.size)
        for epoch in range(settings.epochs):
            part = warm ** max(0.0, 1 - epoch / (COOLED * settings.epochs))
            search.epoch(functools.partial(scaled, part=part), equal=part < 1)
            if watch is not None:
                watch(epoch + 1, settings.epochs)
    found = search.posterior()
    posterior = Posterior.of(
        found.weights,
        centre + found.means @ factor.T,
        factor @ found.covariances @ factor.T,
        names=start.names,
        bounds=(start.low, start.high),
    )
    return posterior, search.evolution.mapped(centre, factor)


def _warm(cost: Cost, size: int) -> float:
    """The part of the cost that counts at first: all of it if samples of Laplace's posterior cost what they should.

    Where the posterior is bent or has several parts, they cost far more. Then the search begins on a flatter cost, on
    which kernels spread before the posterior narrows under them.
    """
    z = np.random.default_rng(0).normal(size=(PROBES, size))
    best = cost(np.zeros((1, size)))[0][0]
    surplus = float(np.median(cost(z)[0] - best))
    return float(np.clip(np.median((z**2).sum(axis=1)) / 2 / max(surplus, 1e-12), 1e-3, 1.0))
