"""The table of parameters: every number with its interval, drawn beside the others on one scale."""

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from truesim.report import numbers

REACHES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""How far the common scale of the bars may reach to either side of the start, as a factor."""
VAGUE = 0.5
"""Elements with a larger standard deviation, as a part of their value, are those meant by `partly not identifiable`."""
SOME_ELEMENTS = re.compile(r"not identifiable in \[(?P<elements>[\d, ]+)\]")
ALIKE = "correlated with "


@dataclasses.dataclass(frozen=True)
class Number:
    """One number of a parameter: all of a scalar, or an element of a vector."""

    label: str
    unit: str
    start: float
    value: float
    std: float
    low: float
    high: float
    bounds: tuple[float | None, float | None]
    """None where there is none."""
    known: bool
    """Whether the logs determine it."""

    @property
    def ratio(self) -> float | None:
        """Value by start; none where a start of zero or a change of sign leaves it without a meaning."""
        return self.value / self.start if self.start and self.value / self.start > 0 else None

    @property
    def spread(self) -> float:
        """Half of the interval by the value."""
        return 0.5 * (self.high - self.low) / abs(self.value) if self.value else math.inf


@dataclasses.dataclass(frozen=True)
class Badge:
    """A flag in a word or two."""

    text: str
    kind: str
    """`bad`, `warn` or `info`."""
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Bar:
    """Where start, value and interval lie between the ends of a bar, from 0 to 1; the start is in the middle."""

    value: float
    low: float
    high: float
    open: tuple[bool, bool]
    """Whether the interval goes on beyond either end."""
    bounds: tuple[float | None, float | None]
    own_scale: bool
    """Whether the bar has a linear scale of its own."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table, as text."""

    label: str
    unit: str
    start: str
    value: str
    interval: str
    change: str
    known: bool
    bar: Bar


@dataclasses.dataclass(frozen=True)
class Group:
    """A parameter: one row, or one for each element under its name."""

    path: str
    badges: tuple[Badge, ...]
    rows: tuple[Row, ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """All parameters, and how far the common scale of the bars reaches."""

    groups: tuple[Group, ...]
    reach: float


def parameter_table(parameters: Sequence[dict[str, Any]]) -> Table:
    """The table of the entries `parameters` of a fit."""
    reach = _reach([n for entry in parameters for n in split(entry)])
    groups = [
        Group(entry["path"], tuple(_badges(entry["flags"])), tuple(_row(number, reach) for number in split(entry)))
        for entry in parameters
    ]
    return Table(tuple(groups), reach)


def split(entry: dict[str, Any]) -> list[Number]:
    """The numbers of one parameter."""
    if not isinstance(entry["value"], list):
        low, high = entry["bounds"]
        known = "not identifiable" not in entry["flags"]
        return [_number(entry, entry["path"], lambda field: field, (low, high), known)]
    hidden = _hidden_elements(entry)
    return [
        _number(
            entry, f"{entry['path']}[{k}]", lambda field, k=k: field[k], _element(entry["bounds"], k), k not in hidden
        )
        for k in range(len(entry["value"]))
    ]


def flat_names(parameters: Sequence[dict[str, Any]]) -> list[str]:
    """Name of every number, in the order of the matrix of correlations."""
    return [number.label for entry in parameters for number in split(entry)]


def _number(
    entry: dict[str, Any], label: str, pick: Any, bounds: tuple[float | None, float | None], known: bool
) -> Number:
    def finite(field: str, otherwise: float) -> float:
        value = pick(entry[field])
        return otherwise if value is None else float(value)

    value = finite("value", math.nan)
    return Number(
        label=label,
        unit=numbers.unit(entry["unit"]),
        start=finite("start", math.nan),
        value=value,
        std=finite("std", math.inf),
        low=finite("low", -math.inf),
        high=finite("high", math.inf),
        bounds=bounds,
        known=known,
    )


def _element(bounds: Sequence[Any], k: int) -> tuple[float | None, float | None]:
    low, high = (bound[k] if isinstance(bound, list) else bound for bound in bounds)
    return low, high


def _hidden_elements(entry: dict[str, Any]) -> set[int]:
    flags, pairs = entry["flags"], list(zip(entry["value"], entry["std"], strict=True))
    if "not identifiable" in flags:
        return set(range(len(pairs)))
    if "partly not identifiable" in flags:
        return {k for k, (value, std) in enumerate(pairs) if std is None or std > VAGUE * abs(value)}
    matches = filter(None, map(SOME_ELEMENTS.fullmatch, flags))
    return {int(k) for match in matches for k in match["elements"].split(",")}


def _badges(flags: Sequence[str]) -> Iterator[Badge]:
    for flag in flags:
        if "not identifiable" in flag:
            yield Badge(flag, "bad", "These logs do not determine the value: do not use it on its own.")
        elif flag.startswith("at "):
            yield Badge(flag, "warn", "The search ran into this bound.")
        elif not flag.startswith(ALIKE):
            yield Badge(flag, "info")
    alike = [flag.removeprefix(ALIKE) for flag in flags if flag.startswith(ALIKE)]
    if alike:
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield Badge(f"moves with {alike[0]}{more}", "warn", "Strongly correlated with " + ", ".join(alike))


def _row(number: Number, reach: float) -> Row:
    low, high = (numbers.estimate(end, number.std) for end in (number.low, number.high))
    return Row(
        label=number.label,
        unit=number.unit,
        start=numbers.number(number.start, 4),
        value=numbers.estimate(number.value, number.std),
        interval=f"{low} … {high}",
        change=_change(number),
        known=number.known,
        bar=_bar(number, reach),
    )


def _change(number: Number) -> str:
    """How far a value moved from its start."""
    if number.ratio is None or not number.known:
        return ""
    if number.ratio >= 1.995:
        return f"×{numbers.times(number.ratio)}"
    if number.ratio <= 0.501:
        return f"÷{numbers.times(1 / number.ratio)}"
    return f"{100 * (number.ratio - 1):+.1f} %".replace("-", "−")


def _reach(every: Sequence[Number]) -> float:
    """The smallest reach of a scale that shows all estimates that the logs determine."""
    ratios = [n.ratio for n in every if n.ratio is not None and n.known]
    largest = max((max(r, 1 / r) for r in ratios), default=1.0)
    return next((reach for reach in REACHES if reach >= 1.04 * largest), REACHES[-1])


def _bar(number: Number, reach: float) -> Bar:
    """A logarithmic bar of the ratio to the start; where there is no ratio, a linear one of its own."""
    own = number.ratio is None
    if own:
        ends = [x - number.start for x in (number.value, number.low, number.high) if math.isfinite(x)]
        span = 1.15 * max((abs(x) for x in ends), default=1.0) or 1.0

    def at(x: float) -> float:
        if own:
            return 0.5 + 0.5 * (x - number.start) / span
        ratio = x / number.start
        return 0.5 + 0.5 * math.log(ratio) / math.log(reach) if ratio > 0 else -math.inf

    low, high = sorted((at(number.low), at(number.high)))
    marks = [at(bound) if bound is not None else None for bound in number.bounds]
    inside = [mark if mark is not None and 0 <= mark <= 1 else None for mark in marks]
    return Bar(
        _clipped(at(number.value)), _clipped(low), _clipped(high), (low < 0, high > 1), (inside[0], inside[1]), own
    )


def _clipped(x: float) -> float:
    return min(max(x, 0.0), 1.0) if not math.isnan(x) else 0.5
