"""PPO of Stable-Baselines3 on a task of ours: its learner with our environment, so that only learners differ."""

import time
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

from experiments.policies.results import Learned
from truesim.bridges.environments import TaskVectorEnv
from truesim.policies import PolicyTask, play
from truesim.policies.play import PlayOptions

SETTINGS = {
    "16 envs, batch 512, 5 epochs": {"envs": 16, "n_steps": 256, "batch_size": 512, "n_epochs": 5},
    "64 envs, batch 1024, 5 epochs": {"envs": 64, "n_steps": 64, "batch_size": 1024, "n_epochs": 5},
}
"""Faster settings than its defaults (one environment, batch 64, 10 epochs)."""
STEPS_BETWEEN_TESTS = 32_768


class BatchOfTask(VecEnv):
    """A batch of our episodes as an environment of Stable-Baselines3."""

    def __init__(self, task: PolicyTask, count: int, seed: int):
        self._envs, self._seed = TaskVectorEnv(task, count), seed
        super().__init__(count, self._envs.single_observation_space, self._envs.single_action_space)

    def reset(self) -> Any:
        """Begin all episodes."""
        self._observation, _ = self._envs.reset(seed=self._seed)
        return self._observation

    def step_async(self, actions: Any) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """One control step."""
        self._observation, reward, terminated, truncated, info = self._envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k in np.flatnonzero(terminated | truncated):
            infos[k] = {"terminal_observation": info["final_obs"][k], "TimeLimit.truncated": bool(truncated[k])}
        return self._observation, reward, terminated | truncated, infos

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Attributes of the environments: none but that nothing is drawn."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing can be set."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """No methods."""
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped."""
        return [False] * self.num_envs


class _Acting:
    """The mean action of a model, for `play`."""

    def __init__(self, model: PPO):
        self._model = model

    def act(self, observation: Any) -> Any:
        """Mean actions for a batch of observations."""
        return self._model.predict(np.asarray(observation), deterministic=True)[0]


def learn(task: PolicyTask, setting: str, seed: int, goal: float, most_seconds: float) -> Learned:
    """Train until the mean action returns the goal; tests do not count."""
    chosen = dict(SETTINGS[setting])
    envs = BatchOfTask(task, int(chosen.pop("envs")), seed)
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", gamma=0.99, ent_coef=0.01, **chosen)
    spent, steps, best = 0.0, 0, -np.inf
    while best < goal and spent < most_seconds:
        begin = time.process_time()
        model.learn(STEPS_BETWEEN_TESTS, reset_num_timesteps=steps == 0)
        spent += time.process_time() - begin
        steps = model.num_timesteps
        best = max(best, float(play(_Acting(model), task, options=PlayOptions(episodes=64)).returns.mean()))
    return Learned(f"Stable-Baselines3, {setting}", seed, spent, steps, best, best >= goal)
