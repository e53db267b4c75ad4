"""A policy in simulation beside the same policy on the real system: returns, tracking, and discrepancy by signal."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from truesim.bridges.real.env import RealEnv
from truesim.bridges.real.episode_files import JOURNAL_FILE
from truesim.core.errors import FileError, TruesimError
from truesim.core.precision import float32
from truesim.files.logs import Log, read_log
from truesim.physics.model.columns import position_columns, velocity_columns
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model
from truesim.policies.environment import Environment
from truesim.policies.episodes import observe
from truesim.policies.physics import physics_of
from truesim.policies.play import ActingPolicy, PlayOptions, tested_task
from truesim.policies.task import PolicyTask

PERIOD_DEVIATION = 0.02
"""Part of the period by which stamps of a log may deviate from the policy's rate, as median."""


class RealTrace(NamedTuple):
    """An episode on the real system."""

    value: float
    """Return; NaN if it is not known."""
    seconds: float
    log: Log


class SignalDiscrepancy(NamedTuple):
    """Difference between simulated and real motion of one signal, both under the policy from the same initial state."""

    name: str
    median: float
    """Median over episodes of the root mean square over time, in the unit of the signal."""
    relative: float
    """The same, relative to the standard deviation of the real signal."""
    time: np.ndarray
    """[s], of the example."""
    real: np.ndarray
    """Of the first episode."""
    simulated: np.ndarray


def play_on(real: RealEnv, policy: ActingPolicy, episodes: int, *, seed: int = 0) -> list[RealTrace]:
    """Play episodes on the real system, whose folder keeps them.

    Args:
        real: The real system, with a folder.
        policy: The policy.
        episodes: Number of episodes.
        seed: Seed of the first reset; the others follow.
    """
    before = len(real.episodes)
    for k in range(episodes):
        _forget(policy)
        observation, _ = real.reset(seed=seed + k)
        done = False
        while not done:
            observation, _, terminated, truncated, _ = real.step(np.asarray(policy.act(observation)))
            done = terminated or truncated
    played = real.episodes[before:]
    logs = [read_log(path) for path in real.logs[before:]]
    if len(logs) != len(played):
        raise TruesimError("The real system keeps no logs: give it a folder.")
    return [RealTrace(each.value, each.seconds, log) for each, log in zip(played, logs, strict=True)]


def read_traces(paths: Sequence[Path]) -> list[RealTrace]:
    """Episodes from logs: files with a column `reward`, or folders of `RealEnv`.

    Args:
        paths: Files and folders.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir() and not (path / JOURNAL_FILE).is_file():
            raise FileError(f"{path} is not the folder of a RealEnv: it has no {JOURNAL_FILE}.")
        files += _of_folder(path) if path.is_dir() else [path]
    traces = []
    for file in files:
        log = read_log(file)
        rewards = log.columns.get("reward")
        total = math.nan if rewards is None else float(np.nansum(rewards))
        traces.append(RealTrace(total, float(log.time[-1] - log.time[0]), log))
    return traces


def _of_folder(folder: Path) -> list[Path]:
    lines = (folder / JOURNAL_FILE).read_text(encoding="utf-8").splitlines()[1:]
    return [folder / record["log"] for record in map(json.loads, lines) if record.get("log")]


def discrepancies(
    policy: ActingPolicy, task: PolicyTask, traces: Sequence[RealTrace]
) -> tuple[list[SignalDiscrepancy], np.ndarray]:
    """Motion under the policy in simulation, from the initial states of real episodes, beside the real motion.

    Args:
        policy: The policy.
        task: The task in simulation.
        traces: Real episodes with positions and velocities of all joints.

    Returns:
        One record for each signal, and the simulated returns.
    """
    model = task.simulator.model
    names = [*position_columns(model), *velocity_columns(model)]
    for trace in traces:
        missing = [name for name in names if name not in trace.log.columns]
        if missing:
            raise TruesimError(f"{trace.log.name} has no column {missing[0]}, from which the simulation would start.")
        _check_rate(trace.log, task)
    real = [np.stack([trace.log.columns[name] for name in names], axis=1) for trace in traces]
    simulated, lengths, returns = _simulated(
        policy, task, np.stack([rows[0] for rows in real]), _commands(traces, task)
    )
    turning = _turns(model) + [False] * model.nv
    found = []
    for k, name in enumerate(names):
        errors, sizes = [], []
        for rows, other, length in zip(real, simulated, lengths, strict=True):
            both = min(len(rows), length)
            difference = rows[:both, k] - other[:both, k]
            if turning[k]:
                difference = (difference + math.pi) % (2.0 * math.pi) - math.pi
            errors.append(math.sqrt(np.mean(difference**2)))
            sizes.append(rows[:, k].std())
        median, both = float(np.median(errors)), min(len(real[0]), lengths[0])
        relative = median / max(float(np.median(sizes)), 1e-12)
        time = task.period * np.arange(both)
        found.append(SignalDiscrepancy(name, median, relative, time, real[0][:both, k], simulated[0][:both, k]))
    return found, returns


def _turns(model: Model) -> list[bool]:
    """True for each position that is an angle, of which whole turns do not count."""
    return [link.kind is HINGE for link in model.topology.links for _ in range(link.kind.nq)]


def _check_rate(log: Log, task: PolicyTask) -> None:
    if len(log.time) < 2:
        raise TruesimError(f"{log.name} has {len(log.time)} samples; an episode has at least two.")
    period = float(np.median(np.diff(log.time)))
    if abs(period - task.period) > PERIOD_DEVIATION * task.period:
        raise TruesimError(
            f"{log.name} has a sample every {period:g} s, but the policy acts every {task.period:g} s; "
            "play it at the rate of its training."
        )


def _commands(traces: Sequence[RealTrace], task: PolicyTask) -> np.ndarray | None:
    """Commands of real episodes, shape (steps, episodes, size), held after their end; None if logs have none."""
    names = [] if task.command is None else [f"command/{k}" for k in range(task.command.size)]
    if not names or any(name not in trace.log.columns for trace in traces for name in names):
        return None
    rows = [np.stack([trace.log.columns[name] for name in names], axis=1) for trace in traces]
    steps = np.arange(task.steps)
    return np.stack([each[np.minimum(steps, len(each) - 1)] for each in rows], axis=1).astype(np.float32)


def _simulated(
    policy: ActingPolicy, task: PolicyTask, starts: np.ndarray, commands: np.ndarray | None
) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Positions and velocities at each control step, lengths, and returns of simulated episodes."""
    count, nq = len(starts), task.simulator.model.nq
    tested = tested_task(task, PlayOptions(episodes=count))
    with float32():
        environment = Environment(tested, count, physics=physics_of(tested, count))
        look = jax.jit(jax.vmap(lambda episode: observe(tested, episode)[0]))
        episodes, _ = environment.reset(0)
        q, v = starts[:, :nq].astype(np.float32), starts[:, nq:].astype(np.float32)
        episodes = dataclasses.replace(episodes, state=dataclasses.replace(episodes.state, q=q, v=v))
        _forget(policy)
        rows, alive = [], np.ones(count, bool)
        lengths, returns = np.zeros(count, int), np.zeros(count)
        for step in range(tested.steps):
            if commands is not None:
                episodes = dataclasses.replace(episodes, command=commands[step])
            rows.append(np.concatenate([np.asarray(episodes.state.q), np.asarray(episodes.state.v)], axis=1))
            lengths += alive
            action = np.asarray(policy.act(np.asarray(look(episodes))), np.float32)
            episodes, outcome = environment.step(episodes, action)
            returns += alive * np.asarray(outcome.reward)
            alive &= ~(np.asarray(outcome.terminated) | np.asarray(outcome.truncated))
    return np.stack(rows, axis=1), lengths.tolist(), returns


def _forget(policy: Any) -> None:
    reset = getattr(policy, "reset", None)
    if reset is not None:
        reset()
