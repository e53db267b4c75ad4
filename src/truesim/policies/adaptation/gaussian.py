"""Normal distributions of simulator parameters, and the distance between two of them."""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float


class Gaussian(NamedTuple):
    """Normal distribution with full covariance."""

    mean: Float[np.ndarray, " size"]
    covariance: Float[np.ndarray, "size size"]

    @property
    def std(self) -> Float[np.ndarray, " size"]:
        """Standard deviation of each parameter."""
        return np.sqrt(np.diag(self.covariance))

    def sample(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "count size"]:
        """Random samples, one row each."""
        return self.mean + rng.standard_normal((count, len(self.mean))) @ np.linalg.cholesky(self.covariance).T

    def with_floor(self, floor: Float[np.ndarray, " size"]) -> "Gaussian":
        """The distribution with standard deviations of at least `floor`, and unchanged correlations."""
        factor = np.maximum(1.0, floor / self.std)
        return Gaussian(self.mean, self.covariance * np.outer(factor, factor))


def independent(mean: Float[np.ndarray, " size"], std: Float[np.ndarray, " size"]) -> Gaussian:
    """Distribution of independent parameters."""
    return Gaussian(np.asarray(mean, float), np.diag(np.asarray(std, float) ** 2))


def weighted_gaussian(samples: Float[np.ndarray, "count size"], weights: Float[np.ndarray, " count"]) -> Gaussian:
    """Distribution with the mean and the covariance of weighted samples; weights sum to 1."""
    mean = weights @ samples
    centered = samples - mean
    return Gaussian(mean, (centered * weights[:, None]).T @ centered)


def kl_divergence(new: Gaussian, old: Gaussian) -> float:
    """Kullback-Leibler divergence `KL(new || old)` [nat]."""
    precision = np.linalg.inv(old.covariance)
    moved = new.mean - old.mean
    logs = [np.linalg.slogdet(each.covariance)[1] for each in (old, new)]
    return 0.5 * float(
        np.trace(precision @ new.covariance) - len(moved) + moved @ precision @ moved + logs[0] - logs[1]
    )
