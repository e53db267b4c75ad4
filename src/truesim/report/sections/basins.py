"""Local minima that a global search found before the fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from truesim.report.numbers import number

MAX_BASINS_SHOWN = 8
"""Largest number of basins, and of parameters, in the table."""


@dataclasses.dataclass(frozen=True)
class BasinRow:
    """One row of the table, as text."""

    cost: str
    count: int
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class BasinTable:
    """The basins of lowest cost."""

    words: str
    names: tuple[str, ...]
    """Names of the parameters shown."""
    rows: tuple[BasinRow, ...]


def basin_table(document: Mapping[str, Any]) -> BasinTable | None:
    """The basins that the search of a fit found; None for a fit without a search."""
    search = document.get("search")
    if not search or not search["basins"]:
        return None
    names = tuple(name for name in search["basins"][0]["values"] if not name.startswith("networks/"))
    names = names[:MAX_BASINS_SHOWN]
    rows = [
        BasinRow(number(basin["cost"]), basin["count"], tuple(_value(basin["values"][name]) for name in names))
        for basin in search["basins"][:MAX_BASINS_SHOWN]
    ]
    count = search["found"]
    minima = "one minimum, where the fit started" if count == 1 else f"{count} minima; the fit started at the lowest"
    words = f"{search['solves']} solves from different starts found {minima}."
    return BasinTable(words, names, tuple(rows))


def _value(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)
