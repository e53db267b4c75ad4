"""What a fitted mixture makes small: the loss of the Real2Sim paper, and a bound on the evidence.

Both are expectations over the mixture, estimated from samples. The published loss alone is least where every kernel has
shrunk to a point: it estimates, and its spread says how far the search has come. With the entropy beside the likelihood
the least lies at the posterior.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from truesim.core.typing import Array, Float
from truesim.identify.posterior.kernels import Kernels

TEMPERATURE = 2 / 3
"""Of the Gumbel softmax, as published."""
ADAM = optax.scale_by_adam(b2=0.98)
"""Adam that remembers the size of gradients for some fifty epochs: at the start, far off, they are far larger."""
LEAST = 0.5
"""An epoch leaves each kernel at least this part of its precision: its variance doubles at most."""
REACH = 3.0
"""An epoch moves no kernel by more standard deviations, nor the logarithm of its weight by more."""

STEEP = 10.0
"""Slopes that are larger than a kernel's typical one by more than this factor are cut down to it: where a joint sticks
rather than slips, one sample is no measure of all."""
LOST = 1e-3
"""Kernels of less weight count for nothing, and are used where there is more to describe."""


class Given(NamedTuple):
    """What one epoch depends on, beside the mixture."""

    noise: tuple[Array, ...]
    """What was random about the samples."""
    cost: Float[Array, "lanes"]
    """Of the samples."""
    slope: Float[Array, "lanes size"]
    """Gradients of the cost."""
    rate: Float[Array, ""]
    """Learning rate."""
    free: Float[Array, ""]
    """1 if weights move, else 0."""


class Updated(NamedTuple):
    """What one epoch leads to."""

    kernels: Kernels
    memory: Any
    loss: Float[Array, ""]
    """The objective at the mixture before."""
    scatter: Float[Array, ""]
    """Mean difference of the samples from the loss, which is their mean."""


class AbstractObjective(eqx.Module):
    """An expectation over a mixture, and how a mixture is moved to make it small."""

    @abc.abstractmethod
    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """What is random about the samples."""

    @abc.abstractmethod
    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
        """The samples, as differentiable functions of the mixture."""

    @abc.abstractmethod
    def begin(self, kernels: Kernels) -> Any:
        """What the first epoch remembers of epochs before."""

    @abc.abstractmethod
    def updated(self, kernels: Kernels, memory: Any, given: Given) -> Updated:
        """The mixture after one epoch."""


class Published(AbstractObjective):
    """The expected loss of Gumbel-softmax samples (Heiden, Millard and Sukhatme, Real2Sim, section IV).

    Steps are Adam's, in the units of the coordinates, so that means do not come to rest where spreads vanish.
    """

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

    def begin(self, kernels: Kernels) -> Any:
        """Adam's memory of gradients."""
        return ADAM.init(kernels)

    def updated(self, kernels: Kernels, memory: Any, given: Given) -> Updated:
        """A step of Adam on the mean cost."""
        _, pulled = jax.vjp(lambda k: self.samples(k, given.noise), kernels)
        (gradient,) = pulled(given.slope / self.count)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            direction, memory = ADAM.update(gradient, memory)
        step = jax.tree.map(lambda x: -given.rate * x, direction)
        after = jax.tree.map(jnp.add, kernels, step._replace(logits=given.free * step.logits))
        return Updated(after, memory, given.cost.mean(), jnp.abs(given.cost - given.cost.mean()).mean())


class Evidence(AbstractObjective):
    """Expected cost minus entropy: with cost = -log(prior x likelihood), the distance to the posterior (ELBO).

    What is averaged is `f = cost + log q`, which is the same everywhere where the mixture q is the posterior. Kernels
    take natural gradients (Lin, Khan and Schmidt 2019): with the frame L of a kernel, `g = E[L^T f']` and
    `H = E[L^T f'' L]`,

        precision: (1 + rate H) in the frame,   mean: mu - rate L (1 + rate H)^-1 g,   log w - rate E[f].

    This is Newton's method with averages in the place of derivatives: what a step does depends neither on units nor on
    correlations, and where the cost is a parabola a rate of one arrives at once. The curvature is `E[(L^T f') e^T]`
    (Stein), so that gradients suffice. Every kernel gives the same number of samples, in pairs on both sides of its
    mean, and together they have its very covariance: averages of parabolas are exact.
    """

    count: int = 8
    """Samples of each kernel in each epoch; even, and at least two more than twice the coordinates."""

    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Normal numbers and their negatives, with the identity for their second moments."""
        count, size = np.shape(kernels.means)
        pairs = max(-(-self.count // 2), size + 1)
        drawn = rng.normal(size=(count, pairs, size)).transpose(0, 2, 1)
        root = np.linalg.cholesky(drawn @ drawn.transpose(0, 2, 1) / pairs)
        half = np.linalg.solve(root, drawn).transpose(0, 2, 1)
        return (np.concatenate([half, -half], axis=1),)

    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
        """`mu_k + L_k e`, kernel by kernel."""
        each = kernels.means[:, None] + jnp.einsum("kij,ksj->ksi", kernels.cholesky, noise[0])
        return each.reshape(-1, each.shape[-1])

    def begin(self, kernels: Kernels) -> None:
        """Nothing is remembered."""

    def updated(self, kernels: Kernels, memory: Any, given: Given) -> Updated:
        """A step along the natural gradient of every kernel."""
        (e,), L, w = given.noise, kernels.cholesky, kernels.weights
        log_q, pull = jax.vmap(jax.value_and_grad(kernels.log_density))(self.samples(kernels, given.noise))
        f = (given.cost + log_q).reshape(e.shape[:2])
        slope = _tamed(jnp.einsum("kji,ksj->ksi", L, (given.slope + pull).reshape(e.shape)))
        g, H = slope.mean(axis=1), jnp.einsum("ksi,ksj->kij", slope, e) / e.shape[1]
        values, axes = jnp.linalg.eigh((H + jnp.swapaxes(H, 1, 2)) / 2)
        narrower = jnp.maximum(1 + given.rate * values, LEAST)
        shrink = jnp.einsum("kij,kj,klj->kil", axes, 1 / narrower, axes)
        move = -given.rate * jnp.einsum("kij,kj->ki", shrink, g)
        move = move * jnp.minimum(1.0, REACH / jnp.maximum(jnp.linalg.norm(move, axis=1, keepdims=True), REACH))
        loss = w @ f.mean(axis=1)
        gain = jnp.clip(given.rate * (loss - f.mean(axis=1)), -REACH, REACH)
        after = Kernels.of(
            jax.nn.log_softmax(kernels.logits + given.free * gain),
            kernels.means + jnp.einsum("kij,kj->ki", L, move),
            L @ jnp.linalg.cholesky(shrink),
        )
        return Updated(after.reused(LOST), memory, loss, w @ jnp.abs(f - loss).mean(axis=1))


def _tamed(slope: Float[Array, "kernels samples size"]) -> Float[Array, "kernels samples size"]:
    """Slopes, none of which is far larger than what is typical of its kernel."""
    norm = jnp.linalg.norm(slope, axis=-1, keepdims=True)
    most = STEEP * jnp.median(norm, axis=1, keepdims=True)
    return slope * jnp.minimum(1.0, most / jnp.maximum(norm, 1e-300))
