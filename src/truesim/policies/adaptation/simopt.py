"""SimOpt: move a distribution of simulator parameters until rollouts look like the real ones (Chebotar et al. 2019).

    min_phi E_{xi ~ p_phi} c(xi)   such that   KL(p_phi || p_old) <= eps,      c(xi) = D(rollout of xi, real rollout)

Neither rewards nor the full state of the real system are needed. The bound keeps the distribution where the policy that
made the rollouts is still of use. Two ways to make the step:

- `reps_step` needs costs of samples only: weights `exp(-c / eta)`, with `eta` from the dual of the problem.
- `gradient_step` needs gradients of the cost through the simulator: the second-order solution of the same problem,
whose
  precision grows by the mean curvature of the cost, `P + rho H`, with the largest `rho` that the bound allows.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.policies.adaptation.gaussian import Gaussian, kl_divergence, weighted_gaussian

Cost = Callable[[Float[np.ndarray, "count size"]], Float[np.ndarray, " count"]]
"""Discrepancy between real rollouts and simulated ones, for each row of parameters."""
CostGradient = Callable[[Float[np.ndarray, "count size"]], Float[np.ndarray, "count size"]]
"""Gradient of the discrepancy by the parameters, row by row."""
LARGEST_STEP = 1e12
"""Upper end of the bracket of the step size."""


@dataclasses.dataclass(frozen=True)
class SimOptOptions:
    """Sizes and bounds of SimOpt."""

    kl: float = 1.0
    """Largest Kullback-Leibler divergence of one step [nat]; larger ones need fewer rounds and more trust."""
    samples: int = 500
    """Simulated parameters of each step."""
    steps: int = 3
    """Steps with the same real rollouts."""
    floor: tuple[float, ...] = ()
    """Smallest standard deviation of each parameter, without which the distribution collapses to a point."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.kl > 0:
            raise TruesimError(f"The bound of the divergence is {self.kl:g}; it must be positive.")
        if self.samples < 2:
            raise TruesimError(f"SimOpt needs at least 2 samples, not {self.samples}.")


def discrepancy(
    simulated: Float[np.ndarray, "... steps channels"],
    real: Float[np.ndarray, "steps channels"],
    scales: Float[np.ndarray, " channels"],
    *,
    absolute: float = 0.5,
    squared: float = 1.0,
    width: float = 5.0,
) -> Float[np.ndarray, "..."]:
    """Distance between rollouts: mean absolute plus mean squared error, after a Gaussian filter over time.

    Args:
        simulated: Simulated observations.
        real: Real ones, over the same steps.
        scales: Size of each channel, by which errors are divided.
        absolute: Weight of absolute errors.
        squared: Weight of squared errors.
        width: Standard deviation of the filter [steps]; 0 for none.
    """
    error = (simulated - real) / scales
    if width > 0:
        error = libraries.scipy.ndimage.gaussian_filter1d(error, width, axis=-2, truncate=4.0)
    value = absolute * np.mean(np.abs(error), axis=(-2, -1)) + squared * np.mean(error**2, axis=(-2, -1))
    return np.nan_to_num(value, nan=np.inf, posinf=np.inf)


def reps_weights(costs: Float[np.ndarray, " count"], kl: float) -> Float[np.ndarray, " count"]:
    """Weights of samples by relative entropy policy search; samples that diverged have none.

    Minimizes the dual `g(eta) = eta kl + eta log mean_j exp(-c_j / eta)` over the logarithm of `eta`.
    """
    finite = np.isfinite(costs)
    if not finite.any():
        raise TruesimError("All simulated rollouts diverged; begin with a narrower distribution.")
    shifted = np.where(finite, costs - np.min(costs[finite]), 0.0)
    scale = max(float(np.std(shifted[finite])), 1e-300)

    def weights(log_eta: float) -> Float[np.ndarray, " count"]:
        return np.where(finite, np.exp(-shifted / (scale * np.exp(log_eta))), 0.0)

    def dual(log_eta: float) -> float:
        return float(np.exp(log_eta) * (kl + np.log(np.mean(weights(log_eta)))))

    best = libraries.scipy.optimize.minimize_scalar(dual, bounds=(-12.0, 12.0), method="bounded").x
    found = weights(best)
    return found / np.sum(found)


def reps_step(distribution: Gaussian, cost: Cost, options: SimOptOptions, rng: np.random.Generator) -> Gaussian:
    """One step from costs of samples.

    Args:
        distribution: The distribution before.
        cost: Discrepancy for rows of parameters.
        options: Sizes and bounds.
        rng: Random numbers.
    """
    samples = distribution.sample(rng, options.samples)
    found = weighted_gaussian(samples, reps_weights(cost(samples), options.kl))
    jitter = 1e-9 * np.diag(np.diag(distribution.covariance))
    return _floored(Gaussian(found.mean, found.covariance + jitter), options)


def gradient_step(
    distribution: Gaussian, gradient: CostGradient, options: SimOptOptions, rng: np.random.Generator
) -> Gaussian:
    """One step from gradients at samples.

    The mean curvature is `H = P E[(xi - mean) grad c']` (Stein's lemma), without its negative part.

    Args:
        distribution: The distribution before.
        gradient: Gradients of the discrepancy for rows of parameters.
        options: Sizes and bounds.
        rng: Random numbers.
    """
    samples = distribution.sample(rng, options.samples)
    gradients = gradient(samples)
    kept = np.all(np.isfinite(gradients), axis=1)
    if not kept.any():
        raise TruesimError("No gradient of a simulated rollout is finite; begin with a narrower distribution.")
    gradients, centered = gradients[kept], samples[kept] - distribution.mean
    mean, precision = np.mean(gradients, axis=0), np.linalg.inv(distribution.covariance)
    stein = precision @ (centered.T @ (gradients - mean)) / len(gradients)
    values, vectors = np.linalg.eigh(0.5 * (stein + stein.T))
    curvature = (vectors * np.maximum(values, 0.0)) @ vectors.T

    def moved(rho: float) -> Gaussian:
        covariance = np.linalg.inv(precision + rho * curvature)
        return Gaussian(distribution.mean - rho * covariance @ mean, 0.5 * (covariance + covariance.T))

    return _floored(moved(_largest_step(lambda rho: kl_divergence(moved(rho), distribution), options.kl)), options)


def simopt_round(
    distribution: Gaussian, step: Callable[[Gaussian, np.random.Generator], Gaussian], options: SimOptOptions
) -> Gaussian:
    """Distribution after several steps with the same real rollouts.

    Args:
        distribution: The distribution before.
        step: One step, such as `lambda d, rng: reps_step(d, cost, options, rng)`.
        options: Sizes and bounds.
    """
    rng = np.random.default_rng(options.seed)
    for _ in range(options.steps):
        distribution = step(distribution, rng)
    return distribution


def _largest_step(divergence: Callable[[float], float], bound: float) -> float:
    """Largest step size whose divergence is within the bound, by bisection of its logarithm."""
    low, high = -30.0, float(np.log(LARGEST_STEP))
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(np.exp(middle)) <= bound else (low, middle)
    return float(np.exp(low))


def _floored(distribution: Gaussian, options: SimOptOptions) -> Gaussian:
    return distribution.with_floor(np.array(options.floor)) if options.floor else distribution
