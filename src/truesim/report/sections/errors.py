"""Open-loop errors of every channel, with the start values and with the estimates."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from truesim.report import numbers


@dataclasses.dataclass(frozen=True)
class ErrorChange:
    """An error with the start values and with the estimates, as text, and the ratio of both."""

    start: str
    fitted: str
    windows: int
    rmse: str
    """Root-mean-square error over all samples, with the estimates."""
    factor: float | None
    """Error with the start values, divided by the error with the estimates."""

    @property
    def words(self) -> str:
        """The factor as text."""
        if self.factor is None:
            return ""
        return f"{numbers.times(self.factor)}×"


@dataclasses.dataclass(frozen=True)
class ErrorRow:
    """One channel."""

    channel: str
    unit: str
    noise: str
    """Standard deviation of the sensor's noise."""
    train: ErrorChange
    held_out: ErrorChange | None


@dataclasses.dataclass(frozen=True)
class ErrorTable:
    """All channels. Factors of improvement are drawn on a logarithmic scale that ends at `reach`."""

    rows: tuple[ErrorRow, ...]
    reach: float

    def at(self, factor: float) -> float:
        """Place of a factor on the scale, from 0 to 1; a factor of 1 is at 0.1."""
        return min(max(0.1 + 0.9 * math.log(max(factor, 1e-9)) / math.log(self.reach), 0.0), 1.0)


def error_table(document: Mapping[str, Any]) -> ErrorTable:
    """The table of a fit."""
    errors, units = document["errors"], document.get("units", {})
    rows = [
        ErrorRow(
            channel=channel,
            unit=numbers.unit(units.get(channel, "")),
            noise=numbers.rounded(document["noise"].get(channel, {}).get("sensor"), 2),
            train=_change(errors["train_start"].get(channel), found),
            held_out=_change(errors["held_out_start"].get(channel), errors["held_out"][channel])
            if channel in errors.get("held_out", {})
            else None,
        )
        for channel, found in errors["train"].items()
    ]
    every = [c.factor for row in rows for c in (row.train, row.held_out) if c is not None and c.factor is not None]
    return ErrorTable(tuple(rows), _scale_end(max(every, default=1.0)))


def typical_factor(document: Mapping[str, Any], part: str) -> float | None:
    """Median over channels of the factor by which the error decreased; None without logs of this part."""
    found = document["errors"].get(part, {})
    factors = [_change(document["errors"][f"{part}_start"].get(c), e).factor for c, e in found.items()]
    known: Sequence[float] = [f for f in factors if f is not None]
    return statistics.median(known) if known else None


def _scale_end(largest: float) -> float:
    """End of a scale that holds the largest factor: 2, 5, 10, 20 and so on."""
    power = 10.0 ** math.floor(math.log10(max(largest, 2.0)))
    return next(digit * power for digit in (1.0, 2.0, 5.0, 10.0) if digit * power >= max(largest, 2.0))


def _change(start: Mapping[str, Any] | None, fitted: Mapping[str, Any]) -> ErrorChange:
    before, after = (start or {}).get("median"), fitted["median"]
    return ErrorChange(
        start=numbers.rounded(before),
        fitted=numbers.rounded(after),
        windows=fitted["windows"],
        rmse=numbers.rounded(fitted["rmse"]),
        factor=before / after if before and after else None,
    )
