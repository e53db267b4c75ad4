"""Open-loop error: how far a simulation departs from a log within windows of it, started from what came before."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float, Int
from truesim.data import Log
from truesim.identify.build import Options, build
from truesim.identify.problem import Problem
from truesim.identify.recording import Recording
from truesim.identify.shooting import Interval, Stretch
from truesim.model.kinds import HINGE, SLIDE
from truesim.model.model import Model

WINDOW = 0.5
"""Length of a window by default [s]."""
BEFORE = 0.025
"""Stretch of the log before a window from which its first state is estimated [s]."""

FEWEST_SAMPLES = 4
"""Samples through which a parabola is drawn, at least."""


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

    The first state of a window is that of parabolas through the samples of the `before` seconds that precede it;
    nothing later is looked at.

    Args:
        model: The robot.
        logs: Recordings of it.
        window: Length of the windows [s].
        before: From how much of the log before a window its first state is estimated [s].
        options: What differs from log to log, and channels.
    """
    problem = build(model, logs, (), options)
    return errors(problem, list(predictions(problem, np.zeros(0), window, before)))


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
        q, v = _first_states(problem, theta, index, [first for first, _ in tiles], before)
        yield _predicted(problem, theta, index, tiles, (q, v))


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
    problem: Problem,
    theta: np.ndarray,
    log: int,
    tiles: Sequence[tuple[int, int]],
    states: tuple[np.ndarray, np.ndarray],
) -> Prediction:
    """Windows of one log side by side, a stretch at a time."""
    recording = problem.recordings[log]
    size = problem.layout.intervals.duration.shape[1]
    longest = max(stop - start for start, stop in tiles)
    rounds = -(-longest // size)
    at = np.array([start for start, _ in tiles])[:, None] + np.arange(rounds * size)
    inside = at < np.array([stop for _, stop in tiles])[:, None]
    at = np.minimum(at, len(recording.time) - 2)
    q, v = states
    residuals = []
    for k in range(rounds):
        part = at[:, k * size : (k + 1) * size]
        shot = problem.predict(theta, log, _stretch(problem, recording, part, (q, v)))
        residuals.append(shot.residual)
        q, v = shot.q, shot.v
    residual = np.concatenate(residuals, axis=1)
    valid = recording.valid[at] & inside[..., None]
    return Prediction(log, at[:, 0], np.where(np.isfinite(residual), residual, np.inf), valid)


def _stretch(problem: Problem, recording: Recording, at: np.ndarray, states: tuple[np.ndarray, np.ndarray]) -> Stretch:
    past = np.arange(-problem.simulator.history, 0)
    earlier = np.clip(at[:, :1] + past, 0, None)
    stamps = recording.time[earlier] - recording.time[at[:, :1]] + 1e-3 * np.minimum(at[:, :1] + past, 0)
    intervals = Interval(
        duration=recording.time[at + 1] - recording.time[at],
        command=recording.command[at],
        inputs=recording.inputs[at],
        measured=recording.measured[at],
    )
    return Stretch(*states, recording.command[earlier], stamps, intervals)


def _first_states(
    problem: Problem, theta: np.ndarray, log: int, firsts: Sequence[int], before: float
) -> tuple[np.ndarray, np.ndarray]:
    """States at the start of windows, from parabolas through the samples just before."""
    model, recording = problem.simulator_at(theta, log).model, problem.recordings[log]
    bias = np.asarray(model.sensors.bias)[model.sensors.positions]
    scale = np.asarray(model.sensors.scale)[model.sensors.positions]
    q, v = recording.q[list(firsts)].copy(), recording.v[list(firsts)].copy()
    for row, first in enumerate(firsts):
        begin = int(np.searchsorted(recording.time, recording.time[first] - before - 1e-9))
        near = slice(min(begin, max(first - FEWEST_SAMPLES + 1, 0)), first + 1)
        time = recording.time[near] - recording.time[first]
        for link in model.topology.links:
            if link.joint >= 0 and link.kind in (HINGE, SLIDE):
                k = link.q_start
                value, slope = parabola(time, recording.q[near, k])
                q[row, k], v[row, link.v_start] = (value - bias[k]) / scale[k], slope / scale[k]
    return q, v


def parabola(time: Float[np.ndarray, "n"], values: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """Value and slope at time zero of the parabola that fits best; a line through two samples."""
    reach = max(float(np.abs(time).max()), 1e-9)
    degree = min(2, len(time) - 1)
    fitted = np.polynomial.polynomial.polyfit(time / reach, values, degree)
    return float(fitted[0]), float(fitted[1] / reach) if degree else 0.0
