"""Regression of a policy on actions that it should take: the common part of cloning and distillation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from truesim.core import libraries
from truesim.core.typing import Array, Bool, Float
from truesim.policies.actors import MemorylessNetwork, PolicyNetwork
from truesim.policies.learners.base import clipped

GRADIENT_NORM = 1.0
"""Gradients of a regression are scaled to at most this norm; larger lets outliers change more."""


class Lessons(NamedTuple):
    """Sequences of observations and of the actions that belong to them: time first, then sequences."""

    observation: Float[Array, "time batch no"]
    """Normalized."""
    fresh: Bool[Array, "time batch"]
    """True where an episode begins."""
    action: Float[Array, "time batch na"]
    counts: Float[Array, "time batch"]
    """1 for steps that count, 0 for those that fill up shorter sequences."""


class ActionRegression:
    """Least squares of a network's actions by Adam, in minibatches of sequences."""

    def __init__(self, network: PolicyNetwork | MemorylessNetwork, learning_rate: float):
        """Prepare.

        Args:
            network: Network of the policy.
            learning_rate: Of Adam.
        """
        self._network = network
        self._adam = libraries.optax.adam(learning_rate)

    def start(self, weights: Any) -> Any:
        """State of the optimizer."""
        return self._adam.init(weights)

    def sequences(self, lessons: Lessons, memory: Array) -> tuple[Lessons, Array]:
        """Lessons in sequences; for a network without memory every step is one."""
        if self._network.is_recurrent:
            return lessons, memory
        flat = jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:]), lessons)
        return flat, jnp.zeros((flat.counts.shape[1], 0))

    def error(self, weights: Any, memory: Array, lessons: Lessons) -> Float[Array, ""]:
        """Mean squared error of an action."""
        wrong = self._network.unroll(weights, memory, lessons.observation, lessons.fresh) - lessons.action
        return jnp.sum(lessons.counts * jnp.mean(wrong**2, axis=-1)) / jnp.maximum(jnp.sum(lessons.counts), 1.0)

    def improve(
        self, weights: Any, optimizer: Any, lessons: Lessons, memory: Array, order: Array
    ) -> tuple[Any, Any, Array]:
        """Weights, optimizer and mean error after one step for each minibatch.

        Args:
            weights: Weights of the network.
            optimizer: State of the optimizer.
            lessons: Sequences.
            memory: Memory before each sequence.
            order: Sequences of each minibatch, shape (minibatches, size).
        """

        def step(carry: tuple[Any, Any], rows: Any) -> tuple[tuple[Any, Any], Array]:
            weights, optimizer = carry
            batch = jax.tree.map(lambda x: x[:, rows], lessons)
            error, gradient = jax.value_and_grad(self.error)(weights, memory[rows], batch)
            change, optimizer = self._adam.update(clipped(gradient, GRADIENT_NORM), optimizer)
            return (jax.tree.map(jnp.add, weights, change), optimizer), error

        (weights, optimizer), errors = jax.lax.scan(step, (weights, optimizer), order)
        return weights, optimizer, errors.mean()


def minibatch_order(key: Array, count: int, minibatches: int, epochs: int) -> Array:
    """Sequences in random order for every epoch, shape (epochs minibatches, size); what does not divide is left out."""
    size = max(count // minibatches, 1)
    orders = [jax.random.permutation(k, count)[: count // size * size] for k in jax.random.split(key, epochs)]
    return jnp.concatenate([order.reshape(-1, size) for order in orders])
