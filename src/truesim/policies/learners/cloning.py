"""Behaviour cloning (Pomerleau, 1989): regression on the actions of recorded episodes.

One iteration is a pass over the recorded steps in minibatches; a policy with a memory is trained on whole episodes.
Some episodes are held out, whose error says when more passes only learn the others by heart. The simulator is not
asked: what the demonstrator never showed, the policy does not know (distillation from a policy has no such limit).
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array
from truesim.policies.demonstrations import Demonstrations, read_demonstrations
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode
from truesim.policies.learners.base import LearnerOptions
from truesim.policies.learners.regression import ActionRegression, Lessons, minibatch_order
from truesim.policies.networks import Normalizer


@dataclasses.dataclass(frozen=True)
class CloneOptions(LearnerOptions):
    """Options of behaviour cloning."""

    demonstrations: str = ""
    """Recorded episodes: a file that `truesim play --record` wrote, a log, or a folder of logs."""
    held_out: float = 0.1
    """Part of the episodes that are not learned, but measured."""
    minibatches: int = 16
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.demonstrations:
            raise TruesimError("Cloning needs recorded episodes: give a file or a folder of logs (--demonstrations).")
        if not 0.0 <= self.held_out < 1.0:
            raise TruesimError(f"The held-out part is {self.held_out:g}; it must be in [0, 1).")
        if self.minibatches < 1:
            raise TruesimError(f"A pass of {self.minibatches} minibatches learns nothing; give at least 1.")

    def make(self, environment: Environment) -> "Cloning":
        """Behaviour cloning for the task of an environment."""
        return Cloning(environment, self)


class CloneState(NamedTuple):
    """Everything that training continues from."""

    weights: Any
    optimizer: Any
    normalizer: Normalizer
    """Of the recorded observations."""
    episodes: Episode
    """Of the task, in which nothing is played."""
    key: Array
    steps: Array
    """Recorded steps so far, all passes counted."""


class Cloning:
    """Behaviour cloning: `state = learner.start(seed)`, then `state, metrics = learner.iterate(state)`."""

    columns: tuple[str, ...] = ("action_error", "held_out_error")

    def __init__(self, environment: Environment, options: CloneOptions):
        self.environment, self.options, self.network = environment, options, options.policy_network
        self._regression = ActionRegression(self.network, options.learning_rate)
        recorded = read_demonstrations(Path(options.demonstrations), environment.task)
        learned, self._kept = recorded.split(options.held_out)
        self._learned, self.steps_per_iteration = learned, int(learned.counts.sum())
        self._pass = jax.jit(self._improve)

    def start(self, seed: int) -> CloneState:
        """State before training."""
        episodes, outcome = self.environment.reset(seed)
        size = outcome.observation.shape[-1]
        weights = self.network.make(np.random.default_rng(seed), size, self.environment.task.action_map.size)
        normalizer = Normalizer.identity(size)
        if self.options.normalize:
            seen = self._learned.observation[self._learned.counts > 0]
            normalizer = jax.tree.map(np.asarray, normalizer.updated(seen))
        optimizer = jax.tree.map(np.asarray, self._regression.start(weights))
        key = np.asarray(jax.random.PRNGKey(seed))
        return CloneState(weights, optimizer, normalizer, episodes, key, np.zeros((), np.int32))

    def policy(self, state: CloneState) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the policy."""
        return state.weights, state.normalizer

    def iterate(self, state: CloneState) -> tuple[CloneState, dict[str, Array]]:
        """One pass over the recorded steps."""
        return self._pass(state)

    def _improve(self, state: CloneState) -> tuple[CloneState, dict[str, Array]]:
        lessons, memory = self._lessons(state, self._learned)
        key, shuffling = jax.random.split(state.key)
        order = minibatch_order(shuffling, len(memory), min(self.options.minibatches, len(memory)), 1)
        weights, optimizer, error = self._regression.improve(state.weights, state.optimizer, lessons, memory, order)
        metrics = {"action_error": error}
        if self._kept is not None:
            kept, start = self._lessons(state, self._kept)
            metrics["held_out_error"] = self._regression.error(weights, start, kept)
        steps = state.steps + jnp.int32(self.steps_per_iteration)
        return state._replace(weights=weights, optimizer=optimizer, key=key, steps=steps), metrics

    def _lessons(self, state: CloneState, recorded: Demonstrations) -> tuple[Lessons, Array]:
        """Recorded episodes as sequences; steps that fill up shorter episodes are left out where each is one."""
        batch = jnp.asarray(self.network.memory(recorded.counts.shape[1]))
        lessons = Lessons(
            state.normalizer(jnp.asarray(recorded.observation)),
            jnp.zeros(recorded.counts.shape, bool),
            jnp.asarray(recorded.action),
            jnp.asarray(recorded.counts),
        )
        if self.network.is_recurrent:
            return lessons, batch
        rows = np.flatnonzero(recorded.counts.ravel())
        flat = jax.tree.map(lambda x: x.reshape(1, -1, *x.shape[2:])[:, rows], lessons)
        return flat, jnp.zeros((len(rows), 0))
