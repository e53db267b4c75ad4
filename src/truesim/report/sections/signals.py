"""Measured and simulated signals: thinned without losing peaks, and packed to keep the page small.

A trace is stored as 16-bit steps of its own range. The simulation is stored as its difference from the measurement, so
that residuals keep their precision for any range of motion.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError
from truesim.core.typing import Float, Int

MAX_TRACE_SAMPLES = 4000
"""Largest number of samples of a trace."""
MAX_PAGE_SAMPLES = 200_000
"""Largest number of samples of all logs and channels together; each takes about 13 bytes."""
MIN_TRACE_SAMPLES = 200
"""Number of samples that a trace may have for any number of traces."""
PACKED_STEPS = 32767
"""Largest packed value; one below its negative stands for a missing sample."""
MAX_DEVIATION_SPANS = 3.0
"""Simulations are cut off where they deviate by more than this many ranges of the measurement."""
SIGNAL_PARTS = ("train", "held_out")


@dataclasses.dataclass(frozen=True)
class LogSignals:
    """Signals of one log: consecutive windows, each followed by a row of NaN."""

    part: str
    """`train` or `held_out`."""
    name: str
    time: Float[np.ndarray, " samples"]
    """[s]"""
    measured: Float[np.ndarray, "samples rows"]
    fitted: Float[np.ndarray, "samples rows"]
    """Simulation with the estimates."""
    start: Float[np.ndarray, "samples rows"]
    """Simulation with the start values."""

    @property
    def gaps(self) -> Int[np.ndarray, " windows"]:
        """Index of the row of NaN after each window."""
        return np.flatnonzero(np.diff(self.time, prepend=-np.inf) == 0)

    @property
    def windows(self) -> list[slice]:
        """Samples of each window."""
        ends = self.gaps
        begins = np.concatenate([[0], ends[:-1] + 1]).astype(int)
        return [slice(int(b), int(e)) for b, e in zip(begins, ends, strict=True) if e > b]


@dataclasses.dataclass(frozen=True)
class FitSignals:
    """All signals of a fit."""

    rows: tuple[str, ...]
    logs: tuple[LogSignals, ...]

    @property
    def window(self) -> float:
        """Typical length of a window [s]."""
        windows = [log.time[window] for log in self.logs for window in log.windows]
        lengths = [(t[-1] - t[0]) * len(t) / (len(t) - 1) for t in windows if len(t) > 1]
        return float(f"{np.median(lengths):.2g}") if lengths else 0.0


def read_signals(folder: Path) -> FitSignals:
    """Read the signals in the folder of a fit."""
    path = folder / "signals.npz"
    if not path.is_file():
        raise FileError(f"{folder} has no signals.npz; `truesim identify` writes it beside fit.json: fit again.")
    try:
        with np.load(path) as arrays:
            rows = tuple(str(row) for row in arrays["rows"])
            names = [key.removesuffix("/time") for key in arrays if key.endswith("/time")]
            logs = [_log(arrays, name) for name in names]
    except (KeyError, OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from None
    return FitSignals(rows, tuple(sorted(logs, key=lambda log: SIGNAL_PARTS.index(log.part))))


def pack(signals: FitSignals) -> list[dict[str, Any]]:
    """Data of every log for the page: name, windows, and one trace per channel."""
    panels = max(1, len(signals.logs) * len(signals.rows))
    limit = min(MAX_TRACE_SAMPLES, max(MIN_TRACE_SAMPLES, MAX_PAGE_SAMPLES // panels))
    return [
        {
            "part": log.part,
            "name": log.name,
            "windows": [[_round(log.time[w.start]), _round(log.time[w.stop - 1])] for w in log.windows],
            "panels": [
                {**_panel(log, row, limit), "errors": [*map(list, _window_errors(log, row))]}
                for row in range(len(signals.rows))
            ],
        }
        for log in signals.logs
    ]


def _log(arrays: Mapping[str, np.ndarray], name: str) -> LogSignals:
    part, _, log = name.partition("/")
    if part not in SIGNAL_PARTS:
        raise ValueError(f"the signals of {name} belong to no part of a fit")
    return LogSignals(part, log, *(arrays[f"{name}/{what}"] for what in ("time", "measured", "fitted", "start")))


def _panel(log: LogSignals, row: int, limit: int) -> dict[str, Any]:
    """One channel of one log: time, measurement, and deviations of the simulations from it."""
    measured = log.measured[:, row]
    fitted, start = log.fitted[:, row] - measured, log.start[:, row] - measured
    kept = thin(log, np.stack([measured, fitted], axis=1), limit)
    span = float(np.ptp(measured[np.isfinite(measured)])) if np.isfinite(measured).any() else 0.0
    far = MAX_DEVIATION_SPANS * span or np.inf
    return {
        "time": _encode(log.time[kept].astype("<f4")),
        "measured": _pack(measured[kept]),
        "fitted": _pack(_cut_off(fitted[kept], far)),
        "start": _pack(_cut_off(start[kept], far)),
    }


def thin(log: LogSignals, values: Float[np.ndarray, "samples columns"], limit: int) -> Int[np.ndarray, " kept"]:
    """Indices of about `limit` samples: minimum and maximum of every column in each bucket, and all ends of windows.

    Args:
        log: Signals of the log.
        values: Columns whose peaks are kept.
        limit: Approximate number of samples.
    """
    count, columns = values.shape
    size = -(-2 * columns * count // limit)
    if count <= limit:
        return np.arange(count)
    padded = np.full((-(-count // size) * size, columns), np.nan)
    padded[:count] = values
    buckets = padded.reshape(-1, size, columns)
    first = np.arange(len(buckets))[:, None] * size
    lowest = first + np.where(np.isfinite(buckets), buckets, np.inf).argmin(axis=1)
    highest = first + np.where(np.isfinite(buckets), buckets, -np.inf).argmax(axis=1)
    edges = np.concatenate([log.gaps, log.gaps - 1, log.gaps + 1])
    kept = np.unique(np.concatenate([lowest.ravel(), highest.ravel(), edges, [0]]))
    return kept[(kept >= 0) & (kept < count)]


def _window_errors(log: LogSignals, row: int) -> Iterator[tuple[float | None, float | None]]:
    """Root-mean-square error of each window, with the estimates and with the start values."""
    for window in log.windows:
        measured = log.measured[window, row]
        yield _rms(log.fitted[window, row] - measured), _rms(log.start[window, row] - measured)


def _rms(residual: np.ndarray) -> float | None:
    residual = residual[~np.isnan(residual)]
    with np.errstate(over="ignore"):
        mean = float(np.mean(np.square(residual))) if len(residual) else np.inf
    return _round(np.sqrt(mean)) if np.isfinite(mean) else None


def _cut_off(values: np.ndarray, far: float) -> np.ndarray:
    return np.where(np.abs(values) <= far, values, np.nan)


def _pack(values: np.ndarray) -> dict[str, Any]:
    """Middle of the range, size of a step, and the values in steps from the middle."""
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    middle, step = (low + high) / 2, (high - low) / (2 * PACKED_STEPS) or 1.0
    steps = np.where(known, np.round((np.where(known, values, middle) - middle) / step), -PACKED_STEPS - 1)
    return {"middle": float(middle), "step": float(step), "steps": _encode(steps.astype("<i2"))}


def _encode(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _round(value: float) -> float:
    return float(f"{value:.5g}")
