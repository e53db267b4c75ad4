"""The minima that a search came to before the fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from truesim.report.numbers import number

MOST = 8
"""Basins, and parameters, that are shown."""


@dataclasses.dataclass(frozen=True)
class Basin:
    """One row of the table."""

    cost: str
    count: int
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class BasinTable:
    """The lowest basins."""

    words: str
    names: tuple[str, ...]
    """Of the parameters that are shown."""
    rows: tuple[Basin, ...]


def basin_table(document: Mapping[str, Any]) -> BasinTable | None:
    """The basins of a fit's search; nothing for a fit without one."""
    search = document.get("search")
    if not search or not search["basins"]:
        return None
    names = tuple(name for name in search["basins"][0]["values"] if not name.startswith("networks/"))[:MOST]
    rows = [
        Basin(number(basin["cost"]), basin["count"], tuple(_value(basin["values"][name]) for name in names))
        for basin in search["basins"][:MOST]
    ]
    count = search["found"]
    minima = "one minimum, which the fit took up" if count == 1 else f"{count} minima; the fit took up the lowest"
    words = f"{search['solves']} solves from different starts came to {minima}."
    return BasinTable(words, names, tuple(rows))


def _value(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)
