"""Common parts of learners: their options, samples of control steps, and the update of weights."""

import abc
import dataclasses
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Bool, Float
from truesim.policies.actors import MemorylessNetwork, PolicyNetwork
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.networks import Normalizer

EPSILON = 1e-6
"""Added to denominators."""


class LearningState(Protocol):
    """State of a learner: everything that training continues from."""

    @property
    def episodes(self) -> Episode:
        """Running episodes."""

    @property
    def steps(self) -> Array:
        """Control steps so far."""


class Learner(Protocol):
    """A learner on an environment: `state = start(seed)`, then `state, metrics = iterate(state)`."""

    environment: Environment
    columns: tuple[str, ...]
    """Metrics of its own for the log."""
    steps_per_iteration: int
    """Control steps of an iteration."""

    @property
    def network(self) -> PolicyNetwork | MemorylessNetwork:
        """Network of the policy."""

    def start(self, seed: int) -> Any:
        """State before training."""

    def iterate(self, state: Any) -> tuple[Any, dict[str, Array]]:
        """State after one more iteration, and its metrics."""

    def policy(self, state: Any) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the policy at a state."""


@dataclasses.dataclass(frozen=True)
class LearnerOptions(abc.ABC):
    """Options that all learners have."""

    episodes: int = 512
    """Episodes that are played at once."""
    horizon: int = 32
    """Control steps between two updates."""
    network: str = "mlp"
    """Network of the policy: `mlp`, or with a memory `gru` or `lstm`."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of policy and critic."""
    units: int = 64
    """Units of the memory of a recurrent policy."""
    activation: str = "elu"
    """Of the hidden layers: `tanh`, `elu` or `relu`."""
    normalize: bool = True
    """True if observations are normalized by their running mean and variance."""

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.horizon < 1:
            raise TruesimError(f"A learner with {self.episodes} episodes of {self.horizon} steps has nothing to play.")
        assert self.policy_network, "its options are checked when it is made"

    @property
    def policy_network(self) -> PolicyNetwork:
        """Network of the policy."""
        return PolicyNetwork(self.network, self.hidden, self.units, self.activation)

    @abc.abstractmethod
    def make(self, environment: Environment) -> Learner:
        """The learner on an environment."""


PLAYED = ("episodes", "outcome", "memory", "teacher_memory", "fresh")
"""Fields of learning states that belong to an environment; the others are what was learned."""


def carry_over(learned: Any, fresh: Any) -> Any:
    """State of a learner on another environment, which has learned what it has on its own.

    Args:
        learned: State on the other environment.
        fresh: State before training on this one.
    """
    return learned._replace(**{name: getattr(fresh, name) for name in learned._fields if name in PLAYED})


class Samples(NamedTuple):
    """Control steps of all episodes: time first, then episodes."""

    observation: Float[Array, "time batch no"]
    privileged: Float[Array, "time batch np"]
    """Input of the critic."""
    fresh: Bool[Array, "time batch"]
    """True where an episode begins."""
    action: Float[Array, "time batch na"]
    mean: Float[Array, "time batch na"]
    reward: Float[Array, "time batch"]
    terminated: Array
    truncated: Array
    total: Float[Array, "time batch"]
    length: Array

    @property
    def ended(self) -> Bool[Array, "time batch"]:
        """True where an episode ends."""
        return self.terminated | self.truncated


def sample(
    before: StepOutcome, privileged: Array, fresh: Array, action: Array, mean: Array, after: StepOutcome
) -> Samples:
    """One control step."""
    return Samples(
        before.observation,
        privileged,
        fresh,
        action,
        mean,
        after.reward,
        after.terminated,
        after.truncated,
        after.total,
        after.length,
    )


def log_density(action: Array, mean: Array, log_std: Array) -> Array:
    """Logarithm of the Gaussian density of an action, up to a constant."""
    return -0.5 * jnp.sum(((action - mean) * jnp.exp(-log_std)) ** 2, axis=-1) - jnp.sum(log_std)


def advantages(samples: Samples, values: Array, discount: float, decay: float) -> tuple[Array, Array]:
    """Generalized advantages and targets of the value (Schulman et al., 2016); time limits count as going on.

    The state at a time limit is not kept, so that its value is taken to be that of the control step before.
    """
    reward = samples.reward + jnp.where(samples.truncated, discount * values[:-1], 0.0)
    goes_on = (~samples.ended).astype(values.dtype)

    def back(carry: Any, x: Any) -> tuple[Any, Array]:
        later, next_value = carry
        reward, value, goes_on = x
        later = reward + discount * goes_on * (next_value + decay * later) - value
        return (later, value), later

    start = (jnp.zeros_like(values[-1]), values[-1])
    _, advantage = jax.lax.scan(back, start, (reward, values[:-1], goes_on), reverse=True)
    return advantage, advantage + values[:-1]


def clipped(gradient: Any, most: float) -> Any:
    """Gradient scaled to at most this norm; zero if it is not finite."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
    factor = jnp.minimum(1.0, most / (norm + EPSILON))
    return jax.tree.map(lambda g: jnp.where(jnp.isfinite(norm), g * factor, 0.0), gradient)


def episode_metrics(samples: Samples) -> dict[str, Array]:
    """Numbers of an iteration that every learner logs; returns and lengths are sums over the episodes that ended."""
    ended = samples.ended
    return {
        "ended": jnp.sum(ended),
        "return": jnp.sum(jnp.where(ended, samples.total, 0.0)),
        "length": jnp.sum(jnp.where(ended, samples.length, 0)),
        "terminated": jnp.sum(samples.terminated),
        "reward": jnp.mean(samples.reward),
    }


class CriticView:
    """Input of a critic: all terms of the task without noise, and the physical parameters of the episode."""

    def __init__(self, environment: Environment, parameters: bool):
        """Prepare.

        Args:
            environment: The environment.
            parameters: Whether the critic sees drawn parameters and latency, scaled by their standard deviation.
        """
        task = environment.task
        self._paths = task.randomization.paths if parameters else ()
        self._latency = parameters and task.latency[1] > task.latency[0]
        if not (self._paths or self._latency):
            return
        episodes, _ = environment.reset(0)
        drawn = np.asarray(self._drawn(jax.tree.map(jnp.asarray, episodes)), float)
        self._mean, self._deviation = (x.astype(np.float32) for x in (drawn.mean(0), drawn.std(0) + EPSILON))

    def __call__(self, episodes: Episode, outcome: StepOutcome) -> Float[Array, "batch np"]:
        """Input of the critic."""
        if not (self._paths or self._latency):
            return outcome.privileged
        drawn = (self._drawn(episodes) - self._mean) / self._deviation
        return jnp.concatenate([outcome.privileged, drawn.astype(jnp.float32)], axis=-1)

    def _drawn(self, episodes: Episode) -> Array:
        columns = [episodes.parameters[path] for path in self._paths]
        columns += [episodes.latency] if self._latency else []
        return jnp.concatenate([jnp.reshape(x, (len(x), -1)) for x in columns], axis=-1)
