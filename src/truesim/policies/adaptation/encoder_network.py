"""Network of a policy that sees the parameters of its episode through an encoder: `pi(x, z)`, `z = E(told)`.

Without a bottleneck the latent is `tanh` of a perceptron, as in phase one of RMA and in projected universal policies.
With one it is normal, `z = m(told) + s(told) noise`, and the loss has `beta KL(N(m, s^2) | N(0, 1))` added (Peng et
al. 2020): information about the parameters costs, so that latents of like robots lie together and can be searched.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.policies.networks import apply_layers, make_layers


@dataclasses.dataclass(frozen=True)
class EncoderNetwork:
    """A `MeanNetwork` on observations that end with what is told, and with the noise of the latent if it is one."""

    told: int
    """Number of coordinates that are told."""
    latent: int
    """Dimensions of the latent."""
    bottleneck: float = 0.0
    """Weight of the divergence; larger ones make latents robust and less special, zero makes them deterministic."""
    hidden: tuple[int, ...] = (64, 64)
    encoder: tuple[int, ...] = (32,)
    """Hidden units of the encoder."""
    activation: str = "tanh"

    @property
    def noise(self) -> int:
        """Number of observed noises."""
        return self.latent if self.bottleneck else 0

    def init(self, rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, Any]:
        """Orthogonal weights, with mean actions near zero."""
        own = inputs - self.told - self.noise
        count = 2 * self.latent if self.bottleneck else self.latent
        return {
            "encoder": make_layers(rng, (self.told, *self.encoder, count), 1.0),
            "actor": make_layers(rng, (own + self.latent, *self.hidden, outputs), 0.01),
        }

    def encode(self, weights: dict[str, Any], told: Array) -> tuple[Float[Array, "*batch k"], Float[Array, "*batch k"]]:
        """Mean of the latent, and the logarithm of its standard deviation (minus infinity without a bottleneck)."""
        out = apply_layers(weights["encoder"], told, self.activation)
        if not self.bottleneck:
            return jnp.tanh(out), jnp.full_like(out, -jnp.inf)
        mean, log_std = jnp.split(out, 2, axis=-1)
        return mean, log_std

    def apply(self, weights: dict[str, Any], observation: Array) -> Array:
        """Mean actions of a batch."""
        own = observation.shape[-1] - self.told - self.noise
        x, told, noise = jnp.split(observation, [own, own + self.told], axis=-1)
        latent, log_std = self.encode(weights, told)
        latent = latent + jnp.exp(log_std) * noise if self.bottleneck else latent
        return apply_layers(weights["actor"], jnp.concatenate([x, latent], axis=-1), self.activation)

    def penalty(self, weights: dict[str, Any], observation: Array) -> Array:
        """Weighted divergence of the latent from a standard normal one."""
        if not self.bottleneck:
            return jnp.zeros(())
        own = observation.shape[-1] - self.told - self.noise
        mean, log_std = self.encode(weights, observation[..., own : own + self.told])
        divergence = 0.5 * (mean**2 + jnp.exp(2.0 * log_std) - 1.0) - log_std
        return self.bottleneck * jnp.mean(jnp.sum(divergence, axis=-1))
