"""MAML for policies: adaptation by one policy gradient on rewards (Finn et al. 2017).

    phi = theta + alpha * grad_theta J(theta; D)

`J` is the DiCE surrogate, so that the derivative of `phi` has the right second-order terms; the gradient of
`log pi * A` alone, as in the first public code, leaves some out. Step sizes `alpha` are learned, one for each
parameter.
"""

from typing import Any

import jax
import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.policies.meta.advantages import dice_surrogate, discounted_returns, fit_baseline
from truesim.policies.meta.families import Experience
from truesim.policies.meta.gaussian_policy import Parameters, log_density
from truesim.policies.meta.meta_gradient import Adaptation


def init_maml(policy: Parameters, inner_rate: float) -> dict[str, Any]:
    """Meta-parameters: the policy, and one step size for each of its parameters."""
    return {"policy": policy, "rates": jax.tree.map(lambda x: jnp.full_like(x, inner_rate), policy)}


def maml(discount: float = 0.9) -> Adaptation:
    """Adaptation by one gradient of the discounted return.

    Args:
        discount: Factor on rewards from step to step.
    """

    def adapt(parameters: Any, experience: Experience) -> Parameters:
        policy = parameters["policy"]
        baseline = fit_baseline(experience, discounted_returns(experience.rewards, discount))

        def objective(candidate: Parameters) -> Array:
            logs = log_density(candidate, experience.observations, experience.actions)
            return dice_surrogate(logs, experience, baseline, discount)

        gradient = jax.grad(objective)(policy)
        return jax.tree.map(lambda x, rate, g: x + rate * g, policy, parameters["rates"], gradient)

    return adapt
