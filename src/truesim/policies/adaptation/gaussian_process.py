"""Regression by a Gaussian process, and Bayesian optimization with it, for a few tens of noisy evaluations.

Inputs are in the unit cube, outputs are standardized. The kernel is Matern 5/2 with one length for each input;
lengths and noise maximize the marginal likelihood under broad priors.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from truesim.core import libraries
from truesim.core.typing import Float

SMALLEST_NOISE = 1e-4
"""Smallest standard deviation of noise of standardized outputs, which keeps the kernel matrix regular."""
PRIOR_LENGTH, PRIOR_NOISE = 0.5, 0.3
"""Medians of log-normal priors of lengths and of noise, with a factor of e for a standard deviation."""


class GaussianProcess(NamedTuple):
    """Posterior of a function from evaluations."""

    inputs: Float[np.ndarray, "count size"]
    lengths: Float[np.ndarray, " size"]
    noise: float
    """Standard deviation of noise of standardized outputs."""
    factor: Float[np.ndarray, "count count"]
    """Cholesky factor of the kernel matrix with noise."""
    weights: Float[np.ndarray, " count"]
    offset: float
    scale: float

    def predict(self, points: Float[np.ndarray, "n size"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Mean and standard deviation of the function, without noise."""
        across = _kernel(points, self.inputs, self.lengths)
        solved = libraries.scipy.linalg.solve_triangular(self.factor, across.T, lower=True)
        variance = np.maximum(1.0 - np.sum(solved**2, axis=0), 1e-12)
        return self.offset + self.scale * (across @ self.weights), self.scale * np.sqrt(variance)


def _kernel(a: np.ndarray, b: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Matern 5/2 kernel of all pairs of rows."""
    squared = np.sum(((a[:, None] - b[None]) / lengths) ** 2, axis=-1)
    distance = np.sqrt(5.0 * squared)
    return (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)


def fit_gaussian_process(
    inputs: Float[np.ndarray, "count size"], outputs: Float[np.ndarray, " count"]
) -> GaussianProcess:
    """Fit a Gaussian process to evaluations.

    Args:
        inputs: Points in the unit cube, one row each.
        outputs: Noisy values at them.
    """
    offset, scale = float(np.mean(outputs)), max(float(np.std(outputs)), 1e-12)
    targets, size = (outputs - offset) / scale, inputs.shape[1]
    center = np.log(np.append(np.full(size, PRIOR_LENGTH), PRIOR_NOISE))

    def factorize(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        noise = np.exp(logs[-1]) + SMALLEST_NOISE
        matrix = _kernel(inputs, inputs, np.exp(logs[:-1])) + noise**2 * np.eye(len(inputs))
        factor = np.linalg.cholesky(matrix)
        return factor, libraries.scipy.linalg.cho_solve((factor, True), targets)

    def loss(logs: np.ndarray) -> float:
        factor, weights = factorize(logs)
        likelihood = 0.5 * targets @ weights + np.sum(np.log(np.diag(factor)))
        return float(likelihood + 0.5 * np.sum((logs - center) ** 2))

    bounds = [(np.log(0.02), np.log(20.0))] * size + [(np.log(1e-4), np.log(3.0))]
    best = libraries.scipy.optimize.minimize(loss, center, method="L-BFGS-B", bounds=bounds).x
    factor, weights = factorize(best)
    return GaussianProcess(inputs, np.exp(best[:-1]), float(np.exp(best[-1])), factor, weights, offset, scale)


def expected_improvement(
    process: GaussianProcess, points: Float[np.ndarray, "n size"], incumbent: float
) -> Float[np.ndarray, " n"]:
    """Expected amount by which points exceed the incumbent's value."""
    mean, std = process.predict(points)
    z = (mean - incumbent) / std
    normal = libraries.scipy.stats.norm
    return std * (z * normal.cdf(z) + normal.pdf(z))


def maximize_on_cube(
    score: Callable[[np.ndarray], np.ndarray],
    size: int,
    rng: np.random.Generator,
    around: np.ndarray,
    count: int = 2000,
) -> Float[np.ndarray, " size"]:
    """Best of random points of the unit cube, half of them near given points."""
    wide = rng.random((count, size))
    near = around[rng.integers(len(around), size=count)] + 0.05 * rng.standard_normal((count, size))
    points = np.clip(np.concatenate([wide, near, around]), 0.0, 1.0)
    return points[int(np.argmax(score(points)))]
