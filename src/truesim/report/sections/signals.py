"""Measured and simulated signals: thinned so that no peak is lost, and packed so that a page stays small.

A trace travels as 16-bit steps of its own range. The simulation travels as its difference from the measurement, so
that residuals keep their precision however far the robot moves.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError
from truesim.core.typing import Float, Int

POINTS = 4000
"""Samples of a trace at most."""
TOTAL = 200_000
"""Samples of all logs and channels at most, which take about 13 bytes each."""
FEWEST = 200
"""Samples that a trace may have however many there are."""
STEPS = 32767
"""Largest packed value; one step below its negative stands for a missing sample."""
FAR = 3.0
"""Simulations that depart by more than this many spans of the measurement are cut off there."""
PARTS = ("train", "held_out")


@dataclasses.dataclass(frozen=True)
class LogSignals:
    """Signals of one log: windows one after the other, with a row of NaN after each."""

    part: str
    """`train` or `held_out`."""
    name: str
    time: Float[np.ndarray, "samples"]
    """[s]"""
    measured: Float[np.ndarray, "samples rows"]
    fitted: Float[np.ndarray, "samples rows"]
    """With the estimates."""
    start: Float[np.ndarray, "samples rows"]
    """With the start values."""

    @property
    def gaps(self) -> Int[np.ndarray, "windows"]:
        """The row after each window."""
        return np.flatnonzero(np.diff(self.time, prepend=-np.inf) == 0)

    @property
    def windows(self) -> list[slice]:
        """Samples of each window."""
        ends = self.gaps
        begins = np.concatenate([[0], ends[:-1] + 1]).astype(int)
        return [slice(int(b), int(e)) for b, e in zip(begins, ends, strict=True) if e > b]


@dataclasses.dataclass(frozen=True)
class Signals:
    """All signals of a fit."""

    rows: tuple[str, ...]
    logs: tuple[LogSignals, ...]

    @property
    def window(self) -> float:
        """Typical length of a window [s]."""
        windows = [log.time[window] for log in self.logs for window in log.windows]
        lengths = [(t[-1] - t[0]) * len(t) / (len(t) - 1) for t in windows if len(t) > 1]
        return float(f"{np.median(lengths):.2g}") if lengths else 0.0


def read_signals(folder: Path) -> Signals:
    """The signals in the folder of a fit."""
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
    return Signals(rows, tuple(sorted(logs, key=lambda log: PARTS.index(log.part))))


def packed(signals: Signals) -> list[dict[str, Any]]:
    """Every log for the page: its name, its windows, and a trace of each channel."""
    panels = max(1, len(signals.logs) * len(signals.rows))
    limit = min(POINTS, max(FEWEST, TOTAL // panels))
    return [
        {
            "part": log.part,
            "name": log.name,
            "windows": [[_short(log.time[w.start]), _short(log.time[w.stop - 1])] for w in log.windows],
            "panels": [
                {**_panel(log, row, limit), "errors": [*map(list, _window_errors(log, row))]}
                for row in range(len(signals.rows))
            ],
        }
        for log in signals.logs
    ]


def _log(arrays: Mapping[str, np.ndarray], name: str) -> LogSignals:
    part, _, log = name.partition("/")
    if part not in PARTS:
        raise ValueError(f"the signals of {name} belong to no part of a fit")
    return LogSignals(part, log, *(arrays[f"{name}/{what}"] for what in ("time", "measured", "fitted", "start")))


def _panel(log: LogSignals, row: int, limit: int) -> dict[str, Any]:
    """One channel of one log: time, measurement and what the simulations add to it."""
    measured = log.measured[:, row]
    fitted, start = log.fitted[:, row] - measured, log.start[:, row] - measured
    kept = thinned(log, np.stack([measured, fitted], axis=1), limit)
    span = float(np.ptp(measured[np.isfinite(measured)])) if np.isfinite(measured).any() else 0.0
    far = FAR * span or np.inf
    return {
        "time": _encoded(log.time[kept].astype("<f4")),
        "measured": _packed(measured[kept]),
        "fitted": _packed(_within(fitted[kept], far)),
        "start": _packed(_within(start[kept], far)),
    }


def thinned(log: LogSignals, values: Float[np.ndarray, "samples columns"], limit: int) -> Int[np.ndarray, "kept"]:
    """About `limit` samples: of each bucket the lowest and highest of every column, and all ends of windows.

    Args:
        log: The log.
        values: Columns whose peaks are kept.
        limit: Number of samples wanted.
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
    return _short(np.sqrt(mean)) if np.isfinite(mean) else None


def _within(values: np.ndarray, far: float) -> np.ndarray:
    return np.where(np.abs(values) <= far, values, np.nan)


def _packed(values: np.ndarray) -> dict[str, Any]:
    """Middle, size of a step, and the values in steps from the middle."""
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    middle, step = (low + high) / 2, (high - low) / (2 * STEPS) or 1.0
    steps = np.where(known, np.round((np.where(known, values, middle) - middle) / step), -STEPS - 1)
    return {"middle": float(middle), "step": float(step), "steps": _encoded(steps.astype("<i2"))}


def _encoded(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _short(value: float) -> float:
    return float(f"{value:.5g}")
