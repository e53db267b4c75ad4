"""Closed loop of a conditioned policy and an estimator of its condition, which sees the latest steps.

    estimate = phi(x_{t-h+1}, a_{t-h}, ..., x_t, a_{t-1}),    a_t = pi(x_t, estimate)

`osi` and `rma` are such estimators; they differ in what they estimate, in the network, and in how they are trained.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.adaptation.conditioned_policy import ConditionedPolicy
from truesim.policies.adaptation.history import empty_history, forget, remember
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.physics import physics_of


class HistoryNetwork(Protocol):
    """Estimator of a condition from a history."""

    @property
    def history(self) -> int:
        """Control steps that it sees."""

    def init(self, rng: np.random.Generator, width: int, outputs: int) -> Any:
        """Weights before training."""

    def apply(self, weights: Any, history: Float[Array, "batch length width"]) -> Float[Array, "batch outputs"]:
        """Estimates of a batch."""


class LoopState(NamedTuple):
    """Running episodes with their histories."""

    episodes: Episode
    outcome: StepOutcome
    history: Float[Array, "batch length width"]
    action: Float[Array, "batch na"]


class LoopStep(NamedTuple):
    """A control step of all episodes; with axes (time, batch) over many."""

    history: Array
    """As the estimator saw it."""
    target: Array
    """Condition of the true parameters."""
    estimate: Array
    reward: Array
    ended: Array


@dataclasses.dataclass(frozen=True)
class OnlinePolicy:
    """A conditioned policy with a trained estimator of its condition."""

    policy: ConditionedPolicy
    network: HistoryNetwork
    weights: Any

    def runner(self, batch: int = 1) -> "OnlineRunner":
        """The policy for a robot, step by step."""
        return OnlineRunner(self, batch)


class OnlineRunner:
    """An online policy that acts step by step; `reset` at the start of every episode."""

    def __init__(self, online: OnlinePolicy, batch: int = 1):
        """Begin with empty histories."""
        self._online, self._batch = online, batch
        self._limit = online.policy.task.action_map.limit
        self._size = online.policy.task.action_map.size
        self._step = jax.jit(self._advance)
        self._memory: tuple[Any, Any] | None = None

    def reset(self) -> None:
        """Forget the last episode."""
        self._memory = None

    def act(self, observation: Any) -> np.ndarray:
        """Actions for observations of the batch, shape (batch, observations)."""
        own = len(self._online.policy.layers[0][0]) - self._online.policy.size
        if np.shape(observation)[-1:] != (own,):
            raise TruesimError(
                f"The observation has shape {np.shape(observation)}; this policy takes vectors of {own} numbers."
            )
        with float32():
            x = jnp.atleast_2d(jnp.asarray(observation, jnp.float32))
            if self._memory is None:
                width = x.shape[-1] + self._size
                history = empty_history(len(x), self._online.network.history, width)
                self._memory = history, jnp.zeros((len(x), self._size))
            action, self._memory = self._step(x, *self._memory)
            return np.asarray(action).reshape(*np.shape(observation)[:-1], self._size)

    def _advance(self, x: Array, history: Array, action: Array) -> tuple[Array, tuple[Array, Array]]:
        history = remember(history, x, action)
        estimate = self._online.network.apply(self._online.weights, history)
        action = jnp.clip(self._online.policy.act(x, estimate), -self._limit, self._limit)
        return action, (history, action)


class OnlineLoop:
    """Episodes of a conditioned policy in simulation, driven by estimates or by true parameters."""

    def __init__(self, policy: ConditionedPolicy, network: HistoryNetwork, batch: int, action_noise: float = 0.0):
        """Compile the environment.

        Args:
            policy: The policy.
            network: Estimator of its condition.
            batch: Number of episodes.
            action_noise: Standard deviation of noise that is added to actions.
        """
        self.policy, self.network, self.noise = policy, network, action_noise
        with float32():
            task = policy.told_task
            self.environment = Environment(task, batch, physics=physics_of(task, batch))
        self._play = self.environment.compiled_play(self._scan, static_argnames=("steps", "truth"))
        self._chosen = jax.jit(self._choose, static_argnames=("truth",))

    @property
    def width(self) -> int:
        """Size of an observation and an action together."""
        outcome = self.environment.reset(0)[1]
        return outcome.observation.shape[-1] - self._told + self.policy.task.action_map.size

    @property
    def _told(self) -> int:
        return self.policy.size if self.policy.network is None else self.policy.network.told

    def start(self, seed: int, *, stagger: bool = False) -> LoopState:
        """New episodes with empty histories."""
        episodes, outcome = self.environment.reset(seed, stagger=stagger)
        batch, size = self.environment.batch, self.policy.task.action_map.size
        return LoopState(
            episodes, outcome, empty_history(batch, self.network.history, self.width), jnp.zeros((batch, size))
        )

    def play(self, weights: Any, state: LoopState, steps: int, key: Array, *, truth: bool = False) -> Any:
        """States after some control steps, and the steps.

        Args:
            weights: Weights of the estimator.
            state: Episodes to continue.
            steps: Control steps.
            key: Random key of the noise of actions.
            truth: True if the policy is told the true condition instead of the estimate.
        """
        return self._play(weights, state, key, steps=steps, truth=truth)

    def _scan(self, weights: Any, state: LoopState, key: Array, *, steps: int, truth: bool) -> Any:
        def one(now: LoopState, step_key: Array) -> tuple[LoopState, LoopStep]:
            seen = now.outcome.observation, now.history, now.action
            history, target, estimate, action = self._chosen(weights, *seen, step_key, truth=truth)
            episodes, outcome = self.environment.step(now.episodes, action)
            ended = outcome.terminated | outcome.truncated
            after = LoopState(episodes, outcome, *forget(history, action, ended))
            return after, LoopStep(history, target, estimate, outcome.reward, ended)

        return self.environment.scan(one, state, jax.random.split(key, steps))

    def _choose(
        self, weights: Any, observation: Array, history: Array, action: Array, key: Array, *, truth: bool
    ) -> Any:
        """History, true condition, its estimate, and the action."""
        x, told = jnp.split(observation, [observation.shape[-1] - self._told], axis=-1)
        history = remember(history, x, action)
        target, estimate = self.policy.condition(told), self.network.apply(weights, history)
        mean = self.policy.act(x, target if truth else estimate)
        limit = self.policy.task.action_map.limit
        action = jnp.clip(mean + self.noise * jax.random.normal(key, mean.shape), -limit, limit)
        return history, target, estimate, action

    def returns(self, weights: Any, seed: int, *, truth: bool = False) -> Float[np.ndarray, " batch"]:
        """Return of one episode each, from the same initial states and parameters for equal seeds."""
        with float32():
            state = self.start(seed)
            _, steps = self.play(weights, state, self.policy.task.steps, jax.random.key(seed), truth=truth)
            before = np.cumsum(np.asarray(steps.ended), axis=0) - np.asarray(steps.ended)
            return np.sum(np.asarray(steps.reward) * (before == 0), axis=0)


class Regression:
    """Least squares of an estimator's output by Adam, in minibatches; `fit` continues where the last one ended."""

    def __init__(self, network: HistoryNetwork, rate: float | Callable[[Array], Array], minibatch: int):
        """Prepare.

        Args:
            network: The estimator.
            rate: Step size of Adam, or a schedule of optax.
            minibatch: Samples of each step.
        """
        self._network, self._minibatch = network, minibatch
        self._adam = libraries.optax.adam(rate)
        self._epoch = jax.jit(self._pass)

    def start(self, weights: Any) -> Any:
        """State of the optimizer."""
        return self._adam.init(weights)

    def epoch(self, weights: Any, optimizer: Any, histories: Array, targets: Array, key: Array) -> tuple[Any, Any, Any]:
        """One pass over the samples in random order: weights, optimizer and mean squared error."""
        return self._epoch(weights, optimizer, histories, targets, key)

    def _pass(self, weights: Any, optimizer: Any, histories: Array, targets: Array, key: Array) -> Any:
        count = len(histories) // self._minibatch
        order = jax.random.permutation(key, len(histories))[: count * self._minibatch].reshape(count, -1)

        def loss(weights: Any, rows: Array) -> Array:
            return jnp.mean((self._network.apply(weights, histories[rows]) - targets[rows]) ** 2)

        def step(carry: tuple[Any, Any], rows: Array) -> tuple[tuple[Any, Any], Array]:
            weights, optimizer = carry
            value, gradient = jax.value_and_grad(loss)(weights, rows)
            change, optimizer = self._adam.update(gradient, optimizer, weights)
            return (libraries.optax.apply_updates(weights, change), optimizer), value

        (weights, optimizer), errors = jax.lax.scan(step, (weights, optimizer), order)
        return weights, optimizer, jnp.mean(errors)
