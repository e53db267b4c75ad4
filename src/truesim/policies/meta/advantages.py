"""Returns, baselines and surrogate objectives of policy gradients.

A surrogate is a function of the policy's parameters whose derivatives, on fixed samples, estimate derivatives of the
expected return. `sum(log pi * A)` has the right gradient and a wrong second derivative: it leaves out that the
distribution of samples depends on the parameters. DiCE (Foerster et al. 2018) is right in all orders; with
`box(x) = exp(x - stop_gradient(x))`,

    J = sum_t g^t box(l_1 + ... + l_t) r_t  +  sum_t g^t (1 - box(l_t)) b_t,     l_t = log pi(a_t | s_t).
"""

from typing import Any

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.policies.meta.families import Experience

RIDGE = 1e-5
"""Ridge of the baseline's regression; larger values flatten the baseline."""


def discounted_returns(rewards: Float[Array, "... steps"], discount: float) -> Float[Array, "... steps"]:
    """Discounted sum of the rewards from each step on."""

    def add(later: Any, reward: Any) -> tuple[Any, Any]:
        total = reward + discount * later
        return total, total

    by_time = jnp.moveaxis(rewards, -1, 0)
    return jnp.moveaxis(jax.lax.scan(add, jnp.zeros_like(by_time[0]), by_time, reverse=True)[1], 0, -1)


def fit_baseline(experience: Experience, targets: Float[Array, "episodes steps"]) -> Float[Array, "episodes steps"]:
    """Values of a polynomial baseline, cubic in observations and in time, fitted to returns by ridge regression."""
    steps = targets.shape[-1]
    time = jnp.broadcast_to(jnp.linspace(0.0, 1.0, steps), targets.shape)[..., None]
    base = jnp.concatenate([experience.observations, time], axis=-1)
    features = jnp.concatenate([base, base**2, base**3, jnp.ones_like(time)], axis=-1)
    flat = (features * experience.alive[..., None]).reshape(-1, features.shape[-1])
    normal = flat.T @ flat + RIDGE * len(flat) * jnp.eye(flat.shape[-1])
    return features @ jnp.linalg.solve(normal, flat.T @ (targets * experience.alive).ravel())


def estimate_advantages(experience: Experience, discount: float) -> Float[Array, "episodes steps"]:
    """Discounted returns less the baseline, with mean 0 and standard deviation 1 over the steps that count."""
    returns = discounted_returns(experience.rewards, discount)
    raw = returns - fit_baseline(experience, returns)
    count = jnp.sum(experience.alive)
    mean = jnp.sum(raw * experience.alive) / count
    deviation = jnp.sqrt(jnp.sum((raw - mean) ** 2 * experience.alive) / count)
    return (raw - mean) / (deviation + 1e-6) * experience.alive


def score_surrogate(
    logs: Float[Array, "episodes steps"], advantages: Float[Array, "episodes steps"]
) -> Float[Array, ""]:
    """Surrogate `mean_t(log pi * A)`, whose gradient alone is right."""
    return jnp.mean(logs * advantages)


def dice_surrogate(
    logs: Float[Array, "episodes steps"],
    experience: Experience,
    baseline: Float[Array, "episodes steps"],
    discount: float,
) -> Float[Array, ""]:
    """DiCE surrogate of the discounted return per step, right in all derivatives.

    Args:
        logs: Log densities of the actions as functions of the policy's parameters.
        experience: The episodes.
        baseline: Values that do not depend on actions; they only reduce the variance of the first derivative.
        discount: Factor on rewards from step to step.
    """
    alive = experience.alive
    logs = logs * alive
    weights = discount ** jnp.broadcast_to(jnp.arange(logs.shape[-1], dtype=logs.dtype), logs.shape)
    rewarded = _box(jnp.cumsum(logs, axis=-1)) * experience.rewards
    return jnp.mean(weights * (rewarded + (1.0 - _box(logs)) * baseline * alive))


def _box(x: Array) -> Array:
    """One, with the derivatives of the exponential function."""
    return jnp.exp(x - jax.lax.stop_gradient(x))
