"""Gaussian policy of plain arrays: a network for the mean, and a standard deviation that does not depend on the state.

Parameters are a tree of arrays, so that meta-learning can add, scale and differentiate them like numbers.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float

Parameters = Any
"""Parameters of a policy: a tree of arrays."""


def init_network(key: Array, sizes: Sequence[int], scale: float = 1.0) -> list[tuple[Array, Array]]:
    """Weights and biases of a network, with inputs weighted by `scale / sqrt(inputs)`.

    Args:
        key: Random key.
        sizes: Inputs, units of each hidden layer, outputs.
        scale: Factor on the standard deviation of weights.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(scale * jax.random.normal(k, (n, m)) / jnp.sqrt(n), jnp.zeros(m)) for k, n, m in pairs]


def apply_network(layers: Sequence[tuple[Array, Array]], inputs: Float[Array, "... n"]) -> Float[Array, "... m"]:
    """Outputs of a network with tanh between its layers."""
    rows = inputs.reshape(-1, inputs.shape[-1])
    for weight, bias in layers[:-1]:
        rows = jnp.tanh(rows @ weight + bias[None])
    weight, bias = layers[-1]
    return (rows @ weight + bias[None]).reshape(*inputs.shape[:-1], -1)


def init_policy(key: Array, sizes: Sequence[int], log_std: float = -0.5) -> Parameters:
    """Policy whose mean action is near zero everywhere.

    Args:
        key: Random key.
        sizes: Size of the observation, units of each hidden layer, size of the action.
        log_std: Logarithm of the standard deviation of actions.
    """
    layers = init_network(key, sizes)
    weight, bias = layers[-1]
    return {"mean": [*layers[:-1], (0.1 * weight, bias)], "log_std": jnp.full(sizes[-1], log_std)}


def mean_action(policy: Parameters, observation: Float[Array, "... no"]) -> Float[Array, "... na"]:
    """Action of the policy without noise."""
    return apply_network(policy["mean"], observation)


def sample_action(policy: Parameters, observation: Float[Array, " no"], key: Array) -> Float[Array, " na"]:
    """Action with the noise of the policy."""
    mean = mean_action(policy, observation)
    return mean + jnp.exp(policy["log_std"]) * jax.random.normal(key, mean.shape)


def log_density(
    policy: Parameters, observations: Float[Array, "... no"], actions: Float[Array, "... na"]
) -> Float[Array, "..."]:
    """Logarithm of the density of actions, up to a constant."""
    precision = jnp.broadcast_to(jnp.exp(-policy["log_std"]), actions.shape)
    scaled = (actions - mean_action(policy, observations)) * precision
    return -0.5 * jnp.sum(scaled**2, axis=-1) - jnp.sum(policy["log_std"])
