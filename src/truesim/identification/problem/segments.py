"""Segments and windows of recordings for multiple shooting.

Segments are so short that a simulation from the measured initial state cannot diverge. Within a window, each segment
begins in the end state of the one before it, up to a penalized defect; windows are independent of each other.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Bool, Float, Int
from truesim.identification.problem.recording import Recording
from truesim.identification.problem.shooting import Interval

SEGMENT_DURATION = 0.02
"""Default duration of a segment, approximately [s]. Larger makes the simulation of a poor model diverge earlier."""
MIN_SEGMENT_INTERVALS, MAX_SEGMENT_INTERVALS = 10, 25
"""Range of the number of intervals in a segment. Larger gives fewer, longer segments."""


@dataclasses.dataclass(frozen=True)
class Segmentation:
    """Segments of all recordings, each with the same number of intervals; the last of a log is padded."""

    log: Int[np.ndarray, " segments"]
    """Index of the recording."""
    first: Int[np.ndarray, " segments"]
    """First sample."""
    follows: Bool[np.ndarray, " segments"]
    """True if the segment continues the one before it without a gap."""
    intervals: Interval
    """Intervals, stacked over segments and within them."""
    commands: Float[np.ndarray, "segments length nu"]
    """Commands before each segment."""
    stamps: Float[np.ndarray, "segments length"]
    """Time at which each of them began, relative to the start of the segment [s]."""
    valid: Bool[np.ndarray, "segments intervals rows"]
    """Rows of the residual that were measured."""

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.log)

    @property
    def seconds(self) -> float:
        """Median duration of a segment [s]."""
        return float(np.median(self.intervals.duration.sum(axis=1)))

    def select(self, rows: Int[np.ndarray, " some"]) -> "Segmentation":
        """The segmentation restricted to some segments."""
        intervals = Interval(*(x[rows] for x in self.intervals))
        own = (self.commands[rows], self.stamps[rows], self.valid[rows])
        return Segmentation(self.log[rows], self.first[rows], self.follows[rows], intervals, *own)

    def windows(self, length: int) -> "Windows":
        """Windows of at most `length` consecutive segments."""
        chain = np.empty(self.size, int)
        place = np.empty(self.size, int)
        current, at = -1, 0
        for i in range(self.size):
            if i == 0 or not self.follows[i] or at + 1 >= length:
                current, at = current + 1, 0
            else:
                at += 1
            chain[i], place[i] = current, at
        return Windows(chain, place)


@dataclasses.dataclass(frozen=True)
class Windows:
    """Window of each segment, and its index in the window."""

    window: Int[np.ndarray, " segments"]
    place: Int[np.ndarray, " segments"]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of windows, and of segments in the longest window."""
        return int(self.window[-1]) + 1, int(self.place.max()) + 1

    @property
    def joined(self) -> Bool[np.ndarray, " segments"]:
        """True if the next segment continues this one in the same window."""
        return np.append(self.place[1:] > 0, False)

    def pad(self, blocks: Float[np.ndarray, " segments *shape"]) -> Float[np.ndarray, "windows places *shape"]:
        """Blocks of segments, arranged by window and index; zero beyond the end of a window."""
        out = np.zeros((*self.shape, *blocks.shape[1:]), blocks.dtype)
        out[self.window, self.place] = blocks
        return out


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Initial states of all segments."""

    q: Float[np.ndarray, "segments nq"]
    v: Float[np.ndarray, "segments nv"]
    memory: Float[np.ndarray, "segments memory"] | None = None
    """Initial memory of the networks; initialized if not given."""

    def select(self, rows: Int[np.ndarray, " some"]) -> "Nodes":
        """Initial states of some segments."""
        return Nodes(self.q[rows], self.v[rows], None if self.memory is None else self.memory[rows])

    def replace(self, rows: Int[np.ndarray, " some"], nodes: "Nodes") -> "Nodes":
        """Initial states with those of some segments replaced."""
        q, v = self.q.copy(), self.v.copy()
        q[rows], v[rows] = nodes.q, nodes.v
        return Nodes(q, v, self.memory)


def segment_recordings(
    recordings: Sequence[Recording], seconds: float = SEGMENT_DURATION, history: int = 0
) -> Segmentation:
    """Cut recordings into segments.

    Args:
        recordings: The recordings.
        seconds: Duration of a segment, approximately [s].
        history: Number of past commands that each segment needs.
    """
    step = sampling_step(recordings)
    count = int(np.clip(round(seconds / step), MIN_SEGMENT_INTERVALS, MAX_SEGMENT_INTERVALS))
    log, first, follows, rows, past, valid = [], [], [], [], [], []
    for index, recording in enumerate(recordings):
        for begin, end in recording.pieces:
            for start in range(begin, end, count):
                at = np.arange(start, start + count)
                inside = at < end
                at = np.minimum(at, end - 1)
                log.append(index)
                first.append(start)
                follows.append(start > begin)
                rows.append(intervals_at(recording, at))
                past.append(past_commands(recording, np.array(start), begin, history))
                valid.append(recording.valid[at] & inside[:, None])
    return Segmentation(
        log=np.array(log),
        first=np.array(first),
        follows=np.array(follows),
        intervals=Interval(*(np.stack(parts) for parts in zip(*rows, strict=True))),
        commands=np.stack([commands for commands, _ in past]),
        stamps=np.stack([stamps for _, stamps in past]),
        valid=np.stack(valid),
    )


def sampling_step(recordings: Sequence[Recording]) -> float:
    """Median interval between samples [s]."""
    return float(np.median(np.concatenate([np.diff(r.time) for r in recordings])))


def intervals_at(recording: Recording, at: Int[np.ndarray, "*n"]) -> Interval:
    """Intervals that begin at these samples."""
    later = np.minimum(at[..., None] + np.arange(1, recording.lookahead + 1), len(recording.time) - 1)
    return Interval(
        duration=recording.time[at + 1] - recording.time[at],
        command=recording.command[at],
        inputs=recording.inputs[at],
        measured=recording.measured[at],
        next_measured=recording.measured[later],
        stamps=recording.time[later] - recording.time[at][..., None],
    )


def past_commands(
    recording: Recording, start: Int[np.ndarray, "*n"], begin: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Commands before samples `start`, and their times; the command of sample `begin` extends into the past [s]."""
    at = start[..., None] + np.arange(-length, 0)
    inside = np.clip(at, begin, None)
    step = float(np.median(np.diff(recording.time)))
    stamps = recording.time[inside] - recording.time[start][..., None] + step * (at - inside)
    return recording.command[inside], stamps
