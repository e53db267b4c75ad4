"""Playing a policy: returns, falls and how well commands are followed, in truesim or in MuJoCo itself."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.environment import BatchPhysics, Environment
from truesim.policies.episodes import Episode, instant
from truesim.policies.physics import MujocoPhysics, physics_of
from truesim.policies.randomization import Randomization
from truesim.policies.task import PolicyTask

ENGINES = ("truesim", "mujoco")
"""Simulators in which a policy can be played."""


class ActingPolicy(Protocol):
    """Anything that acts on observations, such as a `PolicyRunner`."""

    def act(self, observation: Any) -> Any:
        """Actions for a batch of observations."""


@dataclasses.dataclass(frozen=True)
class PlayOptions:
    """Conditions under which a policy is played; by default those of a test."""

    episodes: int = 20
    seed: int = 0
    noise: bool = False
    """True for noisy observations."""
    randomize: bool = False
    """True if parameters differ between episodes, as in training."""
    pushes: bool = False
    latency: float | None = None
    """Delay of actions [s]; the longest of the task by default."""
    command_interval: float = 4.0
    """Time between new commands [s]."""
    settling: float = 1.0
    """Time after a new command that does not count for tracking [s]."""


class Played(NamedTuple):
    """Episodes that were played."""

    returns: Float[np.ndarray, " episodes"]
    seconds: Float[np.ndarray, " episodes"]
    """Length of each episode [s]."""
    terminated: np.ndarray
    """True for each episode that ended before the time limit, such as by a fall."""
    tracking: Float[np.ndarray, " nc"] | None
    """Sum of |mean - command| over commands, relative to the sum of |command|, for each component; a command during
    which an episode terminated counts as not followed at all."""
    names: tuple[str, ...]
    """Names of the components of the command."""

    def steps(self, period: float) -> list[int]:
        """Control steps of each episode.

        Args:
            period: Control period [s].
        """
        return [round(seconds / period) for seconds in self.seconds]


def tested_task(task: PolicyTask, options: PlayOptions) -> PolicyTask:
    """The task under the conditions of a test."""
    observations = task.observations
    if not options.noise:
        observations = {name: dataclasses.replace(term, noise=0.0) for name, term in observations.items()}
    latency = task.latency[1] if options.latency is None else options.latency
    command = task.command
    if command is not None and command.measured is not None:
        every = options.command_interval
        command = dataclasses.replace(command, draw=command.draw_for_test or command.draw, interval=(every, every))
    return dataclasses.replace(
        task,
        observations=observations,
        randomization=task.randomization if options.randomize else Randomization(),
        pushes=task.pushes if options.pushes else None,
        latency=(latency, latency),
        command=command,
    )


def engine_named(name: str, task: PolicyTask, batch: int) -> BatchPhysics | None:
    """Physics of this name for a task; None is the task's simulator in JAX."""
    if name not in ENGINES:
        raise unknown_name("simulator", name, ENGINES)
    if name == "truesim":
        return physics_of(task, batch)
    source = task.simulator.model.source
    if source is None or source.compiled is None:
        raise TruesimError(f"The robot of {task.name} did not come from a file that MuJoCo can simulate.")
    if task.randomization.paths:
        raise TruesimError("MuJoCo plays the robot of the file; play without randomization.")
    return MujocoPhysics(source.compiled, task.period)


def play(
    policy: ActingPolicy,
    task: PolicyTask,
    *,
    engine: str = "truesim",
    options: PlayOptions | None = None,
    callback: Callable[[Episode], None] | None = None,
) -> Played:
    """Play episodes with the mean action.

    Args:
        policy: The policy.
        task: The task; `options` says under which conditions it is played.
        engine: `truesim`, or `mujoco` with the robot file's own time step.
        options: Conditions.
        callback: Called with the batch of episodes after every step.
    """
    options = options or PlayOptions()
    task = tested_task(task, options)
    with float32():
        environment = Environment(task, options.episodes, physics=engine_named(engine, task, options.episodes))
        episodes, outcome = environment.reset(options.seed)
        measure = _measured(task, episodes)
        alive = np.ones(options.episodes, bool)
        returns, length = np.zeros(options.episodes), np.zeros(options.episodes)
        terminated, rows = np.zeros(options.episodes, bool), []
        forget(policy)
        for _ in range(task.steps):
            command = np.asarray(episodes.command)
            action = np.asarray(policy.act(np.asarray(outcome.observation)), np.float32)
            episodes, outcome = environment.step(episodes, action)
            if callback is not None:
                callback(episodes)
            returns += alive * np.asarray(outcome.reward)
            length += alive
            terminated |= alive & np.asarray(outcome.terminated)
            alive = alive & ~np.asarray(outcome.terminated) & ~np.asarray(outcome.truncated)
            rows.append((command, measure(episodes), alive.copy()))
            if not alive.any():
                break
    tracking = None if task.command is None or task.command.measured is None else _tracking(rows, task, options)
    names = () if task.command is None else task.command.names
    return Played(returns, length * task.period, terminated, tracking, names)


def forget(policy: ActingPolicy) -> None:
    """Let a policy with a memory forget earlier episodes, by its method `reset`."""
    reset = getattr(policy, "reset", None)
    if reset is not None:
        reset()


def _measured(task: PolicyTask, example: Episode) -> Any:
    """Function from episodes to what they do of their commands."""
    if task.command is None or task.command.measured is None:
        return lambda episodes: None
    measured = task.command.measured
    return jax.jit(jax.vmap(lambda episode: measured(instant(task, episode))))


def _tracking(rows: list[tuple[np.ndarray, Array, np.ndarray]], task: PolicyTask, options: PlayOptions) -> np.ndarray:
    """Relative error of each component of the command."""
    command = np.stack([row[0] for row in rows])
    measured, alive = np.stack([np.asarray(row[1]) for row in rows]), np.stack([row[2] for row in rows])
    every, skip = round(options.command_interval / task.period), round(options.settling / task.period)
    error, size = np.zeros(command.shape[-1]), np.zeros(command.shape[-1])
    for start in range(0, task.steps - every + 1, every):
        for k in range(command.shape[1]):
            asked = command[min(start, len(command) - 1), k] if start < len(command) else np.zeros(len(size))
            part = slice(start + skip, start + every - 1)  # the last step may already belong to the next command
            done = start + every - 1 <= len(rows) and alive[start : start + every - 1, k].all()
            error += np.abs(measured[part, k].mean(0) - asked) if done else np.abs(asked)
            size += np.abs(asked)
    return error / np.maximum(size, 1e-9)
