"""A posterior: what logs leave possible, as a mixture of Gaussians in the coordinates of the parameters.

Every way to a posterior ends here. Laplace's is one Gaussian at the best fit, a set of basins is one Gaussian for each,
and a fitted mixture has as many as it was given.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, ndtr

from truesim.core.errors import TruesimError
from truesim.core.typing import Float

DRAWS = 20_000
"""Samples by which the share of a posterior within its bounds is measured."""
ROUNDS = 100
"""Samples beyond a bound are drawn again so many times, and then moved onto it."""
HALVINGS = 80
"""Bisections for a quantile."""


@dataclasses.dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussians, cut off at bounds."""

    names: tuple[str, ...]
    """Name of each coordinate."""
    weights: Float[np.ndarray, "kernels"]
    means: Float[np.ndarray, "kernels size"]
    covariances: Float[np.ndarray, "kernels size size"]
    low: Float[np.ndarray, "size"]
    """Lower bounds, minus infinity for none."""
    high: Float[np.ndarray, "size"]

    @classmethod
    def of(
        cls,
        weights: Float[np.ndarray, "kernels"],
        means: Float[np.ndarray, "kernels size"],
        covariances: Float[np.ndarray, "kernels size size"],
        *,
        names: Sequence[str] = (),
        bounds: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> "Posterior":
        """A posterior from its kernels; weights are made to sum to one, coordinates are called x0, x1 … by default."""
        weights, means = np.asarray(weights, float), np.atleast_2d(np.asarray(means, float))
        covariances = np.asarray(covariances, float).reshape(len(means), means.shape[1], means.shape[1])
        names = tuple(names) or tuple(f"x{k}" for k in range(means.shape[1]))
        low, high = bounds or (np.full(means.shape[1], -np.inf), np.full(means.shape[1], np.inf))
        return cls(names, weights / weights.sum(), means, covariances, np.asarray(low), np.asarray(high))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.means.shape[1]

    @property
    def mean(self) -> Float[np.ndarray, "size"]:
        """Mean, before bounds cut anything off."""
        return self.weights @ self.means

    @property
    def covariance(self) -> Float[np.ndarray, "size size"]:
        """Covariance, before bounds cut anything off: within the kernels and between them."""
        apart = self.means - self.mean
        return np.einsum("k,kij->ij", self.weights, self.covariances + apart[:, :, None] * apart[:, None, :])

    @property
    def std(self) -> Float[np.ndarray, "size"]:
        """Standard deviation of each coordinate."""
        return np.sqrt(np.diag(self.covariance))

    def sample(self, n: int, seed: int = 0) -> Float[np.ndarray, "n size"]:
        """Coordinates drawn at random, within bounds; the same seed gives the same."""
        rng = np.random.default_rng(seed)
        drawn = self._drawn(n, rng)
        for _ in range(ROUNDS):
            outside = ~self._inside(drawn)
            if not outside.any():
                return drawn
            drawn[outside] = self._drawn(int(outside.sum()), rng)
        return np.clip(drawn, self.low, self.high)

    def log_density(self, theta: Float[np.ndarray, "*batch size"]) -> Float[np.ndarray, "*batch"]:
        """Logarithm of the density; minus infinity beyond a bound."""
        theta = np.asarray(theta, float)
        return np.where(self._inside(theta), self._log_mixture(theta) - self._log_share, -np.inf)

    def cdf(self, theta: Float[np.ndarray, "*batch size"]) -> Float[np.ndarray, "*batch size"]:
        """For each coordinate by itself, the probability of less: the rank of a truth among samples, from 0 to 1."""
        low, high = self._cdf(self.low), self._cdf(self.high)
        return np.clip((self._cdf(np.asarray(theta, float)) - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)

    def intervals(self, level: float = 0.95) -> tuple[Float[np.ndarray, "size"], Float[np.ndarray, "size"]]:
        """Ends between which each coordinate lies with probability `level`, with equal parts left out on both sides."""
        if not 0 < level < 1:
            raise TruesimError(f"The level of an interval is {level:g}; it must lie between 0 and 1, such as 0.95.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def quantile(self, part: float) -> Float[np.ndarray, "size"]:
        """The value of each coordinate below which it lies with probability `part`."""
        std = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        low = np.maximum((self.means - 40 * std).min(axis=0), self.low)
        high = np.minimum((self.means + 40 * std).max(axis=0), self.high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(middle) < part
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    def credibility(self, theta: Float[np.ndarray, "size"], n: int = 4000, seed: int = 0) -> float:
        """The probability of the smallest region that holds `theta`: of all places where the density is higher."""
        return float(np.mean(self.log_density(self.sample(n, seed)) > self.log_density(theta)))

    @functools.cached_property
    def _factors(self) -> Float[np.ndarray, "kernels size size"]:
        return np.linalg.cholesky(self.covariances)

    @functools.cached_property
    def _log_share(self) -> float:
        """Logarithm of the mass that bounds leave."""
        if np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high)):
            return 0.0
        inside = self._inside(self._drawn(DRAWS, np.random.default_rng(0)))
        return float(np.log(max(inside.mean(), 1 / DRAWS)))

    def _drawn(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n size"]:
        kernel = rng.choice(len(self.weights), size=n, p=self.weights)
        normal = rng.normal(size=(n, self.size))
        return self.means[kernel] + np.einsum("nij,nj->ni", self._factors[kernel], normal)

    def _inside(self, theta: np.ndarray) -> np.ndarray:
        return np.all((theta >= self.low) & (theta <= self.high), axis=-1)

    def _log_mixture(self, theta: np.ndarray) -> np.ndarray:
        apart = theta[..., None, :] - self.means
        scaled = np.linalg.solve(self._factors, apart[..., None])[..., 0]
        volume = np.log(np.diagonal(self._factors, axis1=1, axis2=2)).sum(axis=1) + self.size / 2 * np.log(2 * np.pi)
        with np.errstate(divide="ignore"):
            return logsumexp(np.log(self.weights) - volume - (scaled**2).sum(axis=-1) / 2, axis=-1)

    def _cdf(self, theta: np.ndarray) -> np.ndarray:
        std = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        return np.einsum("k,...ki->...i", self.weights, ndtr((theta[..., None, :] - self.means) / std))
