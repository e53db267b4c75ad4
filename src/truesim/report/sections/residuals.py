"""Residuals against the measured value and its rate of change: what is left shows which physics is missing."""

from typing import Any

import numpy as np

from truesim.report.sections.signals import FitSignals, LogSignals

MAX_RESIDUAL_DOTS, MAX_PAGE_DOTS = 900, 4000
"""Dots of one channel, and of all channels together; more show more detail in a larger page."""
TREND_BINS = 24
"""Bins of the median residual; fewer are smoother."""
MIN_BIN_DOTS = 8
"""Samples below which a bin has no median."""
RATE_SECONDS = 0.02
"""Time over which rates are measured [s]; larger is less noisy and less sharp."""


def residual_dots(signals: FitSignals) -> list[dict[str, Any]]:
    """For every channel: samples of value, rate and residual, and the median residual over bins of value and rate."""
    return [_channel(signals, row) for row in range(len(signals.rows))]


def log_errors(signals: FitSignals) -> list[dict[str, Any]]:
    """Errors of every log: root-mean-square of each channel, with the estimates relative to the start values."""
    found = []
    for log in signals.logs:
        fitted, start = (_rms(values - log.measured) for values in (log.fitted, log.start))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = start / fitted
        known = ratio[np.isfinite(ratio)]
        worst = int(np.nanargmin(np.where(np.isfinite(ratio), ratio, np.inf))) if known.size else None
        found.append(
            {
                "part": log.part,
                "name": log.name,
                "windows": len(log.windows),
                "factor": float(np.median(known)) if known.size else None,
                "worst": None if worst is None else signals.rows[worst],
                "worst_factor": None if worst is None else float(ratio[worst]),
            }
        )
    return found


def _channel(signals: FitSignals, row: int) -> dict[str, Any]:
    parts = [_samples(log, row) for log in signals.logs if log.part == "train"]
    value, rate, residual = np.concatenate([np.zeros((3, 0)), *parts], axis=1)
    most = min(len(value), MAX_RESIDUAL_DOTS, MAX_PAGE_DOTS // len(signals.rows))
    keep = np.linspace(0, len(value) - 1, most).astype(int)
    return {
        "value": _rounded(value[keep]),
        "rate": _rounded(rate[keep]),
        "residual": _rounded(residual[keep]),
        "trend": {"value": _trend(value, residual), "rate": _trend(rate, residual)},
    }


def _samples(log: LogSignals, row: int) -> np.ndarray:
    """Value, rate and residual at every sample of a log, shape (3, samples)."""
    found = [np.zeros((3, 0))]
    for window in log.windows:
        time, value = log.time[window], log.measured[window, row]
        if len(time) < 3:
            continue
        reach = max(1, round(RATE_SECONDS / max(float(np.median(np.diff(time))), 1e-9) / 2))
        before, after = (
            np.maximum(np.arange(len(time)) - reach, 0),
            np.minimum(np.arange(len(time)) + reach, len(time) - 1),
        )
        rate = (value[after] - value[before]) / np.maximum(time[after] - time[before], 1e-9)
        each = np.stack([value, rate, log.fitted[window, row] - value])
        found.append(each[:, np.isfinite(each).all(axis=0)])
    return np.concatenate(found, axis=1)


def _trend(x: np.ndarray, residual: np.ndarray) -> list[list[float]]:
    """Median residual in bins of equal count, as points."""
    if len(x) < 2 * MIN_BIN_DOTS:
        return []
    order = np.array_split(np.argsort(x), min(TREND_BINS, len(x) // MIN_BIN_DOTS))
    return [[float(f"{_middle(x[k]):.4g}"), float(f"{_middle(residual[k]):.3g}")] for k in order]


def _middle(values: np.ndarray) -> float:
    """Median; `np.median` takes ten times as long for few values."""
    values = np.sort(values)
    return float(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _rms(residual: np.ndarray) -> np.ndarray:
    known = np.isfinite(residual)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.sum(np.where(known, residual, 0.0) ** 2, axis=0) / known.sum(axis=0))


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{x:.4g}") for x in values]
