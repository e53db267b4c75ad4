"""Sampling of a log: rate, jitter, gaps, and the parts between gaps."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.files.logs.log import Log

GAP_PERIODS = 5.0
"""Smallest step between stamps that counts as a gap, in sampling periods."""


@dataclasses.dataclass(frozen=True)
class Gap:
    """An interval without samples."""

    start: float
    """Last sample before it [s]."""
    end: float
    """First sample after it [s]."""

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.end - self.start


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Statistics of the stamps of a log or of some columns."""

    samples: int
    start: float
    """First stamp [s]."""
    end: float
    """Last stamp [s]."""
    period: float
    """Median time between samples [s]; NaN for fewer than two samples."""
    jitter: float
    """Standard deviation of the time between samples, without gaps [s]."""
    gaps: tuple[Gap, ...]
    repeated: int
    """Number of samples with the stamp of the previous one."""

    @property
    def rate(self) -> float:
        """Sampling rate [Hz]; NaN for fewer than two samples."""
        return 1.0 / self.period

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return self.end - self.start


def sampling(log: Log, columns: Sequence[str] = (), *, gap: float | None = None) -> Sampling:
    """Sampling statistics of the rows in which any of these columns has a value.

    Args:
        log: The log.
        columns: Names of columns; empty for all rows of the log.
        gap: Smallest step that counts as a gap [s]; five sampling periods by default.
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
    """Number of missing samples of a column, at the column's own sampling period.

    Rows that hold only other columns, sampled at other stamps, do not count.
    """
    known = np.flatnonzero(np.isfinite(log.column(column)))
    time, period = log.time[known], _period(log.time[known])
    if not np.isfinite(period):
        return len(log.time) - len(known)
    holes = np.round(np.diff(time) / period) - 1
    ends = np.floor(np.array([time[0] - log.time[0], log.time[-1] - time[-1]]) / period + 0.1)
    without = np.diff([-1, *known, len(log.time)]) - 1
    return int(np.sum(np.clip([ends[0], *holes, ends[1]], 0, without)))


def gap_length(time: Float[np.ndarray, " samples"], gap: float | None = None) -> float:
    """Time between stamps above which there is a gap [s]: `gap` if given, else five sampling periods."""
    if gap is not None:
        return gap
    period = _period(time)
    return GAP_PERIODS * period if np.isfinite(period) else np.inf


def split_at_gaps(log: Log, *, needed: Sequence[str] = (), gap: float | None = None) -> tuple[Log, ...]:
    """Split a log at its gaps; without `needed` columns, the parts hold every sample.

    An interval in which a needed column has no values for longer than its gap is a gap too, and the rows inside it are
    left out.

    Args:
        log: The log.
        needed: Columns that every part must have, such as the controls.
        gap: Smallest step that counts as a gap [s]; by default five sampling periods of the column, or of the log.
    """
    usable = np.ones(len(log.time), dtype=bool)
    cut = np.diff(log.time) > gap_length(log.time, gap)
    for name in needed:
        inside, edges = _missing(log, name, gap)
        usable &= ~inside
        cut |= edges
    cut |= usable[1:] != usable[:-1]
    parts = np.split(np.arange(len(log.time)), np.flatnonzero(cut) + 1)
    return tuple(log.rows(rows) for rows in parts if len(rows) and usable[rows[0]])


def _missing(log: Log, name: str, gap: float | None) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n-1"]]:
    """Masks of the rows inside the gaps of one column, and of the steps between rows that belong to a gap."""
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


def _period(time: Float[np.ndarray, " samples"]) -> float:
    steps = np.diff(time)
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else np.nan
