"""Tasks as environments of gymnasium, for any learner: one episode (`TaskEnv`) or a batch (`TaskVectorEnv`).

register()
env = gymnasium.make("truesim/cart-pole-swingup-v0")
observation, info = env.reset(seed=0, options={"parameters": {"bodies/pole.mass": 0.3}})
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies.environment import Environment
from truesim.policies.physics import physics_of
from truesim.policies.randomization import Randomization, expand, uniform
from truesim.policies.task import PolicyTask
from truesim.policies.tasks import TASKS, make_task

MAX_OBSERVATION = 1e6
"""Bound of observations that spaces state; gymnasium asks for a finite one."""
SEEDS = 2**31
"""Number of different seeds that a reset without a seed draws from."""


def register() -> None:
    """Register all tasks that have a robot of their own as `truesim/NAME-v0`."""
    for name, entry in TASKS.items():
        if entry.has_robot and f"truesim/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"truesim/{name}-v0", entry_point=_make, kwargs={"task": name})  # type: ignore[arg-type]


def _make(task: str, **kwargs: Any) -> "TaskEnv":
    return TaskEnv(make_task(task), **kwargs)


def spaces_of(task: PolicyTask, observations: int) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Spaces of one observation and one action."""
    limit, size = task.action_map.limit, task.action_map.size
    return (
        gymnasium.spaces.Box(-MAX_OBSERVATION, MAX_OBSERVATION, (observations,), np.float32),
        gymnasium.spaces.Box(-limit, limit, (size,), np.float32),
    )


def _checked_parameters(task: PolicyTask, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Values of parameters as arrays; one of another shape than the parameter is refused."""
    found = {}
    for path, value in values.items():
        shape = np.shape(task.simulator.read(str(expand(task.simulator, path)[0])))
        try:
            found[path] = np.asarray(value, np.float32)
        except (TypeError, ValueError):
            raise TruesimError(f"{path} is set to {value!r}, which is not a number.") from None
        if found[path].shape != shape or not np.all(np.isfinite(found[path])):
            raise TruesimError(f"{path} is set to {value!r}; it takes finite numbers of shape {shape}.")
    return found


class TaskVectorEnv(gymnasium.vector.VectorEnv):
    """A batch of episodes of a task; one that ends begins again in the same step, and `final_obs` has its end."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, task: PolicyTask, num_envs: int = 16, *, threads: int = 1):
        """Compile the task.

        Args:
            task: The task.
            num_envs: Number of episodes.
            threads: Threads over which kernels split the batch.
        """
        self.num_envs, self._task, self._threads = num_envs, task, threads
        self._environment = _environment(task, num_envs, threads)
        self._seeds, self._fixed = np.random.default_rng(), dict[str, np.ndarray]()
        self._episodes, outcome = self._environment.reset(0)
        spaces = spaces_of(task, outcome.observation.shape[-1])
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in spaces)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin all episodes; `options={"parameters": {path: value}}` fixes parameters of the robot."""
        one = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=one)
        if one is not None:
            self._seeds = np.random.default_rng(one)
        if options is not None and "parameters" in options:
            self._fix(_checked_parameters(self._task, options["parameters"]))
        number = int(self._seeds.integers(SEEDS))
        self._episodes, outcome = self._environment.reset(number, fixed=self._fixed)
        return np.asarray(outcome.observation), {}

    def _fix(self, values: dict[str, np.ndarray]) -> None:
        """Keep these values; another set of paths compiles the environment again, other values do not."""
        if set(values) != set(self._fixed):
            kept = Randomization({path: uniform(0.0, 0.0) for path in values})
            changed = dataclasses.replace(self._task, randomization=self._task.randomization.merged(kept))
            self._environment = _environment(changed, self.num_envs, self._threads)
        self._fixed = values

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One control step of all episodes."""
        actions = np.asarray(actions, np.float32)
        if actions.shape != self.action_space.shape or not np.all(np.isfinite(actions)):
            raise TruesimError(f"Actions must be finite numbers of shape {self.action_space.shape}.")
        with float32():
            self._episodes, outcome = self._environment.step(self._episodes, actions)
            if self._fixed:  # also of episodes that have begun by themselves
                each = {path: np.broadcast_to(x, (self.num_envs, *x.shape)) for path, x in self._fixed.items()}
                kept = {**self._episodes.parameters, **each}
                self._episodes = dataclasses.replace(self._episodes, parameters=kept)
        values = (outcome.observation, outcome.reward, outcome.terminated, outcome.truncated)
        observation, reward, terminated, truncated = (np.asarray(x) for x in values)
        ended = terminated | truncated
        if not ended.any():
            return observation, reward, terminated, truncated, {}
        last = np.full(self.num_envs, None, object)
        for k in np.flatnonzero(ended):
            last[k] = np.asarray(outcome.last)[k]
        episode = {"r": np.asarray(outcome.total), "l": np.asarray(outcome.length)}
        info = {"episode": episode, "_episode": ended, "final_obs": last, "_final_obs": ended}
        return observation, reward, terminated, truncated, info


def _environment(task: PolicyTask, count: int, threads: int) -> Environment:
    with float32():
        return Environment(task, count, physics=physics_of(task, count, threads), threads=threads, shows_last=True)


class TaskEnv(gymnasium.Env):
    """One episode of a task."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: PolicyTask):
        """Compile the task."""
        self._batch = TaskVectorEnv(task, 1)
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; `options={"parameters": {path: value}}` fixes parameters of the robot."""
        super().reset(seed=seed)
        observation, info = self._batch.reset(seed=seed, options=options)
        return observation[0], info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One control step."""
        observation, reward, terminated, truncated, info = self._batch.step(np.asarray(action, np.float32)[None])
        observation = info.get("final_obs", observation)
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}
