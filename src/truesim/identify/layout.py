"""Stretches and windows: how logs are cut for multiple shooting.

Stretches are short, so that a simulation from their measured start cannot go far astray. Within a window each stretch
has to begin where the one before it ended; between windows nothing is asked.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Bool, Float, Int
from truesim.identify.recording import Recording
from truesim.identify.shooting import Interval

STRETCH = 0.02
"""Length of a stretch by default, about [s]."""
MOST, FEWEST = 25, 10
"""Intervals of a stretch."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """All stretches of all recordings, of equally many intervals; the last of a log may run beyond its end."""

    log: Int[np.ndarray, "stretches"]
    """Which recording."""
    first: Int[np.ndarray, "stretches"]
    """First sample."""
    follows: Bool[np.ndarray, "stretches"]
    """Whether the stretch goes on where the one before it ended, without a gap."""
    intervals: Interval
    """Intervals, stacked over stretches and within them."""
    commands: Float[np.ndarray, "stretches length nu"]
    """Commands before each stretch."""
    stamps: Float[np.ndarray, "stretches length"]
    """When each of them began, from the start of the stretch on [s]."""
    valid: Bool[np.ndarray, "stretches intervals rows"]
    """Which rows of the residual were measured."""

    @property
    def size(self) -> int:
        """Number of stretches."""
        return len(self.log)

    @property
    def seconds(self) -> float:
        """Typical length of a stretch [s]."""
        return float(np.median(self.intervals.duration.sum(axis=1)))

    def taken(self, rows: Int[np.ndarray, "some"]) -> "Layout":
        """Some of the stretches."""
        intervals = Interval(*(x[rows] for x in self.intervals))
        own = (self.commands[rows], self.stamps[rows], self.valid[rows])
        return Layout(self.log[rows], self.first[rows], self.follows[rows], intervals, *own)

    def windows(self, length: int) -> "Windows":
        """Stretches joined to windows of at most `length` stretches."""
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
    """The window of each stretch, and its place in it."""

    window: Int[np.ndarray, "stretches"]
    place: Int[np.ndarray, "stretches"]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of windows, and of stretches in the longest."""
        return int(self.window[-1]) + 1, int(self.place.max()) + 1

    @property
    def joined(self) -> Bool[np.ndarray, "stretches"]:
        """Whether the next stretch must begin where this one ends."""
        return np.append(self.place[1:] > 0, False)

    def padded(self, blocks: Float[np.ndarray, "stretches *shape"]) -> Float[np.ndarray, "windows places *shape"]:
        """Blocks of stretches by window and place; zero beyond a window's end."""
        out = np.zeros((*self.shape, *blocks.shape[1:]), blocks.dtype)
        out[self.window, self.place] = blocks
        return out


@dataclasses.dataclass(frozen=True)
class Nodes:
    """First states of all stretches."""

    q: Float[np.ndarray, "stretches nq"]
    v: Float[np.ndarray, "stretches nv"]
    memory: Float[np.ndarray, "stretches remembered"] | None = None
    """What networks remember there; without it they begin anew."""

    def taken(self, rows: Int[np.ndarray, "some"]) -> "Nodes":
        """Those of some stretches."""
        return Nodes(self.q[rows], self.v[rows], None if self.memory is None else self.memory[rows])

    def replaced(self, rows: Int[np.ndarray, "some"], nodes: "Nodes") -> "Nodes":
        """The same with others for some stretches."""
        q, v = self.q.copy(), self.v.copy()
        q[rows], v[rows] = nodes.q, nodes.v
        return Nodes(q, v, self.memory)


def lay_out(recordings: Sequence[Recording], seconds: float = STRETCH, history: int = 0) -> Layout:
    """Cuts recordings into stretches.

    Args:
        recordings: The recordings.
        seconds: Length of a stretch, about [s].
        history: Number of past commands that each stretch needs.
    """
    step = sampling_step(recordings)
    count = int(np.clip(round(seconds / step), FEWEST, MOST))
    log, first, follows, rows, past, valid = [], [], [], [], [], []
    for index, recording in enumerate(recordings):
        for begin, end in recording.segments:
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
    return Layout(
        log=np.array(log),
        first=np.array(first),
        follows=np.array(follows),
        intervals=Interval(*(np.stack(parts) for parts in zip(*rows, strict=True))),
        commands=np.stack([commands for commands, _ in past]),
        stamps=np.stack([stamps for _, stamps in past]),
        valid=np.stack(valid),
    )


def sampling_step(recordings: Sequence[Recording]) -> float:
    """Typical interval between samples [s]."""
    return float(np.median(np.concatenate([np.diff(r.time) for r in recordings])))


def intervals_at(recording: Recording, at: Int[np.ndarray, "*n"]) -> Interval:
    """The intervals that begin at these samples."""
    later = np.minimum(at[..., None] + np.arange(1, recording.ahead + 1), len(recording.time) - 1)
    return Interval(
        duration=recording.time[at + 1] - recording.time[at],
        command=recording.command[at],
        inputs=recording.inputs[at],
        measured=recording.measured[at],
        later=recording.measured[later],
        stamps=recording.time[later] - recording.time[at][..., None],
    )


def past_commands(
    recording: Recording, start: Int[np.ndarray, "*n"], begin: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """The commands before samples `start`, and when each began; before sample `begin` its command was always held."""
    at = start[..., None] + np.arange(-length, 0)
    inside = np.clip(at, begin, None)
    step = float(np.median(np.diff(recording.time)))
    stamps = recording.time[inside] - recording.time[start][..., None] + step * (at - inside)
    return recording.command[inside], stamps
