"""UP-OSI: a universal policy with online system identification (Yu et al. 2017).

    round 0:       play pi(x, mu) with the true parameters mu, and regress mu on histories
    rounds 1..n:   play pi(x, phi(h)) with the estimates, add these histories to the data, and regress again

Without the later rounds the regression looks as good and control is worse: histories under estimates are others than
histories under the truth (the argument of DAgger).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.adaptation.conditioned_policy import ConditionedPolicy
from truesim.policies.adaptation.online import OnlineLoop, OnlinePolicy, Regression
from truesim.policies.networks import apply_layers, make_layers


@dataclasses.dataclass(frozen=True)
class OsiNetwork:
    """Perceptron of a short history."""

    history: int = 10
    hidden: tuple[int, ...] = (128, 64)

    def init(self, rng: np.random.Generator, width: int, outputs: int) -> Any:
        """Orthogonal weights."""
        return make_layers(rng, (self.history * width, *self.hidden, outputs), 0.1)

    def apply(self, weights: Any, history: Float[Array, "batch length width"]) -> Float[Array, "batch outputs"]:
        """Estimates of a batch."""
        return apply_layers(weights, history.reshape(len(history), -1), "relu")


@dataclasses.dataclass(frozen=True)
class OsiOptions:
    """Sizes of UP-OSI."""

    network: OsiNetwork = OsiNetwork()
    rounds: int = 5
    """Rounds on its own predictions, after the one with true parameters."""
    episodes: int = 64
    """Episodes of each round."""
    samples: int = 20_000
    """Histories that are kept of each round."""
    epochs: int = 20
    """Passes over all data in each round."""
    rate: float = 1e-3
    minibatch: int = 256
    action_noise: float = 0.05
    change_interval: float = np.inf
    """Mean time between changes of parameters in training episodes [s]. With changes the estimator knows motion that
    began under other parameters, and settles faster after a change."""
    seed: int = 0


def train_osi(
    policy: ConditionedPolicy,
    options: OsiOptions | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> OnlinePolicy:
    """Estimator of the told parameters, trained on its own predictions in rounds.

    Args:
        policy: A universal policy.
        options: Sizes.
        callback: Called with the number of each round and the error of its regression.
    """
    o = options or OsiOptions()
    rng = np.random.default_rng(o.seed)
    with float32():
        changing = dataclasses.replace(policy.task, change_interval=min(o.change_interval, policy.task.change_interval))
        loop = OnlineLoop(dataclasses.replace(policy, task=changing), o.network, o.episodes, o.action_noise)
        regression = Regression(o.network, o.rate, o.minibatch)
        weights = o.network.init(rng, loop.width, policy.size)
        histories: list[np.ndarray] = []
        targets: list[np.ndarray] = []
        for number in range(1 + o.rounds):
            key = jax.random.fold_in(jax.random.key(o.seed), number)
            played = loop.play(weights, loop.start(o.seed + number), policy.task.steps, key, truth=number == 0)[1]
            kept = rng.permutation(policy.task.steps * o.episodes)[: o.samples]
            for store, values in ((histories, played.history), (targets, played.target)):
                store.append(np.asarray(values).reshape(-1, *values.shape[2:])[kept])
            data = jnp.asarray(np.concatenate(histories)), jnp.asarray(np.concatenate(targets))
            optimizer, error = regression.start(weights), np.inf
            for epoch in range(o.epochs):
                weights, optimizer, error = regression.epoch(weights, optimizer, *data, jax.random.fold_in(key, epoch))
            if callback is not None:
                callback(number, float(error))
        return OnlinePolicy(policy, o.network, jax.tree.map(np.asarray, weights))
