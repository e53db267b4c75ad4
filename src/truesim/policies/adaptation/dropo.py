"""DROPO: a distribution of simulator parameters from logged transitions, offline (Tiboni et al. 2023).

Each transition is simulated from its logged state with many parameters; the distribution is the one under which the
logged next states are most likely, when simulated ones are normal:

    max_phi sum_t log N(s'_t; mean_j s'_t(xi_j), cov_j s'_t(xi_j) + noise),     xi_j ~ p_phi

No policy runs, nothing is tried on the robot, and parameters that the log does not determine keep a wide distribution.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.policies.adaptation.gaussian import Gaussian, independent

SimulateTransitions = Callable[[Float[np.ndarray, "count size"]], Float[np.ndarray, "count transitions states"]]
"""Next states of all logged transitions for each row of parameters."""
TRUNCATION = 2.0
"""Samples are within this number of standard deviations."""
LOG_WIDTH = 4.0
"""Range of standard deviations that are searched, as a factor of `exp(-LOG_WIDTH * 2)` to 1 of the largest."""


@dataclasses.dataclass(frozen=True)
class DropoOptions:
    """Sizes of DROPO."""

    samples: int = 100
    """Parameters by which each transition is simulated."""
    noise: float = 1e-3
    """Standard deviation of what is not modelled, as a fraction of the size of each state; 1e-3 to 3e-2."""
    evaluations: int = 1500
    """Distributions that CMA-ES tries."""
    seed: int = 0


def transition_likelihood(
    simulated: Float[np.ndarray, "count transitions states"],
    real: Float[np.ndarray, "transitions states"],
    noise: Float[np.ndarray, " states"],
) -> float:
    """Mean log-likelihood of real next states, when simulated ones are normal."""
    centered = simulated - simulated.mean(axis=0)
    covariance = np.einsum("cti,ctj->tij", centered, centered) / len(simulated) + np.diag(noise**2)
    error = (real - simulated.mean(axis=0))[..., None]
    squared = np.sum(error * np.linalg.solve(covariance, error), axis=(1, 2))
    value = -0.5 * np.mean(squared + np.linalg.slogdet(covariance)[1])
    return float(value) if np.isfinite(value) else -np.inf


def dropo(
    simulate: SimulateTransitions,
    real: Float[np.ndarray, "transitions states"],
    low: Float[np.ndarray, " size"],
    high: Float[np.ndarray, " size"],
    options: DropoOptions | None = None,
) -> Gaussian:
    """Distribution of parameters that explains logged transitions.

    Args:
        simulate: Simulates all transitions for rows of parameters.
        real: Logged next states.
        low: Smallest value of each parameter.
        high: Largest value.
        options: Sizes.
    """
    options = options or DropoOptions()
    low, high = np.asarray(low, float), np.asarray(high, float)
    if not np.all(low < high):
        raise TruesimError(f"The range of parameter {int(np.argmin(high - low))} is empty.")
    size, width = len(low), high - low
    rng = np.random.default_rng(options.seed)
    normal = libraries.scipy.stats.truncnorm(-TRUNCATION, TRUNCATION).rvs((options.samples, size), random_state=rng)
    noise = options.noise * np.maximum(np.std(real, axis=0), 1e-12)

    def distribution(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations from coordinates in [0, 1]; a quarter of the range is the largest deviation."""
        return low + width * unit[:size], 0.25 * width * np.exp(2.0 * LOG_WIDTH * (unit[size:] - 1.0))

    def cost(unit: np.ndarray) -> float:
        mean, std = distribution(unit)
        samples = np.clip(mean + std * normal, low, high)
        return min(-transition_likelihood(simulate(samples), real, noise), 1e300)

    bounds = np.tile([0.0, 1.0], (2 * size, 1))
    start = np.append(np.full(size, 0.5), np.full(size, 0.75))
    optimizer = libraries.cmaes.CMA(mean=start, sigma=0.25, bounds=bounds, seed=options.seed)
    best, lowest = start, np.inf
    for _ in range(max(1, options.evaluations // optimizer.population_size)):
        points = [optimizer.ask() for _ in range(optimizer.population_size)]
        told = [(point, cost(point)) for point in points]
        optimizer.tell(told)
        point, value = min(told, key=lambda pair: pair[1])
        best, lowest = (point, value) if value < lowest else (best, lowest)
        if optimizer.should_stop():
            break
    return independent(*distribution(best))
