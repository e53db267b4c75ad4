"""What networks within the physics are, how much they do, and what they have learned."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from truesim.report.numbers import number, percent, unit

WIDTH, HEIGHT = 420, 190
"""Of a picture [pixels]."""
ROOM = 0.08
"""Of a picture's height, above and below."""
CURVES = 4
"""Curves of one picture, at most."""
VERBS = {"residual": "adds to", "replace": "replaces", "scale": "scales"}
SHARING = {"shared": "one for all rows", "each": "one for each row", "whole": "one for all rows at once"}


@dataclasses.dataclass(frozen=True)
class Picture:
    """What a network gives over its main input, in pixels from the upper left."""

    curves: tuple[tuple[str, str], ...]
    """Name and points of each."""
    dots: tuple[tuple[str, str], ...]
    band: tuple[str, str]
    """Left edge and width of the range that the logs show."""
    zero: str | None
    """Height of zero."""
    x_axis: tuple[str, str, str]
    """Least, name and unit, greatest."""
    y_axis: tuple[str, str]
    """Least, greatest."""
    y_name: str


@dataclasses.dataclass(frozen=True)
class Network:
    """One network."""

    name: str
    facts: tuple[tuple[str, str], ...]
    size: str
    """How large its part is, in a sentence."""
    picture: Picture | None


@dataclasses.dataclass(frozen=True)
class Networks:
    """All of them."""

    networks: tuple[Network, ...]
    words: str
    """What they are worth together: errors with and without them."""
    rows: tuple[tuple[str, ...], ...]
    """Channel, unit, and errors without and with them, by part."""
    parts: tuple[str, ...]


def network_section(document: Mapping[str, Any]) -> Networks | None:
    """The section of a fit; nothing for a fit without networks."""
    if not document.get("networks"):
        return None
    silent = {part: rows for part, rows in (document.get("errors_without_networks") or {}).items() if rows}
    return Networks(
        networks=tuple(_network(table) for table in document["networks"]),
        words=_words(document, silent),
        rows=tuple(_rows(document, silent)),
        parts=tuple({"train": "logs of the fit", "held_out": "held-out logs"}[part] for part in silent),
    )


def _network(table: Mapping[str, Any]) -> Network:
    kind = dict(table["network"])
    hidden = kind.get("hidden")
    layers = " × ".join(map(str, hidden)) if isinstance(hidden, Sequence) else hidden
    only = "" if table["names"] == ["*"] else f" of {_listed(table['names'])}"
    facts = [
        ("port", f"{VERBS[table['mode']]} {table['output']}{only}"),
        ("reads", _listed(table["inputs"]) or "nothing"),
        ("network", f"{kind['kind']}" + (f", hidden {layers}" if layers else "") + f", {table['weights']} weights"),
        ("sharing", SHARING[table["sharing"]]),
        ("penalty R", number(table["penalty"]) + f"; weights moved by {number(table['change'], 2)} (rms)"),
    ]
    if table.get("head"):
        facts.append(("law", f"{table['head']}, whatever its weights are"))
    effect = table.get("effect")
    return Network(table["name"], tuple(facts), _size(table, effect), effect and _picture(table, effect))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _size(table: Mapping[str, Any], effect: Mapping[str, Any] | None) -> str:
    if effect is None:
        return f"{table['output']} is computed elsewhere than among the forces: its size along the logs is not known."
    own, added, of = effect["term"], effect["change"], unit(effect["unit"])
    change = f"It changes {number(added, 2)} {of} (rms along the logs)"
    if not own or added > 1e3 * own:
        return f"{change}, where the model itself has nothing."
    return f"{change}: {percent(added / own)} of the model's own {number(own, 2)} {of}."


def _picture(table: Mapping[str, Any], effect: Mapping[str, Any]) -> Picture:
    curves = list(effect["curves"].items())
    if len({tuple(values) for _, values in curves}) == 1:
        curves = [("", curves[0][1])]
    curves, points = curves[:CURVES], effect["points"]
    left, right = effect["x"][0], effect["x"][-1]
    heights = [y for _, values in curves for y in values] + [y for _, y in points]
    low, high = min(heights), max(heights)
    if low == high:
        low, high = low - 1, high + 1
    low, high = low - ROOM * (high - low), high + ROOM * (high - low)

    def across(x: float) -> float:
        return WIDTH * (x - left) / ((right - left) or 1)

    def down(y: float) -> float:
        return HEIGHT * (high - y) / (high - low)

    seen = [across(x) for x in effect["seen"]]
    axis = f"{effect['input']} [{unit(effect['input_unit'])}]"
    verb = "gives" if table["mode"] == "replace" else "adds"
    return Picture(
        curves=tuple(
            (name, " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(effect["x"], values, strict=True)))
            for name, values in curves
        ),
        dots=tuple((f"{across(x):.1f}", f"{down(y):.1f}") for x, y in points),
        band=(f"{seen[0]:.1f}", f"{max(seen[1] - seen[0], 1):.1f}"),
        zero=f"{down(0.0):.1f}" if low < 0 < high else None,
        x_axis=(number(left), axis, number(right)),
        y_axis=(number(low, 2), number(high, 2)),
        y_name=f"{verb} [{unit(effect['unit'])}]",
    )


def _words(document: Mapping[str, Any], silent: Mapping[str, Mapping[str, float]]) -> str:
    if not silent:
        return "A network stands in the place of physics here, so that there is no robot without it to compare with."
    part = "held_out" if "held_out" in silent else "train"
    ratios = [without / document["errors"][part][row]["median"] for row, without in silent[part].items() if without]
    middle = statistics.median(ratios)
    where = "held-out logs" if part == "held_out" else "the logs of the fit (none were held out)"
    factor = f"{number(1 / middle, 2)} times larger" if middle < 1 else f"{number(middle, 2)} times smaller"
    return f"On {where} errors are {factor} with the networks than with all of them silent."


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
