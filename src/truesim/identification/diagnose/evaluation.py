"""Open-loop errors of simulated windows, whose initial states are estimated from the samples before them."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float, Int
from truesim.files.logs import Log
from truesim.identification.diagnose.initial_states import InitialStates, are_from_positions, initial_states
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import Recording
from truesim.physics.model.model import Model

ERROR_WINDOW = 0.5
"""Default length of a window [s]. Larger gives larger errors."""
LEAD_IN = 0.025
"""Default length of the part before a window from which its initial state is estimated [s]. Larger averages more noise
and more model error."""


@dataclasses.dataclass(frozen=True)
class Errors:
    """Open-loop errors of one row of the residual over all windows, in its own unit."""

    rmse: float
    """Root-mean-square error over all samples."""
    median: float
    """Median over windows of the root-mean-square error."""
    windows: int


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Simulated windows of one log."""

    log: int
    first: Int[np.ndarray, " windows"]
    """First sample of each window."""
    residual: Float[np.ndarray, "windows samples rows"]
    """Prediction minus measurement."""
    valid: Bool[np.ndarray, "windows samples rows"]


def evaluate(
    model: Model,
    logs: Sequence[Log],
    *,
    window: float = ERROR_WINDOW,
    before: float = LEAD_IN,
    options: ProblemOptions | None = None,
) -> dict[str, Errors]:
    """Open-loop errors of all measured channels, over windows that tile the logs without overlap.

    The initial state of a window is estimated from the samples of the `before` seconds that precede it.

    Args:
        model: The model of the robot.
        logs: Logs of the robot.
        window: Length of the windows [s].
        before: Length of the part before a window from which its initial state is estimated [s].
        options: Per-log values, channels and contact model.
    """
    problem = build(model, logs, (), options)
    return errors(problem, list(predictions(problem, problem.parameters.start, window, before)))


def errors(problem: Problem, predicted: Sequence[Prediction]) -> dict[str, Errors]:
    """Errors of each row of the residual."""
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


def validation_loss(problem: Problem, window: float = ERROR_WINDOW) -> Callable[[Float[np.ndarray, " size"]], float]:
    """Loss of coordinates on the logs of a problem: the mean logarithm of the median open-loop errors of its rows."""

    def score(theta: Float[np.ndarray, " size"]) -> float:
        found = errors(problem, list(predictions(problem, theta, window)))
        return float(np.mean([np.log(max(e.median, 1e-300)) for e in found.values()]))

    return score


def predictions(
    problem: Problem,
    theta: Float[np.ndarray, " size"],
    window: float = ERROR_WINDOW,
    before: float = LEAD_IN,
    states: dict[int, InitialStates] | None = None,
) -> Iterator[Prediction]:
    """Simulate all windows of each log of a problem.

    Args:
        problem: The problem.
        theta: Coordinates of the parameters.
        window: Length of the windows [s].
        before: Length of the part before a window from which its initial state is estimated [s].
        states: Initial states by log from earlier calls with the same windows, where they do not depend on the
            coordinates; states that are missing are added.
    """
    check_windows(problem, window, before)
    known = {} if states is None else states
    for index, recording in enumerate(problem.recordings):
        tiles = list(_tiles(recording, window, before))
        first = known.get(index) or initial_states(problem, theta, index, [first for first, _ in tiles], before)
        if are_from_positions(problem, index, before):
            known[index] = first
        yield _predict(problem, theta, index, tiles, first)


def check_windows(problem: Problem, window: float, before: float = LEAD_IN) -> None:
    """Raise an error for logs shorter than a window; arguments as in `predictions`."""
    for recording in problem.recordings:
        if next(_tiles(recording, window, before), None) is None:
            seconds = recording.time[-1] - recording.time[0]
            raise TruesimError(
                f"{recording.name} is {seconds:.3g} s long: no window of {window:g} s fits; give a shorter --window."
            )


def _tiles(recording: Recording, window: float, before: float) -> Iterator[tuple[int, int]]:
    """First and last sample of each window."""
    for begin, end in recording.pieces:
        time = recording.time
        start = int(np.searchsorted(time, time[begin] + before - 1e-9))
        while start <= end and time[start] + window <= time[end] + 1e-9:
            stop = int(np.searchsorted(time, time[start] + window - 1e-9))
            yield start, stop
            start = stop


def _predict(
    problem: Problem, theta: np.ndarray, log: int, tiles: Sequence[tuple[int, int]], first: InitialStates
) -> Prediction:
    """Simulate the windows of one log in a batch, one segment after the other."""
    recording = problem.recordings[log]
    size = problem.layout.intervals.duration.shape[1]
    longest = first.lead + max(stop - start for start, stop in tiles)
    rounds = -(-longest // size)
    starts = np.array([start for start, _ in tiles]) - first.lead
    at = starts[:, None] + np.arange(rounds * size)
    inside = at < np.array([stop for _, stop in tiles])[:, None]
    at = np.minimum(at, len(recording.time) - 2)
    q, v = first.q, first.v
    memory: np.ndarray | None = None
    residuals = []
    for k in range(rounds):
        simulated = problem.predict(theta, log, problem.segments(log, at[:, k * size : (k + 1) * size], q, v, memory))
        residuals.append(simulated.residual)
        q, v, memory = np.asarray(simulated.q), np.asarray(simulated.v), np.asarray(simulated.memory)
    residual = np.concatenate(residuals, axis=1)[:, first.lead :]
    valid = (recording.valid[at] & inside[..., None])[:, first.lead :]
    return Prediction(log, at[:, first.lead], np.where(np.isfinite(residual), residual, np.inf), valid)
