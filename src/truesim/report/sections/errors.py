"""Open-loop errors of every channel with the start values and with the estimates."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from truesim.report import numbers


@dataclasses.dataclass(frozen=True)
class Change:
    """An error before and after, as text, and the factor between them."""

    start: str
    fitted: str
    windows: int
    rmse: str
    """Over all samples, with the estimates."""
    factor: float | None
    """Error with the start values by error with the estimates."""

    @property
    def words(self) -> str:
        """The factor as text."""
        if self.factor is None:
            return ""
        return f"{numbers.times(self.factor)}×"


@dataclasses.dataclass(frozen=True)
class Row:
    """One channel."""

    channel: str
    unit: str
    noise: str
    """Of the sensor."""
    train: Change
    held_out: Change | None


@dataclasses.dataclass(frozen=True)
class Table:
    """All channels; the factors of improvement are drawn on a logarithmic scale that ends at `reach`."""

    rows: tuple[Row, ...]
    reach: float

    def at(self, factor: float) -> float:
        """Where a factor lies on the scale, from 0 to 1: a factor of 1 is at 0.1."""
        return min(max(0.1 + 0.9 * math.log(max(factor, 1e-9)) / math.log(self.reach), 0.0), 1.0)


def error_table(document: Mapping[str, Any]) -> Table:
    """The table of a fit."""
    errors, units = document["errors"], document.get("units", {})
    rows = [
        Row(
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
    return Table(tuple(rows), max(10.0, *every) if every else 10.0)


def typical_factor(document: Mapping[str, Any], part: str) -> float | None:
    """Median over channels of how many times smaller the error has become; none without such logs."""
    found = document["errors"].get(part, {})
    factors = [_change(document["errors"][f"{part}_start"].get(c), e).factor for c, e in found.items()]
    known: Sequence[float] = [f for f in factors if f is not None]
    return statistics.median(known) if known else None


def _change(start: Mapping[str, Any] | None, fitted: Mapping[str, Any]) -> Change:
    before, after = (start or {}).get("median"), fitted["median"]
    return Change(
        start=numbers.rounded(before),
        fitted=numbers.rounded(after),
        windows=fitted["windows"],
        rmse=numbers.rounded(fitted["rmse"]),
        factor=before / after if before and after else None,
    )
