"""Proximal policy optimization (Schulman et al., 2017), with the learning rate adapted to the KL divergence.

One iteration plays all episodes for `horizon` control steps with a Gaussian policy, estimates advantages by GAE, and
maximizes the clipped objective over `epochs` passes in minibatches. Time limits are bootstrapped with the value. The
critic sees the physical parameters of each episode, which the policy does not (Pinto et al., 2018).

A recurrent policy is updated on whole sequences from the memory with which they were played; where an episode begins
inside of a sequence, it begins without a memory.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.policies.actors import MemorylessNetwork
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.learners.base import (
    EPSILON,
    CriticView,
    LearnerOptions,
    Samples,
    advantages,
    clipped,
    episode_metrics,
    log_density,
    sample,
)
from truesim.policies.networks import MeanNetwork, Normalizer, apply_layers, make_layers

MIN_LEARNING_RATE = 1e-5
RATE_FACTOR = 1.5
"""Factor on the learning rate when the KL divergence leaves half to twice its target."""


@dataclasses.dataclass(frozen=True)
class PpoOptions(LearnerOptions):
    """Options of PPO."""

    epochs: int = 2
    """Passes over the data of an update; more use data better and cost more time."""
    minibatches: int = 4
    discount: float = 0.99
    gae: float = 0.95
    """Decay of generalized advantage estimation: 1 has no bias, 0 the least variance."""
    clip: float = 0.2
    """Clipping of the probability ratio."""
    learning_rate: float = 1e-3
    """At the start."""
    max_learning_rate: float = 5e-3
    target_kl: float = 0.015
    """KL divergence of an update to which the learning rate is adapted."""
    entropy: float = 0.002
    """Weight of the entropy."""
    gradient_norm: float = 1.0
    """Gradients are scaled to at most this norm."""
    initial_std: float = 1.0
    """Standard deviation of actions at the start."""
    averaging: float = 0.0
    """Part of the old in the moving average of the policy's weights, which is the result; 0 for the last weights."""
    critic_sees_parameters: bool = True
    """True if the critic sees the drawn parameters and latency of each episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        items = self.episodes if self.policy_network.is_recurrent else self.episodes * self.horizon
        if items % self.minibatches:
            what = "episodes" if self.policy_network.is_recurrent else f"episodes of {self.horizon} steps"
            raise TruesimError(f"{self.episodes} {what} cannot be split into {self.minibatches} minibatches.")
        if not 0.0 <= self.averaging < 1.0:
            raise TruesimError(f"The averaging of weights is {self.averaging:g}; it must be in [0, 1).")

    def make(self, environment: Environment) -> "Ppo":
        """PPO on an environment."""
        return Ppo(environment, self)


class PpoState(NamedTuple):
    """Everything that training continues from."""

    weights: dict[str, Any]
    average: Any
    """Moving average of the policy's weights."""
    optimizer: Any
    learning_rate: Array
    normalizer: Normalizer
    critic_normalizer: Normalizer
    episodes: Episode
    outcome: StepOutcome
    memory: Float[Array, "batch memory"]
    """Of a recurrent policy."""
    fresh: Array
    """True for each episode that begins."""
    key: Array
    """Of JAX's random numbers."""
    steps: Array
    """Control steps so far."""


class Ppo:
    """PPO on an environment: `state = ppo.start(seed)`, then `state, metrics = ppo.iterate(state)`."""

    columns: tuple[str, ...] = ("kl", "value_error", "learning_rate", "std")

    def __init__(self, environment: Environment, options: PpoOptions, network: MeanNetwork | None = None):
        """Prepare.

        Args:
            environment: Episodes to learn from.
            options: Options.
            network: Mean action of the policy, instead of the network of the options.
        """
        self.environment, self.options = environment, options
        self.network = options.policy_network if network is None else MemorylessNetwork(network)
        self.steps_per_iteration = options.episodes * options.horizon
        self._critic_view = CriticView(environment, options.critic_sees_parameters)
        self._adam = libraries.optax.scale_by_adam()
        self._update = jax.jit(self._improve)
        self._act = jax.jit(self._sample_action)
        self._view = jax.jit(self._critic_view.__call__)
        self._iterate = jax.jit(self._collect_and_improve) if environment.is_traceable else None

    def start(self, seed: int) -> PpoState:
        """State before training."""
        episodes, outcome = self.environment.reset(seed, stagger=True)
        sizes = outcome.observation.shape[-1], self._view(episodes, outcome).shape[-1]
        rng, hidden = np.random.default_rng(seed), self.options.hidden
        actions = self.environment.task.action_map.size
        weights: dict[str, Any] = {
            "actor": self.network.make(rng, sizes[0], actions),
            "critic": make_layers(rng, (sizes[1], *hidden, 1), 1.0),
            "log_std": np.full(actions, np.log(self.options.initial_std), np.float32),
        }
        return PpoState(
            weights=weights,
            average=weights["actor"],
            optimizer=jax.tree.map(np.asarray, self._adam.init(weights)),
            learning_rate=np.asarray(self.options.learning_rate, np.float32),
            normalizer=Normalizer.identity(sizes[0]),
            critic_normalizer=Normalizer.identity(sizes[1]),
            episodes=episodes,
            outcome=outcome,
            memory=self.network.memory(self.options.episodes),
            fresh=np.ones(self.options.episodes, bool),
            key=np.asarray(jax.random.PRNGKey(seed)),
            steps=np.zeros((), np.int32),
        )

    def iterate(self, state: PpoState) -> tuple[PpoState, dict[str, Array]]:
        """One iteration: play, then update. Metrics are of the control steps that were played."""
        if self._iterate is not None:
            return self._iterate(state)
        return self._update(*self._play(state))

    def policy(self, state: PpoState) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the policy."""
        return (state.average if self.options.averaging else state.weights["actor"]), state.normalizer

    def _sample_action(
        self, state: PpoState, outcome: StepOutcome, memory: Array, key: Array
    ) -> tuple[Array, Array, Array]:
        """Memory, mean and drawn action."""
        observation = self._normalized(state.normalizer, outcome.observation)
        memory, mean = self.network.step(state.weights["actor"], memory, observation)
        return memory, mean, mean + jnp.exp(state.weights["log_std"]) * jax.random.normal(key, mean.shape)

    def _play(self, state: PpoState) -> tuple[PpoState, Samples, Array]:
        """Samples of `horizon` control steps with physics outside of JAX, and the memory before them."""
        key, *keys = jax.random.split(jnp.asarray(state.key), 1 + self.options.horizon)
        episodes, outcome, memory, fresh, rows = state.episodes, state.outcome, state.memory, state.fresh, []
        for each in keys:
            memory, mean, action = self._act(state, outcome, memory, each)
            seen = np.asarray(self._view(episodes, outcome))
            episodes, after = self.environment.step(episodes, action)
            rows.append(sample(outcome, seen, fresh, np.asarray(action), np.asarray(mean), after))
            fresh = np.asarray(after.terminated) | np.asarray(after.truncated)
            memory, outcome = np.where(fresh[:, None], np.float32(0.0), np.asarray(memory)), after
        samples = jax.tree.map(lambda *x: np.stack(x), *rows)
        after_all = state._replace(episodes=episodes, outcome=outcome, memory=memory, fresh=fresh, key=np.asarray(key))
        return after_all, samples, state.memory

    def _collect_and_improve(self, state: PpoState) -> tuple[PpoState, dict[str, Array]]:
        def one(carry: Any, key: Array) -> tuple[Any, Samples]:
            episodes, outcome, memory, fresh = carry
            memory, mean, action = self._sample_action(state, outcome, memory, key)
            seen = self._critic_view(episodes, outcome)
            episodes, after = self.environment.step(episodes, action)
            ended = after.terminated | after.truncated
            memory = jnp.where(ended[:, None], 0.0, memory)
            return (episodes, after, memory, ended), sample(outcome, seen, fresh, action, mean, after)

        key, *keys = jax.random.split(state.key, 1 + self.options.horizon)
        carry = (state.episodes, state.outcome, state.memory, state.fresh)
        (episodes, outcome, memory, fresh), samples = jax.lax.scan(one, carry, jnp.stack(keys))
        after = state._replace(episodes=episodes, outcome=outcome, memory=memory, fresh=fresh, key=key)
        return self._improve(after, samples, state.memory)

    def _improve(self, state: PpoState, samples: Samples, memory: Array) -> tuple[PpoState, dict[str, Array]]:
        """Update policy and critic from samples that were played from a memory."""
        o, weights = self.options, state.weights
        last = self._critic_view(state.episodes, state.outcome)
        values = self._values(weights, state, jnp.concatenate([samples.privileged, last[None]]))
        advantage, target = advantages(samples, values, o.discount, o.gae)
        advantage = (advantage - advantage.mean()) / (advantage.std() + EPSILON)
        log_std = weights["log_std"]
        data = (
            self._normalized(state.normalizer, samples.observation),
            samples.fresh,
            self._normalized(state.critic_normalizer, samples.privileged),
            samples.action,
            samples.mean,
            log_density(samples.action, samples.mean, log_std),
            advantage,
            target,
        )
        key, *keys = jax.random.split(state.key, 1 + o.epochs)
        data, memory = self._sequences(data, memory)
        count = len(memory)
        order = jnp.concatenate([jax.random.permutation(k, count).reshape(o.minibatches, -1) for k in keys])

        def step(carry: Any, rows: Array) -> tuple[Any, tuple[Array, Array]]:
            weights, optimizer, rate = carry
            batch = jax.tree.map(lambda x: x[:, rows], data)
            loss = jax.value_and_grad(self._loss, has_aux=True)
            (_, (kl, error)), gradient = loss(weights, memory[rows], batch, log_std)
            rate = _adapted(rate, kl, o.target_kl, o.max_learning_rate)
            direction, optimizer = self._adam.update(clipped(gradient, o.gradient_norm), optimizer)
            weights = jax.tree.map(lambda w, d: w - rate * d, weights, direction)
            return (weights, optimizer, rate), (kl, error)

        carry = (weights, state.optimizer, state.learning_rate)
        (weights, optimizer, rate), (kl, error) = jax.lax.scan(step, carry, order)
        average = jax.tree.map(lambda a, w: a + self._pace(state) * (w - a), state.average, weights["actor"])
        state = state._replace(weights=weights, average=average, optimizer=optimizer, learning_rate=rate, key=key)
        state = self._seen(state, samples)._replace(steps=state.steps + self.steps_per_iteration)
        own = {"kl": kl.mean(), "value_error": error.mean(), "learning_rate": rate}
        return state, episode_metrics(samples) | own | {"std": jnp.mean(jnp.exp(weights["log_std"]))}

    def _pace(self, state: PpoState) -> Array:
        """Part of the new weights in their average; early ones are soon forgotten."""
        return jnp.maximum(1.0 - self.options.averaging, 10.0 / (10.0 + state.steps / self.steps_per_iteration))

    def _sequences(self, data: Any, memory: Array) -> tuple[Any, Array]:
        """Data as sequences, time first, and the memory before each; without a memory every step is a sequence."""
        if self.network.is_recurrent:
            return data, memory
        data = jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:]), data)
        return data, jnp.zeros((self.steps_per_iteration, 0))

    def _loss(
        self, weights: dict[str, Any], memory: Array, batch: tuple, old_log_std: Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """Clipped objective, error of values and entropy; KL divergence from the policy that played."""
        observation, fresh, privileged, action, old_mean, old_density, advantage, target = batch
        o, log_std = self.options, weights["log_std"]
        mean = self.network.unroll(weights["actor"], memory, observation, fresh)
        ratio = jnp.exp(log_density(action, mean, log_std) - old_density)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - o.clip, 1.0 + o.clip) * advantage).mean()
        value = apply_layers(weights["critic"], privileged, o.activation)[..., 0]
        error = jnp.mean((value - target) ** 2)
        moved = 0.5 * (jnp.exp(2.0 * old_log_std) + (old_mean - mean) ** 2) * jnp.exp(-2.0 * log_std)
        kl = jnp.mean(jnp.sum(log_std - old_log_std + moved - 0.5, axis=-1))
        loss = error - gain - o.entropy * jnp.sum(log_std) + self.network.penalty(weights["actor"], observation)
        return loss, (kl, error)

    def _values(self, weights: dict[str, Any], state: PpoState, privileged: Array) -> Array:
        normalized = self._normalized(state.critic_normalizer, privileged)
        return apply_layers(weights["critic"], normalized, self.options.activation)[..., 0]

    def _normalized(self, normalizer: Normalizer, x: Array) -> Array:
        return normalizer(x) if self.options.normalize else x

    def _seen(self, state: PpoState, samples: Samples) -> PpoState:
        """The state with normalizers that have seen the samples."""
        if not self.options.normalize:
            return state
        actor = state.normalizer.updated(samples.observation.reshape(-1, samples.observation.shape[-1]))
        critic = state.critic_normalizer.updated(samples.privileged.reshape(-1, samples.privileged.shape[-1]))
        return state._replace(normalizer=actor, critic_normalizer=critic)


def _adapted(rate: Array, kl: Array, target: float, most: float) -> Array:
    """Learning rate for the next step, by the KL divergence so far."""
    slower = jnp.maximum(rate / RATE_FACTOR, MIN_LEARNING_RATE)
    faster = jnp.minimum(rate * RATE_FACTOR, most)
    return jnp.where(kl > 2.0 * target, slower, jnp.where((kl < 0.5 * target) & (kl > 0.0), faster, rate))
