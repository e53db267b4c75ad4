"""Posterior in the coordinates of the parameters: a mixture of Gaussians, cut off at bounds.

All methods return this class: the Laplace approximation has one Gaussian at the best fit, a multistart posterior one in
each basin, and a variational mixture a given number. `ParameterPosterior` converts it to SI units by path.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float

BOUND_SAMPLES = 20_000
"""Number of samples from which the mass within the bounds is estimated."""
REDRAWS = 100
"""Number of times that samples beyond a bound are drawn again, before they are clipped to it."""
QUANTILE_BISECTIONS = 80
"""Bisection steps of a quantile."""


@dataclasses.dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussians, cut off at bounds."""

    names: tuple[str, ...]
    """Name of each coordinate."""
    weights: Float[np.ndarray, " kernels"]
    means: Float[np.ndarray, "kernels size"]
    covariances: Float[np.ndarray, "kernels size size"]
    low: Float[np.ndarray, " size"]
    """Lower bounds, minus infinity for none."""
    high: Float[np.ndarray, " size"]

    @classmethod
    def of(
        cls,
        weights: Float[np.ndarray, " kernels"],
        means: Float[np.ndarray, "kernels size"],
        covariances: Float[np.ndarray, "kernels size size"],
        *,
        names: Sequence[str] = (),
        bounds: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> "Posterior":
        """Posterior from its kernels; weights are normalized, coordinates are named x0, x1 … by default."""
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
    def mean(self) -> Float[np.ndarray, " size"]:
        """Mean without the effect of bounds."""
        return self.weights @ self.means

    @property
    def covariance(self) -> Float[np.ndarray, "size size"]:
        """Covariance without the effect of bounds, within and between kernels."""
        apart = self.means - self.mean
        return np.einsum("k,kij->ij", self.weights, self.covariances + apart[:, :, None] * apart[:, None, :])

    @property
    def std(self) -> Float[np.ndarray, " size"]:
        """Standard deviation of each coordinate."""
        return np.sqrt(np.diag(self.covariance))

    def sample(self, n: int, seed: int = 0) -> Float[np.ndarray, "n size"]:
        """Random coordinates within bounds; equal seeds give equal samples."""
        rng = np.random.default_rng(seed)
        drawn = self._draw(n, rng)
        for _ in range(REDRAWS):
            outside = ~self._inside(drawn)
            if not outside.any():
                return drawn
            drawn[outside] = self._draw(int(outside.sum()), rng)
        return np.clip(drawn, self.low, self.high)

    def log_density(self, theta: Float[np.ndarray, "*batch size"], seed: int = 0) -> Float[np.ndarray, "*batch"]:
        """Logarithm of the density; minus infinity beyond a bound.

        Args:
            theta: Coordinates.
            seed: Seed of the samples that estimate the mass within the bounds; without bounds nothing is drawn.
        """
        theta = np.asarray(theta, float)
        return np.where(self._inside(theta), self._log_mixture(theta) - self._log_mass(seed), -np.inf)

    def cdf(self, theta: Float[np.ndarray, "*batch size"]) -> Float[np.ndarray, "*batch size"]:
        """Marginal cumulative distribution of each coordinate, from 0 to 1."""
        low, high = self._cdf(self.low), self._cdf(self.high)
        return np.clip((self._cdf(np.asarray(theta, float)) - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)

    def intervals(self, level: float = 0.95) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Lower and upper ends of the central interval of probability `level` for each coordinate."""
        if not 0 < level < 1:
            raise TruesimError(f"The level of an interval is {level:g}; it must lie between 0 and 1, such as 0.95.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def quantile(self, part: float) -> Float[np.ndarray, " size"]:
        """Quantile of each coordinate by itself."""
        std = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        low = np.maximum((self.means - 40 * std).min(axis=0), self.low)
        high = np.minimum((self.means + 40 * std).max(axis=0), self.high)
        for _ in range(QUANTILE_BISECTIONS):
            middle = (low + high) / 2
            below = self.cdf(middle) < part
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    def credibility(self, theta: Float[np.ndarray, " size"], n: int = 4000, seed: int = 0) -> float:
        """Probability of the smallest region that contains `theta`: of all points with a higher density."""
        return float(np.mean(self.log_density(self.sample(n, seed), seed) > self.log_density(theta, seed)))

    @functools.cached_property
    def _factors(self) -> Float[np.ndarray, "kernels size size"]:
        return np.linalg.cholesky(self.covariances)

    @functools.cached_property
    def _log_masses(self) -> dict[int, float]:
        return {}

    def _log_mass(self, seed: int) -> float:
        """Logarithm of the mass within the bounds."""
        if np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high)):
            return 0.0
        if seed not in self._log_masses:
            inside = self._inside(self._draw(BOUND_SAMPLES, np.random.default_rng(seed)))
            self._log_masses[seed] = float(np.log(max(inside.mean(), 1 / BOUND_SAMPLES)))
        return self._log_masses[seed]

    def _draw(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n size"]:
        kernel = rng.choice(len(self.weights), size=n, p=self.weights)
        normal = rng.normal(size=(n, self.size))
        return self.means[kernel] + np.einsum("nij,nj->ni", self._factors[kernel], normal)

    def _inside(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(np.all((theta >= self.low) & (theta <= self.high), axis=-1))

    def _log_mixture(self, theta: np.ndarray) -> np.ndarray:
        apart = theta[..., None, :] - self.means
        scaled = np.linalg.solve(self._factors, apart[..., None])[..., 0]
        volume = np.log(np.diagonal(self._factors, axis1=1, axis2=2)).sum(axis=1) + self.size / 2 * np.log(2 * np.pi)
        with np.errstate(divide="ignore"):
            return np.asarray(
                libraries.scipy.special.logsumexp(np.log(self.weights) - volume - (scaled**2).sum(axis=-1) / 2, axis=-1)
            )

    def _cdf(self, theta: np.ndarray) -> np.ndarray:
        std = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        below = libraries.scipy.special.ndtr((theta[..., None, :] - self.means) / std)
        return np.einsum("k,...ki->...i", self.weights, below)
