"""NoRML: adaptation without rewards (Yang et al. 2019).

    phi = theta + offset + alpha * grad_theta mean(A(s, a, s') log pi_theta(a | s))

The advantage `A` is a network of a transition, learned together with `theta`, `offset` and `alpha` from rewards in
training. At test time only observations and actions are needed. The offset lets the policy that explores differ from
the one that performs.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.policies.meta.advantages import score_surrogate
from truesim.policies.meta.families import Experience
from truesim.policies.meta.gaussian_policy import Parameters, apply_network, init_network, log_density


def init_norml(key: Array, policy: Parameters, advantage_sizes: Sequence[int], inner_rate: float) -> dict[str, Any]:
    """Meta-parameters: policy, offset, learned advantage, and one step size for each parameter of the policy.

    Args:
        key: Random key.
        policy: Parameters of the policy.
        advantage_sizes: Size of a transition (two observations and an action), units of each hidden layer, 1.
        inner_rate: Step sizes at the start.
    """
    return {
        "policy": policy,
        "offset": jax.tree.map(jnp.zeros_like, policy),
        "advantage": init_network(key, advantage_sizes),
        "rates": jax.tree.map(lambda x: jnp.full_like(x, inner_rate), policy),
    }


def norml(parameters: Any, experience: Experience) -> Parameters:
    """Adapted policy from transitions; rewards of the experience are not used.

    Args:
        parameters: Meta-parameters of `init_norml`.
        experience: Episodes of `parameters["policy"]` in one task.
    """
    policy = parameters["policy"]
    transitions = jnp.concatenate([experience.following, experience.observations, experience.actions], axis=-1)
    advantages = apply_network(parameters["advantage"], transitions)[..., 0] * experience.alive

    def objective(candidate: Parameters) -> Array:
        return score_surrogate(log_density(candidate, experience.observations, experience.actions), advantages)

    gradient = jax.grad(objective)(policy)
    return jax.tree.map(lambda x, o, a, g: x + o + a * g, policy, parameters["offset"], parameters["rates"], gradient)
