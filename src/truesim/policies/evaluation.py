"""Evaluation of the mean action while a policy is trained: returns, and trials under the conditions of a test."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.policies.environment import Environment
from truesim.policies.learners.base import Learner, LearningState
from truesim.policies.networks import Normalizer
from truesim.policies.physics import physics_of
from truesim.policies.play import PlayOptions, play
from truesim.policies.task import PolicyTask, PolicyTrial


class Evaluation:
    """Returns of the mean action over one episode of each of a batch, always the same initial states."""

    def __init__(self, task: PolicyTask, episodes: int, learner: Learner, seed: int = 2**20):
        self._environment, self._learner = Environment(task, episodes, physics=physics_of(task, episodes)), learner
        self._start = self._environment.reset(seed)
        self._memory = learner.network.memory(episodes)
        self._step = jax.jit(learner.network.step)
        self._play = self._environment.compiled_play(lambda weights, start: self._returns(task.steps, weights, start))

    def __call__(self, state: LearningState) -> np.ndarray:
        """Returns of all episodes."""
        return np.asarray(self._play(self._learner.policy(state), self._start))

    def _returns(self, steps: int, policy: tuple[Any, Normalizer], start: Any) -> Any:
        weights, normalizer = policy

        def one(carry: Any, _: None) -> tuple[Any, None]:
            episodes, outcome, memory, total, alive = carry
            memory, action = self._step(weights, memory, normalizer(outcome.observation))
            episodes, outcome = self._environment.step(episodes, action)
            total = total + alive * outcome.reward
            alive = jnp.where(outcome.terminated | outcome.truncated, 0.0, alive)
            return (episodes, outcome, memory, total, alive), None

        episodes, outcome = start
        carry = (episodes, outcome, self._memory, 0.0 * outcome.reward, jnp.ones(outcome.reward.shape))
        return self._environment.scan(one, carry, length=steps)[0][3]


class TrialResult(NamedTuple):
    """Result of the trial of a policy."""

    steps: int
    """Control steps of training before it."""
    episodes: int
    terminated: int
    """Episodes that ended before the time limit, such as by a fall."""
    error: float
    """Largest error of a component of the command, relative to it; 0 without commands."""

    def passes(self, trial: PolicyTrial) -> bool:
        """True if training may end."""
        return self.terminated <= trial.terminated and self.error <= trial.error

    def is_better_than(self, other: "TrialResult") -> bool:
        """True if fewer episodes ended early, or as many and commands were followed better."""
        return (self.terminated, self.error) < (other.terminated, other.error)


def hold_trial(task: PolicyTask, trial: PolicyTrial, learner: Learner, state: LearningState) -> TrialResult:
    """Play the mean action under the conditions of a test, but with drawn parameters."""
    options = PlayOptions(episodes=trial.episodes, seed=int(state.steps), randomize=True)
    played = play(_MeanAction(learner, state), task, options=options)
    error = 0.0 if played.tracking is None else float(np.max(played.tracking))
    return TrialResult(int(state.steps), trial.episodes, int(played.terminated.sum()), error)


class _MeanAction:
    """Mean action of a policy that is being trained."""

    def __init__(self, learner: Learner, state: LearningState):
        self._network, (self._weights, self._normalizer) = learner.network, learner.policy(state)
        self._step, self._memory = jax.jit(learner.network.step), np.zeros((0, 0), np.float32)

    def reset(self) -> None:
        """Forget all that was observed."""
        self._memory = np.zeros((0, 0), np.float32)

    def act(self, observation: Any) -> Any:
        """Mean actions for a batch of observations."""
        if len(self._memory) != len(observation):
            self._memory = self._network.memory(len(observation))
        self._memory, action = self._step(self._weights, self._memory, self._normalizer(observation))
        return action
