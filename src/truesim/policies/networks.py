"""Networks of policies and critics: multilayer perceptrons as lists of weights, and normalization of their inputs."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.typing import Array, Float

Layers = list[tuple[Array, Array]]
"""Weight matrix (inputs, outputs) and bias of every layer."""
POLICY_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "elu": jax.nn.elu, "relu": jax.nn.relu}
MAX_NORMALIZED = 10.0
"""Bound of normalized observations; larger lets outliers through."""
MIN_VARIANCE = 1e-4
"""Smallest variance by which observations are divided; larger keeps constant observations smaller."""


def make_layers(rng: np.random.Generator, sizes: Sequence[int], last: float) -> Layers:
    """Orthogonal weights of gain sqrt(2), the last layer's of gain `last`; biases are zero."""
    layers: Layers = []
    for k, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        u, _, v = np.linalg.svd(rng.standard_normal((inputs, outputs)), full_matrices=False)
        gain = last if k == len(sizes) - 2 else np.sqrt(2.0)
        layers.append(((gain * u @ v).astype(np.float32), np.zeros(outputs, np.float32)))
    return layers


def apply_layers(layers: Layers, x: Float[Array, "*batch n"], activation: str) -> Float[Array, "*batch m"]:
    """Output of a multilayer perceptron, whose last layer is linear."""
    if activation not in POLICY_ACTIVATIONS:
        raise unknown_name("activation", activation, POLICY_ACTIVATIONS)
    for W, b in layers[:-1]:
        x = POLICY_ACTIVATIONS[activation](x @ W + b)
    W, b = layers[-1]
    return x @ W + b


class MeanNetwork(Protocol):
    """Mean action of a policy as a function of its normalized observation."""

    def init(self, rng: np.random.Generator, inputs: int, outputs: int) -> Any:
        """Weights before training: a tree of arrays."""

    def apply(self, weights: Any, observation: Array) -> Array:
        """Mean actions of a batch."""

    def penalty(self, weights: Any, observation: Array) -> Array:
        """Number that is added to the loss of a minibatch."""


class Normalizer(NamedTuple):
    """Running mean and variance of observations."""

    mean: Float[Array, " n"]
    variance: Float[Array, " n"]
    seen: Float[Array, ""]
    """Number of observations."""

    @classmethod
    def identity(cls, size: int) -> "Normalizer":
        """Normalizer that changes nothing."""
        return cls(np.zeros(size, np.float32), np.ones(size, np.float32), np.zeros((), np.float32))

    def __call__(self, x: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Observations with zero mean and unit variance, within `MAX_NORMALIZED`."""
        scaled = (x - self.mean) / jnp.sqrt(jnp.maximum(self.variance, MIN_VARIANCE))
        return jnp.clip(scaled, -MAX_NORMALIZED, MAX_NORMALIZED)

    def updated(self, x: Float[Array, "samples n"]) -> "Normalizer":
        """Normalizer that has seen more observations (parallel update of Chan, Golub and LeVeque)."""
        count, mean, variance = len(x), x.mean(0), x.var(0)
        total = self.seen + count
        shift = mean - self.mean
        combined = self.variance * self.seen + variance * count + shift**2 * self.seen * count / total
        return Normalizer(self.mean + shift * count / total, combined / total, total)
