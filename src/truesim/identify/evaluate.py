"""Open-loop error: how far a simulation departs from a log within windows of it, started from what came before."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float, Int
from truesim.data import Log
from truesim.identify.build import Options, build
from truesim.identify.first_states import FirstStates, first_states
from truesim.identify.problem import Problem
from truesim.identify.recording import Recording
from truesim.model.model import Model

WINDOW = 0.5
"""Length of a window by default [s]."""
BEFORE = 0.025
"""Stretch of the log before a window from which its first state is estimated [s]."""


@dataclasses.dataclass(frozen=True)
class Errors:
    """Open-loop errors of one row of the residual over all windows, in its own unit."""

    rmse: float
    """Over all samples."""
    median: float
    """Median over windows of the root-mean-square error."""
    windows: int


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Simulated windows of one log."""

    log: int
    first: Int[np.ndarray, "windows"]
    """First sample of each window."""
    residual: Float[np.ndarray, "windows samples rows"]
    """Prediction minus measurement."""
    valid: Bool[np.ndarray, "windows samples rows"]


def evaluate(
    model: Model, logs: Sequence[Log], *, window: float = WINDOW, before: float = BEFORE, options: Options | None = None
) -> dict[str, Errors]:
    """Open-loop error of every measured channel, over windows that tile the logs without overlap.

    The first state of a window is estimated from the samples of the `before` seconds that precede it; nothing later is
    looked at.

    Args:
        model: The robot.
        logs: Recordings of it.
        window: Length of the windows [s].
        before: From how much of the log before a window its first state is estimated [s].
        options: What differs from log to log, and channels.
    """
    problem = build(model, logs, (), options)
    return errors(problem, list(predictions(problem, problem.parameters.start, window, before)))


def errors(problem: Problem, predicted: Sequence[Prediction]) -> dict[str, Errors]:
    """Errors of every row of the residual."""
    out = {}
    for k, row in enumerate(problem.rows):
        squares = [np.where(p.valid[..., k], p.residual[..., k], 0.0) ** 2 for p in predicted]
        counts = [p.valid[..., k].sum(axis=1) for p in predicted]
        total, each = np.concatenate([s.sum(axis=1) for s in squares]), np.concatenate(counts)
        used = each > 0
        if used.any():
            per_window = np.sqrt(total[used] / each[used])
            rmse = float(np.sqrt(total.sum() / each.sum()))
            out[row] = Errors(rmse, float(np.median(per_window)), int(used.sum()))
    return out


def judge(problem: Problem, window: float = WINDOW) -> Callable[[Float[np.ndarray, "size"]], float]:
    """How good coordinates are on the logs of a problem: the mean logarithm of the open-loop errors of its rows."""

    def score(theta: Float[np.ndarray, "size"]) -> float:
        found = errors(problem, list(predictions(problem, theta, window)))
        return float(np.mean([np.log(max(e.median, 1e-300)) for e in found.values()]))

    return score


def predictions(
    problem: Problem, theta: Float[np.ndarray, "size"], window: float = WINDOW, before: float = BEFORE
) -> Iterator[Prediction]:
    """Simulates all windows of every log of a problem.

    Args:
        problem: The problem.
        theta: Coordinates of its parameters.
        window: Length of the windows [s].
        before: From how much of the log before a window its first state is estimated [s].
    """
    for index, recording in enumerate(problem.recordings):
        tiles = list(_tiles(recording, window, before))
        if not tiles:
            seconds = recording.time[-1] - recording.time[0]
            raise TruesimError(
                f"{recording.name} is {seconds:.3g} s long: no window of {window:g} s fits; give a shorter --window."
            )
        first = first_states(problem, theta, index, [first for first, _ in tiles], before)
        yield _predicted(problem, theta, index, tiles, first)


def _tiles(recording: Recording, window: float, before: float) -> Iterator[tuple[int, int]]:
    """First and last sample of each window."""
    for begin, end in recording.segments:
        time = recording.time
        start = int(np.searchsorted(time, time[begin] + before - 1e-9))
        while start <= end and time[start] + window <= time[end] + 1e-9:
            stop = int(np.searchsorted(time, time[start] + window - 1e-9))
            yield start, stop
            start = stop


def _predicted(
    problem: Problem, theta: np.ndarray, log: int, tiles: Sequence[tuple[int, int]], first: FirstStates
) -> Prediction:
    """Windows of one log side by side, a stretch at a time."""
    recording = problem.recordings[log]
    size = problem.layout.intervals.duration.shape[1]
    longest = first.lead + max(stop - start for start, stop in tiles)
    rounds = -(-longest // size)
    starts = np.array([start for start, _ in tiles]) - first.lead
    at = starts[:, None] + np.arange(rounds * size)
    inside = at < np.array([stop for _, stop in tiles])[:, None]
    at = np.minimum(at, len(recording.time) - 2)
    q, v, memory = first.q, first.v, None
    residuals = []
    for k in range(rounds):
        shot = problem.predict(theta, log, problem.stretches(log, at[:, k * size : (k + 1) * size], q, v, memory))
        residuals.append(shot.residual)
        q, v, memory = shot.q, shot.v, shot.memory
    residual = np.concatenate(residuals, axis=1)[:, first.lead :]
    valid = (recording.valid[at] & inside[..., None])[:, first.lead :]
    return Prediction(log, at[:, first.lead], np.where(np.isfinite(residual), residual, np.inf), valid)
