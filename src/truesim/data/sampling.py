"""When a log was sampled: rate, jitter, gaps, and the pieces between gaps."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.data.log import Log

GAP_PERIODS = 5.0
"""Stamps further apart than this many sampling periods have a gap between them."""


@dataclasses.dataclass(frozen=True)
class Gap:
    """A stretch without samples."""

    start: float
    """Last sample before it [s]."""
    end: float
    """First sample after it [s]."""

    @property
    def duration(self) -> float:
        """How long it lasts [s]."""
        return self.end - self.start


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How regularly something was sampled."""

    samples: int
    start: float
    """First stamp [s]."""
    end: float
    """Last stamp [s]."""
    period: float
    """Median time between samples [s]; NaN for fewer than two."""
    jitter: float
    """Standard deviation of the time between samples, gaps left out [s]."""
    gaps: tuple[Gap, ...]
    repeated: int
    """Samples that carry the stamp of the one before."""

    @property
    def rate(self) -> float:
        """Samples a second [Hz]; NaN for fewer than two."""
        return 1.0 / self.period

    @property
    def duration(self) -> float:
        """From the first to the last sample [s]."""
        return self.end - self.start


def sampling(log: Log, columns: Sequence[str] = (), *, gap: float | None = None) -> Sampling:
    """When these columns were recorded: statistics over the rows in which any of them has a value.

    Args:
        log: The log.
        columns: Columns to look at; all rows of the log if empty.
        gap: Stamps further apart than this are a gap [s]; five sampling periods if not given.
    """
    time = log.time[np.any(log.present(columns), axis=1)] if columns else log.time
    if not len(time):
        return Sampling(0, np.nan, np.nan, np.nan, np.nan, (), 0)
    period, threshold = _period(time), gap_length(time, gap)
    steps = np.diff(time)
    moved = steps[(steps > 0) & (steps <= threshold)]
    gaps = tuple(Gap(float(time[i]), float(time[i + 1])) for i in np.flatnonzero(steps > threshold))
    jitter = float(np.std(moved)) if len(moved) else np.nan
    return Sampling(len(time), float(time[0]), float(time[-1]), period, jitter, gaps, int(np.sum(steps == 0)))


def missing_samples(log: Log, column: str) -> int:
    """How many samples of a column are missing between its first and last stamp, at its own sampling period.

    Rows that belong to other columns, sampled at other stamps, do not count.
    """
    known = np.flatnonzero(np.isfinite(log.column(column)))
    time, period = log.time[known], _period(log.time[known])
    if not np.isfinite(period):
        return len(log.time) - len(known)
    holes = np.round(np.diff(time) / period) - 1
    ends = np.floor(np.array([time[0] - log.time[0], log.time[-1] - time[-1]]) / period + 0.1)
    without = np.diff([-1, *known, len(log.time)]) - 1
    return int(np.sum(np.clip([ends[0], *holes, ends[1]], 0, without)))


def gap_length(time: Float[np.ndarray, "samples"], gap: float | None = None) -> float:
    """The time between stamps above which there is a gap [s]: `gap` if given, else five sampling periods."""
    if gap is not None:
        return gap
    period = _period(time)
    return GAP_PERIODS * period if np.isfinite(period) else np.inf


def segments(log: Log, *, needed: Sequence[str] = (), gap: float | None = None) -> tuple[Log, ...]:
    """The pieces of a log between its gaps, in order; together they hold every sample.

    With `needed` columns, a stretch in which one of them has no values for longer than its gap is a gap too, and the
    rows inside that stretch are left out.

    Args:
        log: The log.
        needed: Columns without which a piece is of no use, such as the controls.
        gap: What counts as a gap [s]; five sampling periods of the column, or of the log, if not given.
    """
    usable = np.ones(len(log.time), dtype=bool)
    cut = np.diff(log.time) > gap_length(log.time, gap)
    for name in needed:
        inside, edges = _missing(log, name, gap)
        usable &= ~inside
        cut |= edges
    cut |= usable[1:] != usable[:-1]
    pieces = np.split(np.arange(len(log.time)), np.flatnonzero(cut) + 1)
    return tuple(log.rows(rows) for rows in pieces if len(rows) and usable[rows[0]])


def _missing(log: Log, name: str, gap: float | None) -> tuple[Bool[np.ndarray, "n"], Bool[np.ndarray, "n-1"]]:
    """Rows inside the gaps of one column, and the steps between rows that belong to a gap."""
    known = np.flatnonzero(np.isfinite(log.column(name)))
    inside, edges = np.ones(len(log.time), dtype=bool), np.zeros(len(log.time) - 1, dtype=bool)
    if not len(known):
        return inside, edges
    stamps = log.time[known]
    threshold = gap_length(stamps, gap)
    inside = (log.time < stamps[0] - threshold) | (log.time > stamps[-1] + threshold)
    for i in np.flatnonzero(np.diff(stamps) > threshold):
        inside[known[i] + 1 : known[i + 1]] = True
        edges[known[i] : known[i + 1]] = True
    return inside, edges


def _period(time: Float[np.ndarray, "samples"]) -> float:
    steps = np.diff(time)
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else np.nan
