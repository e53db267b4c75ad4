"""The same control steps by MuJoCo: `mujoco.rollout` and a gymnasium environment, each with a policy in NumPy."""

import itertools
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout

from truesim.policies import PolicyTask

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


class NumpyPolicy:
    """A network of two hidden layers with tanh, in single precision."""

    def __init__(self, observations: int, actions: int, units: int = 64):
        rng, sizes = np.random.default_rng(0), (observations, units, units, actions)
        self._layers = [
            (rng.normal(0, 1 / np.sqrt(n), (n, m)).astype(np.float32), np.zeros(m, np.float32))
            for n, m in itertools.pairwise(sizes)
        ]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Actions for observations."""
        for W, b in self._layers[:-1]:
            x = np.tanh(x @ W + b)
        W, b = self._layers[-1]
        return x @ W + b


class MujocoSteps:
    """Facts about a task's robot in MuJoCo: its model at the task's time step, a start, and controls of actions."""

    def __init__(self, task: PolicyTask):
        source = task.simulator.model.source
        assert source is not None, "the robots of these tasks come from files"
        self.model, self.substeps = source.compiled, task.substeps
        self.model.opt.timestep = float(task.simulator.timestep)
        self.data, size = mujoco.MjData(self.model), task.action_map.size
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        zero = np.zeros(size, np.float32)
        self.offset = np.asarray(task.action_map.control(task.simulator, zero))
        self.gain = np.asarray(task.action_map.control(task.simulator, zero + 1.0)) - self.offset
        self.has_base = self.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE

    def observe(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """What a policy of the task sees: the state, the direction of gravity for a free base, and the last action."""
        if not self.has_base:
            return np.concatenate([q[..., :1], np.cos(q[..., 1:]), np.sin(q[..., 1:]), v], axis=-1, dtype=np.float32)
        w, x, y, z = np.moveaxis(q[..., 3:7], -1, 0)
        down = np.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], axis=-1)
        return np.concatenate([down, q[..., 7:], v[..., 3:], action], axis=-1, dtype=np.float32)


class RolloutPeer:
    """Control steps of a batch by `mujoco.rollout`, one thread, and a NumPy policy between them."""

    def __init__(self, task: PolicyTask, batch: int):
        self._mujoco = at = MujocoSteps(task)
        state = np.zeros(mujoco.mj_stateSize(at.model, FULL))
        mujoco.mj_getState(at.model, at.data, state, FULL)
        self._start, self._action = np.repeat(state[None], batch, axis=0), np.zeros((batch, task.action_map.size))
        self._policy = NumpyPolicy(self._observation(self._start, self._action).shape[-1], task.action_map.size)

    def _observation(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        nq, nv = self._mujoco.model.nq, self._mujoco.model.nv
        return self._mujoco.observe(state[:, 1 : 1 + nq], state[:, 1 + nq : 1 + nq + nv], action)

    def play(self, steps: int) -> None:
        """Control steps from the start."""
        at, state, action, warm = self._mujoco, self._start, self._action, None
        for _ in range(steps):
            action = np.clip(self._policy(self._observation(state, action)), -1.0, 1.0)
            controls = np.repeat((at.offset + at.gain * action)[:, None], at.substeps, axis=1)
            states, _ = rollout.rollout(at.model, at.data, state, controls, initial_warmstart=warm)
            state = states[:, -1]


class MujocoEnv(gymnasium.Env[Any, Any]):
    """The task as a gymnasium environment on MuJoCo as many write it: observation and reward in NumPy."""

    def __init__(self, task: PolicyTask):
        self._mujoco = at = MujocoSteps(task)
        self._data, self._limit = mujoco.MjData(at.model), task.steps
        seen = at.observe(at.data.qpos, at.data.qvel, np.zeros(task.action_map.size))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, seen.shape, np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (task.action_map.size,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin at the start with a little noise."""
        super().reset(seed=seed)
        at, data = self._mujoco, self._data
        data.qpos[:], data.time = at.data.qpos, 0.0
        data.qvel[:] = self.np_random.uniform(-0.05, 0.05, at.model.nv)
        self._action, self._step = np.zeros(self.action_space.shape or ()), 0
        return at.observe(data.qpos, data.qvel, self._action), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One control step."""
        at, data = self._mujoco, self._data
        data.ctrl[:] = at.offset + at.gain * action
        mujoco.mj_step(at.model, data, at.substeps)
        change, self._action, self._step = action - self._action, np.array(action), self._step + 1
        reward = float(np.exp(-(data.qvel[0] ** 2)) - 0.01 * np.sum(change**2) - 0.01 * np.sum(data.qvel**2))
        fell = bool(at.has_base and data.qpos[2] < 0.1)
        return at.observe(data.qpos, data.qvel, self._action), reward, fell, self._step >= self._limit, {}


class GymnasiumPeer:
    """Control steps of `gymnasium.vector.SyncVectorEnv` and a NumPy policy."""

    def __init__(self, task: PolicyTask, batch: int):
        self._envs = gymnasium.vector.SyncVectorEnv([lambda: MujocoEnv(task)] * batch)
        self._observation, _ = self._envs.reset(seed=0)
        self._policy = NumpyPolicy(self._observation.shape[-1], task.action_map.size)

    def play(self, steps: int) -> None:
        """Control steps from where the last call ended."""
        for _ in range(steps):
            self._observation, *_ = self._envs.step(np.clip(self._policy(self._observation), -1.0, 1.0))
