"""Table of parameters: every number with its interval, drawn on a common scale."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from truesim.identification.diagnose.estimates import Estimate, Flag
from truesim.identification.fit_display import common_flags, tie_of
from truesim.report import numbers
from truesim.report.document import flagged_elements

BAR_REACHES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Possible ends of the common scale of the bars, as factors of the start."""
CORRELATED_FLAG = "correlated with "


@dataclasses.dataclass(frozen=True)
class ParameterElement:
    """One number of a parameter: a scalar, or one element of a vector."""

    label: str
    unit: str
    start: float
    value: float
    std: float
    low: float
    high: float
    bounds: tuple[float | None, float | None]
    """None where there is no bound."""
    identifiable: bool
    """False if the fit flagged it as not identifiable."""

    @property
    def ratio(self) -> float | None:
        """Value divided by start; None for a start of zero or a change of sign."""
        return self.value / self.start if self.start and self.value / self.start > 0 else None

    @property
    def relative_half_width(self) -> float:
        """Half width of the 95 % interval, divided by the value."""
        return 0.5 * (self.high - self.low) / abs(self.value) if self.value else math.inf


@dataclasses.dataclass(frozen=True)
class FlagBadge:
    """A flag in one or two words."""

    text: str
    kind: str
    """`bad`, `warn` or `info`."""
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class IntervalBar:
    """Places of value, interval and bounds on a bar, from 0 to 1; the start value is at 0.5."""

    value: float
    low: float
    high: float
    open: tuple[bool, bool]
    """True where the interval extends beyond the lower or upper end."""
    bounds: tuple[float | None, float | None]
    own_scale: bool
    """True if the bar has a linear scale of its own."""


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """One line of the table, as text."""

    label: str
    unit: str
    start: str
    value: str
    interval: str
    change: str
    identifiable: bool
    bar: IntervalBar


@dataclasses.dataclass(frozen=True)
class ParameterGroup:
    """A parameter: one row, or one row per element under its name."""

    path: str
    badges: tuple[FlagBadge, ...]
    rows: tuple[ParameterRow, ...]


@dataclasses.dataclass(frozen=True)
class ParameterTable:
    """All parameters, and the end of the common scale of the bars, as a factor."""

    groups: tuple[ParameterGroup, ...]
    reach: float
    common: tuple[FlagBadge, ...] = ()
    """Flags that all parameters have; the groups do not repeat them."""


def parameter_table(parameters: Sequence[dict[str, Any]], ties: Sequence[Sequence[str]] = ()) -> ParameterTable:
    """The table of the entries `parameters` in `fit.json`.

    Args:
        parameters: The entries.
        ties: Lists of patterns whose matches share one value.
    """
    parameters = [entry for entry in parameters if not Estimate.of_document(entry).is_known]
    reach = _scale_end([element for entry in parameters for element in split(entry)])
    common = common_flags([entry["flags"] for entry in parameters])
    groups = [
        ParameterGroup(
            entry["path"],
            (*_shared(entry["path"], ties), *_badges([flag for flag in entry["flags"] if flag not in common])),
            tuple(_row(element, reach) for element in split(entry)),
        )
        for entry in parameters
    ]
    return ParameterTable(tuple(groups), reach, tuple(_badges(common)))


def _shared(path: str, ties: Sequence[Sequence[str]]) -> Iterator[FlagBadge]:
    """Badge of a value that several parameters share."""
    tie = tie_of(path, ties)
    if tie is not None:
        yield FlagBadge(f"one value for {tie}", "info")


def split(entry: dict[str, Any]) -> list[ParameterElement]:
    """The numbers of one parameter."""
    flagged = flagged_elements(entry)
    if not isinstance(entry["value"], list):
        low, high = entry["bounds"]
        return [_parameter_element(entry, entry["path"], lambda field: field, (low, high), not flagged)]
    return [
        _parameter_element(
            entry, f"{entry['path']}[{k}]", lambda field, k=k: field[k], _element(entry["bounds"], k), k not in flagged
        )
        for k in range(len(entry["value"]))
    ]


def flat_names(parameters: Sequence[dict[str, Any]]) -> list[str]:
    """Name of every number, in the order of the correlation matrix."""
    return [element.label for entry in parameters for element in split(entry)]


def _parameter_element(
    entry: dict[str, Any], label: str, pick: Any, bounds: tuple[float | None, float | None], identifiable: bool
) -> ParameterElement:
    def finite(field: str, otherwise: float) -> float:
        value = pick(entry[field])
        return otherwise if value is None else float(value)

    value = finite("value", math.nan)
    return ParameterElement(
        label=label,
        unit=numbers.unit(entry["unit"]),
        start=finite("start", math.nan),
        value=value,
        std=finite("std", math.inf),
        low=finite("low", -math.inf),
        high=finite("high", math.inf),
        bounds=bounds,
        identifiable=identifiable,
    )


def _element(bounds: Sequence[Any], k: int) -> tuple[float | None, float | None]:
    low, high = (bound[k] if isinstance(bound, list) else bound for bound in bounds)
    return low, high


def _badges(flags: Sequence[str]) -> Iterator[FlagBadge]:
    for flag in flags:
        if "not identifiable" in flag:
            yield FlagBadge(flag, "bad", "These logs do not determine the value: do not use it on its own.")
        elif flag.startswith("at "):
            yield FlagBadge(flag, "warn", "The estimate is at this bound.")
        elif flag == Flag.MISFIT:
            yield FlagBadge(flag, "warn", "The model does not fit: the interval counts what is missing as noise.")
        elif not flag.startswith(CORRELATED_FLAG):
            yield FlagBadge(flag, "info")
    correlated = [flag.removeprefix(CORRELATED_FLAG) for flag in flags if flag.startswith(CORRELATED_FLAG)]
    if correlated:
        more = f" and {len(correlated) - 1} more" if len(correlated) > 1 else ""
        yield FlagBadge(
            f"correlated with {correlated[0]}{more}", "warn", "Strongly correlated with " + ", ".join(correlated)
        )


def _row(element: ParameterElement, reach: float) -> ParameterRow:
    low, high = (numbers.estimate(end, element.std) for end in (element.low, element.high))
    return ParameterRow(
        label=element.label,
        unit=element.unit,
        start=numbers.number(element.start, 4),
        value=numbers.estimate(element.value, element.std),
        interval=f"{low} … {high}",
        change=_change(element),
        identifiable=element.identifiable,
        bar=_bar(element, reach),
    )


def _change(element: ParameterElement) -> str:
    """Change of a value from its start, as text."""
    if element.ratio is None or not element.identifiable:
        return ""
    if element.ratio >= 1.995:
        return f"×{numbers.times(element.ratio)}"
    if element.ratio <= 0.501:
        return f"÷{numbers.times(1 / element.ratio)}"
    return f"{100 * (element.ratio - 1):+.1f} %".replace("-", "−")


def _scale_end(every: Sequence[ParameterElement]) -> float:
    """Smallest scale that holds all identifiable estimates."""
    ratios = [e.ratio for e in every if e.ratio is not None and e.identifiable]
    largest = max((max(r, 1 / r) for r in ratios), default=1.0)
    return next((reach for reach in BAR_REACHES if reach >= 1.04 * largest), BAR_REACHES[-1])


def _bar(element: ParameterElement, reach: float) -> IntervalBar:
    """A logarithmic bar of the ratio to the start; a linear bar where there is no ratio."""
    own = element.ratio is None
    if own:
        ends = [x - element.start for x in (element.value, element.low, element.high) if math.isfinite(x)]
        span = 1.15 * max((abs(x) for x in ends), default=1.0) or 1.0

    def at(x: float) -> float:
        if own:
            return 0.5 + 0.5 * (x - element.start) / span
        ratio = x / element.start
        return 0.5 + 0.5 * math.log(ratio) / math.log(reach) if ratio > 0 else -math.inf

    low, high = sorted((at(element.low), at(element.high)))
    marks = [at(bound) if bound is not None else None for bound in element.bounds]
    inside = [mark if mark is not None and 0 <= mark <= 1 else None for mark in marks]
    return IntervalBar(
        _clip(at(element.value)), _clip(low), _clip(high), (low < 0, high > 1), (inside[0], inside[1]), own
    )


def _clip(x: float) -> float:
    return min(max(x, 0.0), 1.0) if not math.isnan(x) else 0.5
