"""Distillation of a teacher into a policy that sees less (DAgger: Ross, Gordon and Bagnell, 2011).

One iteration plays all episodes for `horizon` control steps and asks the teacher at every step what it would do there:

    1. a part beta of the episodes follows the teacher, the others follow the student; beta falls from 1 to 0;
    2. the student is regressed on the actions of the teacher, on the states that were visited.

So the student learns what to do where it gets by its own mistakes. DAgger keeps the data of all iterations; here each
iteration has new episodes, which cost less than memory. The teacher may see what the student does not, such as the
parameters of the episode (`privileged_task`); a student with a memory can infer them.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.learners.base import LearnerOptions, Samples, episode_metrics, sample
from truesim.policies.learners.regression import ActionRegression, Lessons, minibatch_order
from truesim.policies.networks import Normalizer
from truesim.policies.policy import TrainedPolicy, check_policy, load_policy
from truesim.policies.privileged import PrivilegedView, privileged_task


@dataclasses.dataclass(frozen=True)
class DistillOptions(LearnerOptions):
    """Options of distillation."""

    teacher: str = ""
    """Folder of the teacher's policy."""
    teacher_steps: int = 100_000
    """Control steps over which the part of episodes that the teacher plays falls to zero."""
    epochs: int = 2
    """Passes over the data of an iteration."""
    minibatches: int = 4
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.teacher:
            raise TruesimError("Distillation needs a teacher: give the folder of a policy (--teacher).")
        if self.epochs < 1 or self.minibatches < 1:
            raise TruesimError(f"A student with {self.epochs} epochs of {self.minibatches} minibatches learns nothing.")

    def make(self, environment: Environment) -> "Distillation":
        """Distillation on an environment."""
        return Distillation(environment, self)


class DistillState(NamedTuple):
    """Everything that training continues from."""

    weights: Any
    optimizer: Any
    normalizer: Normalizer
    episodes: Episode
    outcome: StepOutcome
    memory: Float[Array, "batch memory"]
    """Of the student."""
    teacher_memory: Float[Array, "batch teacher_memory"]
    fresh: Array
    """True for each episode that begins."""
    key: Array
    steps: Array
    """Control steps so far."""


class Distillation:
    """Distillation of a teacher: `state = learner.start(seed)`, then `state, metrics = learner.iterate(state)`."""

    columns: tuple[str, ...] = ("action_error", "teacher_share")

    def __init__(self, environment: Environment, options: DistillOptions):
        self.environment, self.options, self.network = environment, options, options.policy_network
        self.steps_per_iteration = options.episodes * options.horizon
        self.teacher = _read_teacher(options.teacher, environment)
        self._limit = environment.task.action_map.limit
        self._regression = ActionRegression(self.network, options.learning_rate)
        self._view = PrivilegedView(environment.task)
        self._act, self._update = jax.jit(self._both_actions), jax.jit(self._improve)
        self._collect = environment.compiled_play(self._played)

    def start(self, seed: int) -> DistillState:
        """State before training."""
        episodes, outcome = self.environment.reset(seed, stagger=True)
        size, batch = outcome.observation.shape[-1], self.options.episodes
        weights = self.network.make(np.random.default_rng(seed), size, self.environment.task.action_map.size)
        return DistillState(
            weights=weights,
            optimizer=jax.tree.map(np.asarray, self._regression.start(weights)),
            normalizer=Normalizer.identity(size),
            episodes=episodes,
            outcome=outcome,
            memory=self.network.memory(batch),
            teacher_memory=self.teacher.network.memory(batch),
            fresh=np.ones(batch, bool),
            key=np.asarray(jax.random.PRNGKey(seed)),
            steps=np.zeros((), np.int32),
        )

    def policy(self, state: DistillState) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the student."""
        return state.weights, state.normalizer

    def iterate(self, state: DistillState) -> tuple[DistillState, dict[str, Array]]:
        """One iteration: play, then regress."""
        return self._update(*self._collect(state))

    def teacher_share(self, steps: Array) -> Array:
        """Part of the episodes that the teacher plays."""
        return jnp.maximum(1.0 - steps / max(self.options.teacher_steps, 1), 0.0)

    def _begin(self, state: DistillState) -> tuple[DistillState, Array]:
        """The state with another key, and True for each episode that follows the teacher."""
        key, drawn = jax.random.split(jnp.asarray(state.key))
        by_teacher = jax.random.uniform(drawn, (self.options.episodes,)) < self.teacher_share(state.steps)
        return state._replace(key=key), by_teacher

    def _both_actions(self, state: DistillState) -> tuple[Array, Array, Array, Array]:
        """Memories and actions of student and teacher, the actions within their limits."""
        memory, action = self.network.step(state.weights, state.memory, self._seen(state, state.outcome.observation))
        x = state.outcome.observation
        if self.teacher.description.get("privileged"):
            x = jax.vmap(self._view.__call__)(state.episodes, state.outcome)
        right = self.teacher.network.step(self.teacher.weights, state.teacher_memory, self.teacher.normalizer(x))
        return (
            memory,
            jnp.clip(action, -self._limit, self._limit),
            right[0],
            jnp.clip(right[1], -self._limit, self._limit),
        )

    def _play_step(self, state: DistillState, by_teacher: Array) -> tuple[DistillState, Samples]:
        """One control step; the sample holds what was done as `action`, and what the teacher would do as `mean`."""
        memory, action, teacher_memory, right = self._act(state)
        done = jnp.where(by_teacher[:, None], right, action)
        episodes, after = self.environment.step(state.episodes, done)
        row = sample(state.outcome, after.privileged[..., :0], state.fresh, done, right, after)
        ended = jnp.asarray(after.terminated) | jnp.asarray(after.truncated)
        forget = ended[:, None]
        state = state._replace(
            episodes=episodes,
            outcome=after,
            fresh=ended,
            memory=jnp.where(forget, 0.0, memory),
            teacher_memory=jnp.where(forget, 0.0, teacher_memory),
        )
        return state, row

    def _played(self, state: DistillState) -> tuple[DistillState, Samples, Array]:
        """Samples of `horizon` control steps, and the student's memory before them."""
        begun, by_teacher = self._begin(state)

        def one(now: DistillState, _: None) -> tuple[DistillState, Samples]:
            return self._play_step(now, by_teacher)

        after, samples = self.environment.scan(one, begun, length=self.options.horizon)
        return after, samples, state.memory

    def _improve(self, state: DistillState, samples: Samples, memory: Array) -> tuple[DistillState, dict[str, Array]]:
        """Regress on the actions of the teacher."""
        o, seen = self.options, self._seen(state, samples.observation)
        counts = jnp.ones(samples.fresh.shape, seen.dtype)
        lessons, memory = self._regression.sequences(Lessons(seen, samples.fresh, samples.mean, counts), memory)
        key, shuffling = jax.random.split(state.key)
        order = minibatch_order(shuffling, len(memory), o.minibatches, o.epochs)
        weights, optimizer, error = self._regression.improve(state.weights, state.optimizer, lessons, memory, order)
        normalizer = state.normalizer
        if o.normalize:
            normalizer = normalizer.updated(samples.observation.reshape(-1, samples.observation.shape[-1]))
        own = {"action_error": error, "teacher_share": self.teacher_share(state.steps)}
        steps = state.steps + jnp.int32(self.steps_per_iteration)
        after = state._replace(weights=weights, optimizer=optimizer, normalizer=normalizer, key=key, steps=steps)
        return after, episode_metrics(samples) | own

    def _seen(self, state: DistillState, x: Array) -> Array:
        return state.normalizer(x) if self.options.normalize else x


def _read_teacher(folder: str, environment: Environment) -> TrainedPolicy:
    """Policy of the teacher, which must act in the episodes of the environment."""
    runner, task = load_policy(Path(folder)), environment.task
    seen = privileged_task(task) if runner.description.get("privileged") else task
    try:
        check_policy(runner, seen)
    except TruesimError as error:
        raise TruesimError(f"The policy {folder} cannot teach {task.name}: {error}") from error
    return TrainedPolicy.of_runner(runner)
