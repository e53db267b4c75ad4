"""NetworkSection within the physics: structure, size of their effect, and learned function."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from truesim.report.numbers import number, percent, unit

PLOT_WIDTH, PLOT_HEIGHT = 420, 190
"""Size of a plot [px]."""
PLOT_MARGIN = 0.08
"""Margin above and below the curves, as a fraction of their range."""
MAX_CURVES = 4
"""Largest number of curves in one plot."""
MODE_VERBS = {"residual": "adds to", "replace": "replaces", "scale": "scales"}
SHARING_WORDS = {"shared": "one for all rows", "each": "one for each row", "whole": "one for all rows at once"}


@dataclasses.dataclass(frozen=True)
class NetworkPlot:
    """Output of a network over its main input, in pixels from the upper left."""

    curves: tuple[tuple[str, str], ...]
    """Name and points of each curve."""
    dots: tuple[tuple[str, str], ...]
    band: tuple[str, str]
    """Left edge and width of the input range within the logs."""
    zero: str | None
    """Vertical place of zero; None if outside."""
    x_axis: tuple[str, str, str]
    """Minimum, name and unit, maximum."""
    y_axis: tuple[str, str]
    """Minimum, maximum."""
    y_name: str


@dataclasses.dataclass(frozen=True)
class NetworkSummary:
    """One network, as text."""

    name: str
    facts: tuple[tuple[str, str], ...]
    size: str
    """Size of its effect, in a sentence."""
    plot: NetworkPlot | None


@dataclasses.dataclass(frozen=True)
class NetworkSection:
    """All networks of a fit."""

    networks: tuple[NetworkSummary, ...]
    words: str
    """Errors with and without the networks, in a sentence."""
    rows: tuple[tuple[str, ...], ...]
    """Channel, unit, and errors without and with the networks, for each part."""
    parts: tuple[str, ...]


def network_section(document: Mapping[str, Any]) -> NetworkSection | None:
    """The section of a fit; None for a fit without networks."""
    if not document.get("networks"):
        return None
    silent = {part: rows for part, rows in (document.get("errors_without_networks") or {}).items() if rows}
    return NetworkSection(
        networks=tuple(_network(table) for table in document["networks"]),
        words=_words(document, silent),
        rows=tuple(_rows(document, silent)),
        parts=tuple({"train": "logs of the fit", "held_out": "held-out logs"}[part] for part in silent),
    )


def _network(table: Mapping[str, Any]) -> NetworkSummary:
    kind = dict(table["network"])
    hidden = kind.get("hidden")
    layers = " × ".join(map(str, hidden)) if isinstance(hidden, Sequence) else hidden
    only = "" if table["names"] == ["*"] else f" of {_listed(table['names'])}"
    facts = [
        ("port", f"{MODE_VERBS[table['mode']]} {table['output']}{only}"),
        ("reads", _listed(table["inputs"]) or "nothing"),
        ("network", f"{kind['kind']}" + (f", hidden {layers}" if layers else "") + f", {table['weights']} weights"),
        ("sharing", SHARING_WORDS[table["sharing"]]),
        ("penalty R", number(table["penalty"]) + f"; weights changed by {number(table['change'], 2)} (RMS)"),
    ]
    if table.get("head"):
        facts.append(("constraint", f"{table['head']}, for all weights"))
    effect = table.get("effect")
    return NetworkSummary(table["name"], tuple(facts), _size(table, effect), effect and _plot(table, effect))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _size(table: Mapping[str, Any], effect: Mapping[str, Any] | None) -> str:
    if effect is None:
        return f"{table['output']} is not a force: the size of its effect along the logs is not computed."
    own, added, of = effect["term"], effect["change"], unit(effect["unit"])
    change = f"Its effect is {number(added, 2)} {of} (RMS along the logs)"
    if not own or added > 1e3 * own:
        return f"{change}, where the model itself has no such term."
    return f"{change}: {percent(added / own)} of the model's own {number(own, 2)} {of}."


def _plot(table: Mapping[str, Any], effect: Mapping[str, Any]) -> NetworkPlot:
    curves = list(effect["curves"].items())
    if len({tuple(values) for _, values in curves}) == 1:
        curves = [("", curves[0][1])]
    curves, points = curves[:MAX_CURVES], effect["points"]
    left, right = effect["x"][0], effect["x"][-1]
    heights = [y for _, values in curves for y in values] + [y for _, y in points]
    low, high = min(heights), max(heights)
    if low == high:
        low, high = low - 1, high + 1
    low, high = low - PLOT_MARGIN * (high - low), high + PLOT_MARGIN * (high - low)

    def to_x(x: float) -> float:
        return PLOT_WIDTH * (x - left) / ((right - left) or 1)

    def to_y(y: float) -> float:
        return PLOT_HEIGHT * (high - y) / (high - low)

    seen = [to_x(x) for x in effect["seen"]]
    axis = f"{effect['input']} [{unit(effect['input_unit'])}]"
    verb = "gives" if table["mode"] == "replace" else "adds"
    return NetworkPlot(
        curves=tuple(
            (name, " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in zip(effect["x"], values, strict=True)))
            for name, values in curves
        ),
        dots=tuple((f"{to_x(x):.1f}", f"{to_y(y):.1f}") for x, y in points),
        band=(f"{seen[0]:.1f}", f"{max(seen[1] - seen[0], 1):.1f}"),
        zero=f"{to_y(0.0):.1f}" if low < 0 < high else None,
        x_axis=(number(left), axis, number(right)),
        y_axis=(number(low, 2), number(high, 2)),
        y_name=f"{verb} [{unit(effect['unit'])}]",
    )


def _words(document: Mapping[str, Any], silent: Mapping[str, Mapping[str, float]]) -> str:
    if not silent:
        return "A network replaces a part of the physics here, so there is no simulation without it to compare with."
    part = "held_out" if "held_out" in silent else "train"
    ratios = [without / document["errors"][part][row]["median"] for row, without in silent[part].items() if without]
    middle = statistics.median(ratios)
    where = "held-out logs" if part == "held_out" else "the logs of the fit (none were held out)"
    factor = f"{number(1 / middle, 2)} times larger" if middle < 1 else f"{number(middle, 2)} times smaller"
    return f"On {where} errors are {factor} with the networks than with their outputs set to zero."


def _rows(document: Mapping[str, Any], silent: Mapping[str, Mapping[str, float]]) -> list[tuple[str, ...]]:
    units, first = document.get("units", {}), next(iter(silent.values()), {})
    return [
        (
            row,
            unit(units.get(row, "")),
            *(
                number(value)
                for part in silent
                for value in (silent[part].get(row), document["errors"][part].get(row, {}).get("median"))
            ),
        )
        for row in first
    ]
