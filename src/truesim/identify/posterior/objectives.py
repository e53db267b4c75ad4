"""What a fitted mixture makes small: the loss of the Real2Sim paper, and a bound on the evidence.

Both are expectations over the mixture, differentiated through its samples. The published loss alone is least where
every kernel has shrunk to a point: it estimates, and its spread says how far the search has come. With the entropy
beside the likelihood the least lies at the posterior.
"""

import abc
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float

TEMPERATURE = 2 / 3
"""Of the Gumbel softmax, as published."""


class Kernels(NamedTuple):
    """Numbers that describe a mixture without constraints."""

    logits: Float[Array, "kernels"]
    means: Float[Array, "kernels size"]
    factors: Float[Array, "kernels size size"]
    """Logarithms of the diagonals of the covariances' Cholesky factors; below them, entries over the diagonal's."""

    @classmethod
    def around(cls, means: Float[np.ndarray, "kernels size"], std: Float[np.ndarray, "size"]) -> "Kernels":
        """Kernels of equal weight and without correlations."""
        count, size = np.shape(means)
        factor = np.diag(np.log(np.broadcast_to(np.asarray(std, float), size)))
        return cls(np.zeros(count), np.asarray(means, float), np.tile(factor, (count, 1, 1)))

    @property
    def weights(self) -> Float[Array, "kernels"]:
        """Probability of each kernel."""
        return jax.nn.softmax(self.logits)

    @property
    def cholesky(self) -> Float[Array, "kernels size size"]:
        """Lower Cholesky factors of the covariances."""
        scale = jnp.exp(jnp.diagonal(self.factors, axis1=1, axis2=2))
        return scale[:, :, None] * (jnp.tril(self.factors, -1) + jnp.eye(scale.shape[1])[None])

    def moved(self, step: "Kernels") -> "Kernels":
        """The mixture after a step that each kernel takes in its own frame, in units of its own spread.

        `mu + L dmu` and `L (1 + dN)`: what a step means does not depend on units or correlations of the coordinates.
        """
        spread = self.cholesky
        scale = jnp.diagonal(step.factors, axis1=1, axis2=2)
        turned = spread @ (jnp.tril(step.factors, -1) + jax.vmap(jnp.diag)(jnp.exp(scale)))
        diagonal = jnp.diagonal(turned, axis1=1, axis2=2)
        factors = jnp.tril(turned, -1) / diagonal[:, :, None] + jax.vmap(jnp.diag)(jnp.log(diagonal))
        means = self.means + jnp.einsum("kij,kj->ki", spread, step.means)
        return Kernels(self.logits + step.logits, means, factors)

    def log_density(self, theta: Float[Array, "size"]) -> Float[Array, ""]:
        """Logarithm of the mixture's density."""
        apart = theta[None] - self.means
        solve = jax.vmap(lambda L, d: jax.scipy.linalg.solve_triangular(L, d, lower=True))
        scaled = solve(self.cholesky, apart)
        volume = jnp.diagonal(self.factors, axis1=1, axis2=2).sum(axis=1) + theta.size / 2 * math.log(2 * math.pi)
        return jax.nn.logsumexp(jax.nn.log_softmax(self.logits) - volume - (scaled**2).sum(axis=1) / 2)


class AbstractObjective(eqx.Module):
    """An expectation over a mixture, estimated from samples."""

    @abc.abstractmethod
    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """What is random about the samples."""

    @abc.abstractmethod
    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
        """The samples, as differentiable functions of the mixture."""

    @abc.abstractmethod
    def moved(self, kernels: Kernels, step: Kernels) -> Kernels:
        """The mixture after a step of the optimiser."""

    @abc.abstractmethod
    def value(self, kernels: Kernels, theta: Float[Array, "lanes size"], cost: Float[Array, "lanes"]) -> Array:
        """The estimate from the samples and their costs."""


class Published(AbstractObjective):
    """The expected loss of Gumbel-softmax samples (Heiden, Millard and Sukhatme, Real2Sim, section IV)."""

    count: int = 32
    """Samples in each epoch."""
    temperature: float = TEMPERATURE

    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Gumbel numbers that pick kernels, and normal ones."""
        shape = (self.count, *np.shape(kernels.means))
        return rng.gumbel(size=shape[:2]), rng.normal(size=shape)

    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
        """`sum_k gamma_k (mu_k + L_k e_k)` with the soft choice `gamma = softmax((log phi + G) / temperature)`."""
        gumbel, normal = noise
        gamma = jax.nn.softmax((jax.nn.log_softmax(kernels.logits)[None] + gumbel) / self.temperature, axis=-1)
        each = kernels.means[None] + jnp.einsum("kij,skj->ski", kernels.cholesky, normal)
        return jnp.einsum("sk,ski->si", gamma, each)

    def value(self, kernels: Kernels, theta: Float[Array, "lanes size"], cost: Float[Array, "lanes"]) -> Array:
        """The mean cost."""
        return jnp.mean(cost)

    def moved(self, kernels: Kernels, step: Kernels) -> Kernels:
        """Steps in the units of the coordinates, so that means do not come to rest where spreads vanish."""
        return jax.tree.map(jnp.add, kernels, step)


class Evidence(AbstractObjective):
    """Expected cost minus entropy: with cost = -log(prior x likelihood), the distance to the posterior (ELBO).

    Every kernel gives the same number of samples, in pairs on both sides of its mean, weighted by its probability. The
    density is not differentiated by the mixture itself: that part vanishes on average and only adds noise (Roeder, Wu
    and Duvenaud 2017). Where the posterior is the mixture, the gradient is exactly zero.
    """

    count: int = 8
    """Samples of each kernel in each epoch; even."""

    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Normal numbers and their negatives."""
        half = rng.normal(size=(len(kernels.means), -(-self.count // 2), np.shape(kernels.means)[1]))
        return (np.concatenate([half, -half], axis=1),)

    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
        """`mu_k + L_k e`, kernel by kernel."""
        each = kernels.means[:, None] + jnp.einsum("kij,ksj->ksi", kernels.cholesky, noise[0])
        return each.reshape(-1, each.shape[-1])

    def value(self, kernels: Kernels, theta: Float[Array, "lanes size"], cost: Float[Array, "lanes"]) -> Array:
        """`sum_k w_k mean(cost + log q)`."""
        fixed = jax.lax.stop_gradient(kernels)
        each = cost + jax.vmap(fixed.log_density)(theta)
        return kernels.weights @ each.reshape(len(kernels.logits), -1).mean(axis=1)

    def moved(self, kernels: Kernels, step: Kernels) -> Kernels:
        """Steps in units of each kernel's own spread."""
        return kernels.moved(step)
