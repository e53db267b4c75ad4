"""Short-horizon actor-critic (Xu et al., 2022): gradients of the reward through the simulator itself.

One iteration plays all episodes for `horizon` control steps and differentiates the discounted rewards, and the critic's
value at the end, with respect to the weights of the policy. The critic is then fitted to TD(lambda) targets. It
needs physics in JAX, and rewards that say by their gradient where to go: with stiff contact PPO is the safer choice.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.learners.base import (
    CriticView,
    LearnerOptions,
    Samples,
    advantages,
    clipped,
    episode_metrics,
    sample,
)
from truesim.policies.networks import Normalizer, apply_layers, make_layers

CRITIC_GAIN = 1.0
"""Gain of the critic at the start; a large one sends the policy along gradients of random values."""
INSIDE = 1e-6
"""Part of the limit by which actions stay inside of it, where clipping has a gradient."""


@dataclasses.dataclass(frozen=True)
class ShacOptions(LearnerOptions):
    """Options of short-horizon gradients."""

    episodes: int = 128
    activation: str = "tanh"
    discount: float = 0.99
    decay: float = 0.8
    """Decay of the critic's TD(lambda) targets."""
    learning_rate: float = 5e-3
    """Of the policy."""
    critic_learning_rate: float = 5e-3
    critic_epochs: int = 2
    """Passes over the data for the critic."""
    minibatches: int = 4
    """Of the critic."""
    target_averaging: float = 0.4
    """Part of the old in the critic whose values are taken, by iteration."""
    gradient_norm: float = 1.0
    """Gradients are scaled to at most this norm."""
    excess_weight: float = 0.01
    """Weight of squared mean actions beyond their limit, which holds them near it."""
    initial_std: float = 0.5
    """Standard deviation of actions at the start."""
    critic_sees_parameters: bool = True
    """True if the critic sees the drawn parameters and latency of each episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.episodes * self.horizon) % self.minibatches:
            raise TruesimError(
                f"{self.episodes} episodes of {self.horizon} steps cannot be split into {self.minibatches} minibatches."
            )

    def make(self, environment: Environment) -> "Shac":
        """Short-horizon gradients on an environment."""
        return Shac(environment, self)


class ShacState(NamedTuple):
    """Everything that training continues from."""

    actor: dict[str, Any]
    """Weights of the policy: `network` and `log_std`."""
    critic: Any
    target: Any
    """Slowly moving weights of the critic, whose values are taken."""
    actor_optimizer: Any
    critic_optimizer: Any
    normalizer: Normalizer
    critic_normalizer: Normalizer
    episodes: Episode
    outcome: StepOutcome
    memory: Float[Array, "batch memory"]
    fresh: Array
    """True for each episode that begins."""
    key: Array
    steps: Array
    """Control steps so far."""


class Shac:
    """Short-horizon gradients: `state = shac.start(seed)`, then `state, metrics = shac.iterate(state)`."""

    columns: tuple[str, ...] = ("value_error", "gradient_norm", "std")

    def __init__(self, environment: Environment, options: ShacOptions):
        if not environment.is_traceable:
            raise TruesimError(
                f"Short-horizon gradients need physics that can be differentiated; {environment.task.name} has the "
                "contact of its robot file. Train it with PPO (--learner ppo)."
            )
        self.environment, self.options, self.network = environment, options, options.policy_network
        self.steps_per_iteration = options.episodes * options.horizon
        self._critic_view = CriticView(environment, options.critic_sees_parameters)
        self._adam = libraries.optax.scale_by_adam(b1=0.7, b2=0.95)
        self._iterate = jax.jit(self._improve)

    def start(self, seed: int) -> ShacState:
        """State before training."""
        o, (episodes, outcome) = self.options, self.environment.reset(seed, stagger=True)
        sizes = outcome.observation.shape[-1], self._critic_view(episodes, outcome).shape[-1]
        rng, actions = np.random.default_rng(seed), self.environment.task.action_map.size
        log_std = np.full(actions, np.log(o.initial_std), np.float32)
        actor = {"network": self.network.make(rng, sizes[0], actions), "log_std": log_std}
        critic = make_layers(rng, (sizes[1], *o.hidden, 1), CRITIC_GAIN)
        return ShacState(
            actor=actor,
            critic=critic,
            target=critic,
            actor_optimizer=jax.tree.map(np.asarray, self._adam.init(actor)),
            critic_optimizer=jax.tree.map(np.asarray, self._adam.init(critic)),
            normalizer=Normalizer.identity(sizes[0]),
            critic_normalizer=Normalizer.identity(sizes[1]),
            episodes=episodes,
            outcome=outcome,
            memory=self.network.memory(o.episodes),
            fresh=np.ones(o.episodes, bool),
            key=np.asarray(jax.random.PRNGKey(seed)),
            steps=np.zeros((), np.int32),
        )

    def iterate(self, state: ShacState) -> tuple[ShacState, dict[str, Array]]:
        """One iteration: play, follow the gradient, then fit the critic."""
        return self._iterate(state)

    def policy(self, state: ShacState) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the policy."""
        return state.actor["network"], state.normalizer

    def _improve(self, state: ShacState) -> tuple[ShacState, dict[str, Array]]:
        o = self.options
        key, playing, fitting = jax.random.split(state.key, 3)
        loss = jax.value_and_grad(self._negative_return, has_aux=True)
        (_, (after, samples)), gradient = loss(state.actor, state._replace(key=playing))
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        direction, optimizer = self._adam.update(clipped(gradient, o.gradient_norm), state.actor_optimizer)
        actor = jax.tree.map(lambda w, d: w - o.learning_rate * d, state.actor, direction)
        after = after._replace(actor=actor, actor_optimizer=optimizer, key=key)
        after, error = self._fit_critic(after, samples, fitting)
        after = self._seen(after, samples)._replace(steps=state.steps + self.steps_per_iteration)
        own = {"value_error": error, "gradient_norm": norm, "std": jnp.mean(jnp.exp(actor["log_std"]))}
        return after, episode_metrics(samples) | own

    def _negative_return(self, actor: dict[str, Any], state: ShacState) -> tuple[Array, tuple[ShacState, Samples]]:
        """Returns from the start of the horizon, and from where episodes begin in it, to its end; negated.

        They end with the value of the last state, and with zero where an episode terminates.
        """
        o, std, limit = self.options, jnp.exp(actor["log_std"]), self.environment.task.action_map.limit

        def one(carry: Any, key: Array) -> tuple[Any, tuple[Samples, Array]]:
            episodes, outcome, memory, fresh = carry
            observation = self._normalized(state.normalizer, outcome.observation)
            memory, mean = self.network.step(actor["network"], memory, observation)
            drawn = mean + std * jax.random.normal(key, mean.shape)
            seen = self._critic_view(episodes, outcome)
            episodes, after = self.environment.step(episodes, _within(drawn, limit))
            ended = after.terminated | after.truncated
            memory = jnp.where(ended[:, None], 0.0, memory)
            excess = jnp.sum(jnp.maximum(jnp.abs(mean) - limit, 0.0) ** 2, axis=-1)
            return (episodes, after, memory, ended), (sample(outcome, seen, fresh, drawn, mean, after), excess)

        carry = (state.episodes, state.outcome, state.memory, state.fresh)
        carry, (samples, excess) = jax.lax.scan(one, carry, jax.random.split(state.key, o.horizon))
        episodes, outcome, memory, fresh = carry
        after = state._replace(episodes=episodes, outcome=outcome, memory=memory, fresh=fresh)
        _, returns = advantages(samples, self._all_values(after, samples), o.discount, 1.0)
        starts = jnp.asarray(samples.fresh).at[0].set(True)
        gain = jnp.mean(jnp.where(starts, returns, 0.0))
        return o.excess_weight * jnp.mean(excess) - gain, jax.lax.stop_gradient((after, samples))

    def _fit_critic(self, state: ShacState, samples: Samples, key: Array) -> tuple[ShacState, Array]:
        """Fit the critic to TD(lambda) targets."""
        o = self.options
        _, target = advantages(samples, self._all_values(state, samples), o.discount, o.decay)
        inputs = self._normalized(state.critic_normalizer, samples.privileged)
        inputs, target = inputs.reshape(-1, inputs.shape[-1]), target.reshape(-1)
        keys = jax.random.split(key, o.critic_epochs)
        order = jnp.concatenate([jax.random.permutation(k, len(target)).reshape(o.minibatches, -1) for k in keys])

        def loss(critic: Any, rows: Array) -> Array:
            return jnp.mean((apply_layers(critic, inputs[rows], o.activation)[:, 0] - target[rows]) ** 2)

        def step(carry: Any, rows: Array) -> tuple[Any, Array]:
            critic, optimizer = carry
            error, gradient = jax.value_and_grad(loss)(critic, rows)
            direction, optimizer = self._adam.update(clipped(gradient, o.gradient_norm), optimizer)
            return (jax.tree.map(lambda w, d: w - o.critic_learning_rate * d, critic, direction), optimizer), error

        (critic, optimizer), error = jax.lax.scan(step, (state.critic, state.critic_optimizer), order)
        slow = jax.tree.map(lambda a, b: o.target_averaging * a + (1 - o.target_averaging) * b, state.target, critic)
        return state._replace(critic=critic, target=slow, critic_optimizer=optimizer), error.mean()

    def _all_values(self, state: ShacState, samples: Samples) -> Array:
        """Values by the slow critic, at all samples and after the last one."""
        last = self._critic_view(state.episodes, state.outcome)
        seen = self._normalized(state.critic_normalizer, jnp.concatenate([samples.privileged, last[None]]))
        return apply_layers(state.target, seen, self.options.activation)[..., 0]

    def _normalized(self, normalizer: Normalizer, x: Array) -> Array:
        return normalizer(x) if self.options.normalize else x

    def _seen(self, state: ShacState, samples: Samples) -> ShacState:
        """The state with normalizers that have seen the samples."""
        if not self.options.normalize:
            return state
        actor = state.normalizer.updated(samples.observation.reshape(-1, samples.observation.shape[-1]))
        critic = state.critic_normalizer.updated(samples.privileged.reshape(-1, samples.privileged.shape[-1]))
        return state._replace(normalizer=actor, critic_normalizer=critic)


def _within(action: Array, limit: float) -> Array:
    """Action clipped just inside of its limit, with the gradient of what was not clipped."""
    inside = (1.0 - INSIDE) * limit
    return action + jax.lax.stop_gradient(jnp.clip(action, -inside, inside) - action)
