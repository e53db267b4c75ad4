"""Recorded episodes from which a policy is cloned: observations and the actions that followed.

A file of them is an NPZ with `observation` (steps, n), `action` (steps, m) and `episode` (steps,), the number of the
episode of each step; `truesim play --record` writes one. Logs of a robot with the columns `qpos/…`, `qvel/…` and
`ctrl/…`, such as those of `RealEnv`, serve as well: observations are computed from them.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.persistence.atomic import write_arrays
from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.files.logs import Log, read_logs
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.policies.draws import make_keys
from truesim.policies.episodes import begin, instant
from truesim.policies.play import ActingPolicy, forget
from truesim.policies.policy import linear_controls, observation_size
from truesim.policies.task import Instant, PolicyTask

INVERSE_TOLERANCE = 1e-3
"""Part of an action's limit by which controls of a log may differ from those of any action."""
RATE_TOLERANCE = 0.02
"""Part by which the control period may miss a whole number of rows of a log."""


class Demonstrations(NamedTuple):
    """Recorded episodes, time first; shorter ones are filled up with zeros."""

    observation: Float[np.ndarray, "time episodes no"]
    action: Float[np.ndarray, "time episodes na"]
    counts: Float[np.ndarray, "time episodes"]
    """1 for recorded steps, 0 for those that fill up."""

    @classmethod
    def of(cls, episodes: Sequence[tuple[np.ndarray, np.ndarray]]) -> "Demonstrations":
        """Demonstrations of observations and actions of each episode, shapes (steps, n) and (steps, m)."""
        longest = max(len(action) for _, action in episodes)

        def filled(rows: np.ndarray) -> np.ndarray:
            return np.pad(rows, ((0, longest - len(rows)), (0, 0)))

        counts = np.stack([np.arange(longest) < len(action) for _, action in episodes], axis=1)
        seen, done = (np.stack([filled(each[k]) for each in episodes], axis=1) for k in range(2))
        return cls(seen.astype(np.float32), done.astype(np.float32), counts.astype(np.float32))

    def split(self, part: float) -> tuple["Demonstrations", "Demonstrations | None"]:
        """The first episodes, and this part of them from the end, at least one; all and None if there is only one."""
        count = self.counts.shape[1]
        kept = 0 if part == 0.0 or count < 2 else max(1, round(part * count))
        if not kept:
            return self, None
        return Demonstrations(*(x[:, :-kept] for x in self)), Demonstrations(*(x[:, -kept:] for x in self))

    def save(self, path: Path) -> None:
        """Write an NPZ file."""
        episode = np.broadcast_to(np.arange(self.counts.shape[1]), self.counts.shape)
        rows = (self.counts.T > 0, *(np.swapaxes(x, 0, 1) for x in (self.observation, self.action, episode)))
        write_arrays(path, {n: x[rows[0]] for n, x in zip(("observation", "action", "episode"), rows[1:], strict=True)})


class RecordingPolicy:
    """A policy that keeps what it saw and did, for `play`."""

    def __init__(self, policy: ActingPolicy):
        """Begin with nothing."""
        self._policy, self._rows = policy, list[tuple[np.ndarray, np.ndarray]]()

    def reset(self) -> None:
        """Let the policy forget the last episode."""
        forget(self._policy)

    def act(self, observation: Any) -> np.ndarray:
        """Actions for a batch of observations."""
        action = np.asarray(self._policy.act(observation), np.float32)
        self._rows.append((np.array(observation, np.float32), action))
        return action

    def demonstrations(self, steps: Sequence[int]) -> Demonstrations:
        """Recorded episodes of these lengths."""
        seen, done = (np.stack([row[k] for row in self._rows], axis=1) for k in range(2))
        return Demonstrations.of([(x[:n], y[:n]) for x, y, n in zip(seen, done, steps, strict=True)])


def read_demonstrations(path: Path, task: PolicyTask) -> Demonstrations:
    """Recorded episodes for a task: a file of demonstrations, a log, or a folder or pattern of logs."""
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as file:
            if {"observation", "action"} <= set(file.files):
                return Demonstrations.of(_checked(path, {name: file[name] for name in file.files}, task))
    return Demonstrations.of([episode_of_log(log, task) for log in read_logs(path)])


def _checked(path: Path, arrays: dict[str, np.ndarray], task: PolicyTask) -> list[tuple[np.ndarray, np.ndarray]]:
    """Episodes of a file of demonstrations, whose sizes are those of the task."""
    seen, done = arrays["observation"], arrays["action"]
    for name, x, size in (("observation", seen, observation_size(task)), ("action", done, task.action_map.size)):
        if x.ndim != 2 or x.shape[1] != size:
            raise FileError(f"{name} of {path} has shape {x.shape}; {task.name} has rows of {size} numbers.")
        if not np.all(np.isfinite(x)):
            raise FileError(f"{name} of {path} has values that are not numbers.")
    episode = arrays.get("episode", np.zeros(len(seen), int))
    if not len(seen) or not len(seen) == len(done) == len(episode):
        raise FileError(f"{path} has {len(seen)} observations, {len(done)} actions and {len(episode)} episode numbers.")
    return [(seen[episode == k], done[episode == k]) for k in dict.fromkeys(episode.tolist())]


def episode_of_log(log: Log, task: PolicyTask) -> tuple[np.ndarray, np.ndarray]:
    """Observations and actions of a log of the robot, at the rate of the task.

    Args:
        log: With `qpos/…`, `qvel/…` of every joint and `ctrl/…` of every actuator.
        task: A task without commands and without a memory, which a log does not have.
    """
    name = log.name
    if task.command is not None or task.memory is not None:
        raise TruesimError(f"A log has no commands, which policies of {task.name} follow; record them by truesim play.")
    model = task.simulator.model
    q, v, u = (
        _columns(log, names, name)
        for names in (position_columns(model), velocity_columns(model), command_columns(model))
    )
    every = task.period / float(np.median(np.diff(log.time)))
    if abs(every - round(every)) > 0.02 * every or every < 0.5:
        raise TruesimError(
            f"{name} has a row every {task.period / every:.4g} s; {task.name} acts every {task.period:g} s."
        )
    rows = slice(None, None, round(every))
    action = _actions_of(task, u[rows], name)
    return _observations_of(task, q[rows], v[rows], action), action


def _columns(log: Log, names: Sequence[str], path: str) -> np.ndarray:
    missing = [name for name in names if name not in log.columns]
    if missing:
        raise FileError(f"{path} has no column {missing[0]}, which cloning needs for every joint and actuator.")
    values = np.stack([log.columns[name] for name in names], axis=1)
    if not np.all(np.isfinite(values)):
        lost = names[int(np.argmin(np.isfinite(values).all(0)))]
        raise FileError(f"{path} lacks samples of {lost}, which cloning needs at every step.")
    return values


def _actions_of(task: PolicyTask, controls: np.ndarray, name: str) -> np.ndarray:
    """Actions that stand for controls, where these are a linear function of actions."""
    limit = task.action_map.limit
    with float32():
        offset, matrix = (None if x is None else np.asarray(x) for x in linear_controls(task))
    if matrix is None:
        raise TruesimError(f"Controls of {task.name} are not linear in its actions, which a log then does not tell.")
    actions = (controls - offset) @ np.linalg.pinv(matrix)
    wrong = np.abs(actions @ matrix + offset - controls).max() / max(np.abs(matrix).max(), 1e-12)
    if wrong > INVERSE_TOLERANCE * limit:
        raise TruesimError(f"Controls of {name} are not those of actions of {task.name}.")
    return np.clip(actions, -limit, limit)


def _observations_of(task: PolicyTask, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Observations at every row of a log, without noise."""
    with float32():
        start = begin(task, jnp.asarray(make_keys(0, 1)[0]))
        last = np.concatenate([np.zeros_like(action[:1]), action[:-1]])
        previous = np.concatenate([np.zeros_like(last[:1]), last[:-1]])
        seconds = task.period * np.arange(len(q))
        inputs = [jnp.asarray(x, jnp.float32) for x in (q, v, last, previous, seconds)]
        nominal = instant(task, start, task.simulator)
        return np.asarray(jax.jit(jax.vmap(lambda *row: _observation(task, nominal, row)))(*inputs))


def _observation(task: PolicyTask, now: Instant, row: tuple[Array, ...]) -> Array:
    """Observation at one row of a log: q, v, last action, the one before, and the time."""
    q, v, last, previous, seconds = row
    state = task.simulator.initial_state(q=q, v=v)
    now = dataclasses.replace(now, state=state, action=last, previous=previous, seconds=seconds)
    terms = [term for term in task.observations.values() if not term.privileged]
    return jnp.concatenate([term.scale * jnp.atleast_1d(term.function(now)) for term in terms])
