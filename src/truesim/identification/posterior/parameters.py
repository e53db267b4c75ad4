"""Posterior of parameters in SI units, by path."""

import dataclasses

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.mixture import MixtureHistory
from truesim.identification.posterior.ranges import RANGE_SAMPLES
from truesim.identification.problem.problem import Problem


@dataclasses.dataclass(frozen=True)
class ParameterRange:
    """Marginal distribution of one parameter, in SI units; arrays for a vector."""

    unit: str
    mean: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    """Lower end of the central interval."""
    high: Float[np.ndarray, "..."]
    """Upper end of the central interval."""


@dataclasses.dataclass(frozen=True)
class ParameterPosterior:
    """Posterior of a problem's parameters by path.

    Keys are paths such as `bodies/hand.mass`; a parameter that belongs to one log has the key `path@log`.
    """

    problem: Problem
    coordinates: Posterior
    """Mixture of Gaussians in the coordinates of the solved parameters."""
    history: MixtureHistory | None = None
    """Epochs of a variational mixture."""
    minima: int = 1
    """Number of minima that were found."""
    warnings: tuple[str, ...] = ()
    """Reasons not to trust the posterior, such as a model that does not fit."""

    def __post_init__(self) -> None:
        if self.coordinates.size != self.problem.solved.size:
            raise TruesimError(
                f"The posterior has {self.coordinates.size} coordinates; the problem has {self.problem.solved.size}."
            )

    @property
    def paths(self) -> tuple[str, ...]:
        """Path of each parameter."""
        return tuple(self.problem.solved.names)

    def sample(self, n: int, seed: int = 0) -> dict[str, Float[np.ndarray, "n ..."]]:
        """Random values by path, in SI units; shape `n` for scalars and `n k` for vectors.

        Args:
            n: Number of samples.
            seed: Seed; equal seeds give equal samples.
        """
        return self.values(self.coordinates.sample(n, seed))

    def values(self, theta: Float[np.ndarray, "n size"]) -> dict[str, Float[np.ndarray, "n ..."]]:
        """Values by path, in SI units, at given coordinates."""
        solved = self.problem.solved
        flat = np.asarray(self.problem.values(theta)[0])
        places = zip(solved, solved.number_slices(), strict=True)
        return {p.name: flat[:, at].reshape(len(flat), *np.shape(p.start)) for p, at in places}

    def ranges(self, level: float = 0.95, seed: int = 0) -> dict[str, ParameterRange]:
        """Mean, standard deviation and central interval by path, in SI units.

        Args:
            level: Probability of each interval by itself.
            seed: Seed of the samples from which ranges are computed.
        """
        if not 0 < level < 1:
            raise TruesimError(f"The level of a range is {level:g}; it must lie between 0 and 1, such as 0.95.")
        units = {p.name: p.unit for p in self.problem.solved}
        ends = [(1 - level) / 2, (1 + level) / 2]
        found = {}
        for path, x in self.sample(RANGE_SAMPLES, seed).items():
            numbers = (x.mean(axis=0), x.std(axis=0), *np.quantile(x, ends, axis=0))
            found[path] = ParameterRange(units[path], *map(np.asarray, numbers))
        return found
