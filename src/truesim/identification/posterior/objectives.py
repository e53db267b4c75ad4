"""Objectives of variational mixtures: the loss of the Real2Sim paper, and the evidence lower bound.

Both are expectations over the mixture, estimated from samples. The Real2Sim loss is smallest where every kernel has
shrunk to a point, so that its covariance measures progress and not uncertainty. The evidence lower bound adds the
entropy, and its optimum is the posterior.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.typing import Array, Float
from truesim.identification.posterior.kernels import Kernels

GUMBEL_TEMPERATURE = 2 / 3
"""Temperature of the Gumbel softmax in the Real2Sim paper."""
ADAM_DECAY = 0.98
"""Decay of Adam's squared gradients: a short memory (50 epochs), since gradients far from the optimum are larger."""
LOWEST_PRECISION_FACTOR = 0.5
"""Smallest factor by which an epoch changes the precision of a kernel: its variance at most doubles."""
LONGEST_KERNEL_MOVE = 3.0
"""Largest move of a kernel in an epoch, in standard deviations, and of the logarithm of its weight."""
GRADIENT_CLIP = 10.0
"""Gradients larger than the median of their kernel by more than this factor are clipped: at the edge of sticking
friction single samples have extreme gradients."""
LIGHTEST_KERNEL = 1e-3
"""Kernels with less weight are replaced by copies of the heaviest one."""


class EpochInputs(NamedTuple):
    """Samples and rates of one epoch."""

    noise: tuple[Array, ...]
    """Random numbers from which the samples are made."""
    cost: Float[Array, " batch"]
    """Costs of the samples."""
    gradient: Float[Array, "batch size"]
    """Gradients of the costs."""
    rate: Float[Array, ""]
    """Learning rate."""
    free: Float[Array, ""]
    """1 if the weights of the kernels are free, else 0."""


class EpochResult(NamedTuple):
    """Mixture and loss after one epoch."""

    kernels: Kernels
    memory: Any
    loss: Float[Array, ""]
    """Objective before the epoch."""
    scatter: Float[Array, ""]
    """Mean absolute deviation of the samples from the loss, which is their mean."""


class AbstractMixtureLoss(eqx.Module):
    """Expectation over a mixture, and the update that decreases it."""

    @abc.abstractmethod
    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Random numbers from which the samples are made."""

    @abc.abstractmethod
    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "batch size"]:
        """Samples as differentiable functions of the mixture."""

    @abc.abstractmethod
    def initial_memory(self, kernels: Kernels) -> Any:
        """Optimizer state before the first epoch."""

    @abc.abstractmethod
    def update(self, kernels: Kernels, memory: Any, given: EpochInputs) -> EpochResult:
        """Run one epoch."""


class Real2SimLoss(AbstractMixtureLoss):
    """Expected loss of Gumbel-softmax samples (Heiden, Millard and Sukhatme, Real2Sim, section IV).

    Adam takes the steps, in units of the coordinates, so that means keep moving when standard deviations vanish.
    """

    count: int = 32
    """Samples in each epoch."""
    temperature: float = GUMBEL_TEMPERATURE

    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Gumbel numbers that select kernels, and normal numbers."""
        shape = (self.count, *np.shape(kernels.means))
        return rng.gumbel(size=shape[:2]), rng.normal(size=shape)

    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "batch size"]:
        """`sum_k gamma_k (mu_k + L_k e_k)` with the soft choice `gamma = softmax((log phi + G) / temperature)`."""
        gumbel, normal = noise
        gamma = jax.nn.softmax((jax.nn.log_softmax(kernels.logits)[None] + gumbel) / self.temperature, axis=-1)
        each = kernels.means[None] + jnp.einsum("kij,skj->ski", kernels.cholesky, normal)
        return jnp.einsum("sk,ski->si", gamma, each)

    def initial_memory(self, kernels: Kernels) -> Any:
        """State of Adam."""
        return libraries.optax.scale_by_adam(b2=ADAM_DECAY).init(kernels)

    def update(self, kernels: Kernels, memory: Any, given: EpochInputs) -> EpochResult:
        """Take a step of Adam on the mean cost."""
        _, pulled = jax.vjp(lambda k: self.samples(k, given.noise), kernels)
        (gradient,) = pulled(given.gradient / self.count)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            direction, memory = libraries.optax.scale_by_adam(b2=ADAM_DECAY).update(gradient, memory)
        step = jax.tree.map(lambda x: -given.rate * x, direction)
        after = jax.tree.map(jnp.add, kernels, step._replace(logits=given.free * step.logits))
        return EpochResult(after, memory, given.cost.mean(), jnp.abs(given.cost - given.cost.mean()).mean())


class EvidenceLowerBound(AbstractMixtureLoss):
    """Expected cost minus entropy: with cost = -log(prior x likelihood), the negative evidence lower bound (ELBO).

    It is the mean of `f = cost + log q`, which is constant where the mixture q is the posterior. Kernels follow natural
    gradients (Lin, Khan and Schmidt 2019): with the Cholesky factor L of a kernel, `g = E[L^T f']` and
    `H = E[L^T f'' L]`,

        precision: (1 + rate H) in the frame of L,   mean: mu - rate L (1 + rate H)^-1 g,   log w - rate E[f].

    This is Newton's method with averaged derivatives: a step does not depend on units or correlations, and for a
    quadratic cost a rate of one converges in one epoch. The curvature is `E[(L^T f') e^T]` (Stein's identity), so that
    only gradients are needed. Every kernel has the same number of samples, in antithetic pairs whose covariance is that
    of the kernel, so that averages of quadratic functions are exact.
    """

    count: int = 8
    """Samples of each kernel in each epoch; even, and at least two more than twice the coordinates."""

    def noise(self, rng: np.random.Generator, kernels: Kernels) -> tuple[np.ndarray, ...]:
        """Normal numbers and their negatives, whose second moments are the identity."""
        count, size = np.shape(kernels.means)
        pairs = max(-(-self.count // 2), size + 1)
        drawn = rng.normal(size=(count, pairs, size)).transpose(0, 2, 1)
        root = np.linalg.cholesky(drawn @ drawn.transpose(0, 2, 1) / pairs)
        half = np.linalg.solve(root, drawn).transpose(0, 2, 1)
        return (np.concatenate([half, -half], axis=1),)

    def samples(self, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "batch size"]:
        """`mu_k + L_k e` for every kernel."""
        each = kernels.means[:, None] + jnp.einsum("kij,ksj->ksi", kernels.cholesky, noise[0])
        return each.reshape(-1, each.shape[-1])

    def initial_memory(self, kernels: Kernels) -> None:
        """No state."""

    def update(self, kernels: Kernels, memory: Any, given: EpochInputs) -> EpochResult:
        """Take a step along the natural gradient of every kernel."""
        (e,), L, w = given.noise, kernels.cholesky, kernels.weights
        log_q, pull = jax.vmap(jax.value_and_grad(kernels.log_density))(self.samples(kernels, given.noise))
        f = (given.cost + log_q).reshape(e.shape[:2])
        gradient = _clip(jnp.einsum("kji,ksj->ksi", L, (given.gradient + pull).reshape(e.shape)))
        g, H = gradient.mean(axis=1), jnp.einsum("ksi,ksj->kij", gradient, e) / e.shape[1]
        values, axes = jnp.linalg.eigh((H + jnp.swapaxes(H, 1, 2)) / 2)
        narrower = jnp.maximum(1 + given.rate * values, LOWEST_PRECISION_FACTOR)
        shrink = jnp.einsum("kij,kj,klj->kil", axes, 1 / narrower, axes)
        move = -given.rate * jnp.einsum("kij,kj->ki", shrink, g)
        length = jnp.linalg.norm(move, axis=1, keepdims=True)
        move = move * jnp.minimum(1.0, LONGEST_KERNEL_MOVE / jnp.maximum(length, LONGEST_KERNEL_MOVE))
        loss = w @ f.mean(axis=1)
        gain = jnp.clip(given.rate * (loss - f.mean(axis=1)), -LONGEST_KERNEL_MOVE, LONGEST_KERNEL_MOVE)
        after = Kernels.of(
            jax.nn.log_softmax(kernels.logits + given.free * gain),
            kernels.means + jnp.einsum("kij,kj->ki", L, move),
            L @ jnp.linalg.cholesky(shrink),
        )
        return EpochResult(after.reuse_light(LIGHTEST_KERNEL), memory, loss, w @ jnp.abs(f - loss).mean(axis=1))


def _clip(gradient: Float[Array, "kernels samples size"]) -> Float[Array, "kernels samples size"]:
    """Gradients clipped to a multiple of the median norm of their kernel."""
    norm = jnp.linalg.norm(gradient, axis=-1, keepdims=True)
    most = GRADIENT_CLIP * jnp.median(norm, axis=1, keepdims=True)
    return gradient * jnp.minimum(1.0, most / jnp.maximum(norm, 1e-300))
