"""RMA: rapid motor adaptation (Kumar et al. 2021).

    phase one:   PPO of pi(x, z) with z = E(parameters), see `train_encoded`
    phase two:   z is regressed on histories, phi(h) -> z, on episodes that pi(x, phi(h)) plays itself

A latent that matters for control is easier to estimate than the parameters themselves.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.adaptation.conditioned_policy import ConditionedPolicy
from truesim.policies.adaptation.online import OnlineLoop, OnlinePolicy, Regression
from truesim.policies.networks import apply_layers, make_layers

Convolution = tuple[int, int]
"""Width and stride of a convolution over time."""


@dataclasses.dataclass(frozen=True)
class RmaNetwork:
    """Embedding of every step, then convolutions over time, then a linear layer."""

    history: int = 50
    channels: int = 32
    convolutions: tuple[Convolution, ...] = ((8, 4), (5, 1), (5, 1))

    def __post_init__(self) -> None:
        if self._length < 1:
            raise TruesimError(f"Convolutions {self.convolutions} are longer than a history of {self.history} steps.")

    @property
    def _length(self) -> int:
        """Steps that are left after the convolutions."""
        length = self.history
        for width, stride in self.convolutions:
            length = (length - width) // stride + 1
        return length

    def init(self, rng: np.random.Generator, width: int, outputs: int) -> dict[str, Any]:
        """Orthogonal weights; kernels have axes (time, channels in, channels out)."""
        c = self.channels
        kernels = []
        for size, _ in self.convolutions:
            ((flat, bias),) = make_layers(rng, (size * c, c), np.sqrt(2.0))
            kernels.append((flat.reshape(size, c, c), bias))
        return {
            "embedding": make_layers(rng, (width, c), np.sqrt(2.0)),
            "kernels": kernels,
            "output": make_layers(rng, (self._length * c, outputs), 0.1),
        }

    def apply(self, weights: dict[str, Any], history: Float[Array, "batch length width"]) -> Array:
        """Estimates of a batch."""
        x = jax.nn.relu(apply_layers(weights["embedding"], history, "relu"))
        for (kernel, bias), (_, stride) in zip(weights["kernels"], self.convolutions, strict=True):
            x = jax.nn.relu(convolve(x, kernel, stride) + bias)
        return apply_layers(weights["output"], x.reshape(len(x), -1), "relu")


def convolve(
    x: Float[Array, "batch length inputs"], kernel: Float[Array, "width inputs outputs"], stride: int
) -> Float[Array, "batch shorter outputs"]:
    """Convolution over time without padding, as one matrix product of all windows (fast in both modes on a CPU).

    The last window ends with the newest step; steps that fill no window are left out at the old end. Left out at the
    new end, as usual, they would delay every estimate.
    """
    width, inputs, outputs = kernel.shape
    count, left = divmod(x.shape[1] - width, stride)
    windows = [x[:, left + k : left + k + stride * count + 1 : stride] for k in range(width)]
    return jnp.concatenate(windows, axis=-1) @ kernel.reshape(width * inputs, outputs)


@dataclasses.dataclass(frozen=True)
class RmaOptions:
    """Sizes of phase two."""

    network: RmaNetwork = RmaNetwork()
    iterations: int = 100
    episodes: int = 128
    """Episodes that are played at once."""
    horizon: int = 50
    """Control steps between two regressions."""
    epochs: int = 1
    """Passes over what was played in each regression."""
    rate: float = 1e-3
    """Step size of Adam."""
    last_rate: float | None = None
    """Step size at the end, with a linear change from the start; None for the same."""
    minibatch: int = 256
    seed: int = 0


def train_rma(
    policy: ConditionedPolicy,
    options: RmaOptions | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> OnlinePolicy:
    """Phase two: an estimator of the latent, regressed on what the policy experiences with its estimates.

    Args:
        policy: The policy of phase one, from `train_encoded`.
        options: Sizes.
        callback: Called with the number of each iteration and the error of its regression.
    """
    o = options or RmaOptions()
    with float32():
        loop, updates = OnlineLoop(policy, o.network, o.episodes), o.epochs * (o.episodes * o.horizon // o.minibatch)
        last = o.rate if o.last_rate is None else o.last_rate
        rate = libraries.optax.linear_schedule(o.rate, last, o.iterations * updates)
        regression = Regression(o.network, rate, o.minibatch)
        weights = o.network.init(np.random.default_rng(o.seed), loop.width, policy.size)
        optimizer, state = regression.start(weights), loop.start(o.seed, stagger=True)
        for number in range(o.iterations):
            key = jax.random.fold_in(jax.random.key(o.seed), number)
            state, played = loop.play(weights, state, o.horizon, key)
            histories, targets = (x.reshape(-1, *x.shape[2:]) for x in (played.history, played.target))
            error = np.nan
            for _ in range(o.epochs):
                key, shuffled = jax.random.split(key)
                weights, optimizer, error = regression.epoch(weights, optimizer, histories, targets, shuffled)
            if callback is not None:
                callback(number, float(error))
        return OnlinePolicy(policy, o.network, jax.tree.map(np.asarray, weights))
