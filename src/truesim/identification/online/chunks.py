"""Buffer that cuts a stream into chunks for the simulator; its memory is bounded."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool
from truesim.files.logs import Log
from truesim.files.logs.cleaning import FULL_TURN, hinge_columns
from truesim.files.logs.sampling import GAP_PERIODS
from truesim.identification.online.filter_state import SampleChunk
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import sources
from truesim.identification.problem.segments import sampling_step
from truesim.identification.problem.shooting import Interval, Segment
from truesim.physics.model.columns import command_columns, quaternion_columns

Sample = Mapping[str, float]
"""One row of a log: `time` [s] and numbers by column."""


class Rejected(NamedTuple):
    """A sample or a line that was rejected."""

    reason: str
    """Reason in a sentence."""


class ChunkBuffer:
    """Collects the samples of a chunk: past commands, the intervals of the chunk, and later measurements."""

    def __init__(self, problem: Problem):
        model, recording = problem.simulator.model, problem.recordings[0]
        self._problem = problem
        self._names = {
            "command": command_columns(model),
            "measured": [column for channel in problem.channels for column in channel.columns],
        }
        measured = self._names["measured"]
        hinges = {name for name, _ in hinge_columns(model)}
        self._angles = np.array([name in hinges for name in measured], bool)
        quaternions = [names for names in quaternion_columns(model) if all(name in measured for name in names)]
        self._quaternions = [[measured.index(name) for name in names] for names in quaternions]
        self._sources = np.array([own[0] for own in sources(problem.channels)], int)
        self.intervals = problem.layout.intervals.duration.shape[1]
        self._past, self._ahead = problem.simulator.history, recording.lookahead
        self.period = sampling_step(problem.recordings)
        self._rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
        self._command, self._measured = recording.command[-1], recording.measured[-1]
        self._last = recording.time[:0], recording.command[:0], recording.measured[:0]
        self.fresh = True
        """True if the next chunk does not continue the previous one."""

    @property
    def time(self) -> float:
        """Stamp of the last sample [s]; minus infinity before the first."""
        return self._rows[-1][0] if self._rows else -np.inf

    def add(self, sample: Sample) -> SampleChunk | None:
        """Take a sample that is later than the previous one; returns a chunk if the sample completes it."""
        time = sample["time"]
        if self._rows and time - self.time > GAP_PERIODS * self.period:
            self._rows, self.fresh = [], True
        command, measured, present = self._read(sample)
        if not self._rows:
            before = range(-self._past, 0)
            self._rows = [(time + k * self.period, command, measured, np.zeros_like(present)) for k in before]
        self._rows.append((time, command, measured, present))
        if len(self._rows) <= self._past + self.intervals + self._ahead:
            return None
        chunk = self._chunk()
        self._rows = self._rows[self.intervals :]
        return chunk

    def log(self) -> Log:
        """Last completed chunk as a log."""
        time, command, measured = self._last
        names = [*self._names["command"], *self._names["measured"]]
        return Log(time, dict(zip(names, np.concatenate([command, measured], axis=1).T, strict=True)), "stream")

    def _read(self, sample: Sample) -> tuple[np.ndarray, np.ndarray, Bool[np.ndarray, " rows"]]:
        """Commands, measurements and which of them are present; missing numbers keep their last value."""
        command = np.array([sample.get(name, np.nan) for name in self._names["command"]], float)
        raw = np.array([sample.get(name, np.nan) for name in self._names["measured"]], float)
        known = np.isfinite(raw)
        turns = np.rint((raw - self._measured) / FULL_TURN)
        measured = np.where(known, raw - FULL_TURN * np.where(self._angles, turns, 0.0), self._measured)
        for own in self._quaternions:
            length = np.linalg.norm(measured[own])
            known[own] = known[own].all() and length > 0
            if known[own[0]]:
                measured[own] *= (1.0 if measured[own] @ self._measured[own] >= 0 else -1.0) / length
        self._command = np.where(np.isfinite(command), command, self._command)
        self._measured = measured
        return self._command, measured, known[self._sources]

    def _chunk(self) -> SampleChunk:
        time, command, measured, valid = (np.array(column) for column in zip(*self._rows, strict=True))
        first, count = self._past, self.intervals
        at = np.arange(first, first + count)
        later = at[:, None] + np.arange(1, self._ahead + 1)
        intervals = Interval(
            duration=time[at + 1] - time[at],
            command=command[at],
            inputs=np.zeros((count, 0)),
            measured=measured[at],
            next_measured=measured[later],
            stamps=time[later] - time[at, None],
        )
        model = self._problem.simulator.model
        segment = Segment(
            np.zeros(model.nq), np.zeros(model.nv), command[:first], time[:first] - time[first], intervals
        )
        self._last = time[first:], command[first:], measured[first:]
        return SampleChunk(float(time[first + count]), segment, valid[at])

    def state(self) -> dict[str, np.ndarray]:
        """State of the buffer as arrays."""
        columns = [np.array(column) for column in zip(*self._rows, strict=True)] if self._rows else []
        rows = dict(zip(("time", "command", "measured", "present"), columns, strict=False))
        return {**rows, "last_command": self._command, "last_measured": self._measured, "fresh": np.array(self.fresh)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state of the buffer."""
        self._command, self._measured = state["last_command"], state["last_measured"]
        self.fresh = bool(state["fresh"])
        self._rows = []
        if "time" in state:
            columns = (state[name] for name in ("time", "command", "measured", "present"))
            self._rows = [(float(t), c, m, p) for t, c, m, p in zip(*columns, strict=True)]
