"""Mapping files: translation of a user's own columns into the columns of the convention.

```toml
[file]                          # only for tables without a header, stamps or a common separator
columns = ["x0", "y0"]          # names, for a file without a header
rate = 400.0                    # sampling rate, for a file without stamps [Hz]
separator = ";"

[columns]
time = { from = "stamp", unit = "ns" }
"qpos/elbow" = "joint_2"
"qpos/shoulder" = { from = "joint_1", unit = "deg", sign = -1, offset = 0.1 }
"ctrl/elbow" = { from = "current_2", scale = 0.043 }
"ctrl/fan" = 1.0
```

A column is `sign * scale * unit * recorded + offset`, with the offset in SI units. Mapping files may also be JSON.
"""

import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truesim.core import libraries
from truesim.core.errors import FileError, unknown_name

UNIT_FACTORS = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "rad": 1.0,
    "deg": math.pi / 180,
    "rev": 2 * math.pi,
    "rad/s": 1.0,
    "deg/s": math.pi / 180,
    "rev/s": 2 * math.pi,
    "rpm": math.pi / 30,
    "m": 1.0,
    "cm": 1e-2,
    "mm": 1e-3,
    "in": 0.0254,
    "m/s": 1.0,
    "mm/s": 1e-3,
    "m/s^2": 1.0,
    "g": 9.80665,
    "N m": 1.0,
    "N cm": 1e-2,
    "mN m": 1e-3,
    "N": 1.0,
    "mN": 1e-3,
    "kN": 1e3,
    "V": 1.0,
    "mV": 1e-3,
    "A": 1.0,
    "mA": 1e-3,
}
"""Factor to SI of every unit that a recorded column may have; `g` is the acceleration of gravity."""


@dataclasses.dataclass(frozen=True)
class ColumnSource:
    """Recorded column, factor and offset from which a column is computed."""

    column: str | None
    """Name of the recorded column; None for a constant."""
    factor: float = 1.0
    """Product of sign, scale and unit."""
    offset: float = 0.0
    """Offset in SI units, added after the factor."""


@dataclasses.dataclass(frozen=True)
class TableLayout:
    """Layout of a table that has no header, no stamps or an unusual separator."""

    columns: tuple[str, ...] = ()
    """Names of the columns of a file without a header."""
    rate: float | None = None
    """Sampling rate of a file without stamps [Hz]."""
    separator: str | None = None
    """Separator of a text file; detected by default."""


@dataclasses.dataclass(frozen=True)
class ColumnMap:
    """Content of a mapping file, checked."""

    sources: Mapping[str, ColumnSource]
    """ColumnSource of every target column."""
    layout: TableLayout = TableLayout()
    name: str = "mapping"


def read_mapping(path: str | os.PathLike[str]) -> ColumnMap:
    """Read a mapping from a TOML or JSON file."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no mapping file {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (UnicodeDecodeError, ValueError) as error:
        raise FileError(f"{path.name} cannot be read as {path.suffix.lstrip('.').upper()}: {error}.") from None
    return column_map(content, path.name)


def column_map(content: Mapping[str, Any], name: str = "mapping") -> ColumnMap:
    """Make a mapping from its content: the tables `columns` and `file` of a mapping file.

    Args:
        content: Content as read by `tomllib` or `json`.
        name: Name of the mapping in error messages.
    """
    for table in content:
        if table not in ("columns", "file") or not isinstance(content[table], Mapping):
            raise unknown_name(f"table in {name}", table, ("columns", "file"))
    sources = {target: _source(target, entry, name) for target, entry in content.get("columns", {}).items()}
    return ColumnMap(sources, _layout(content.get("file", {}), name), name)


def apply_mapping(table: "libraries.polars.DataFrame", mapping: ColumnMap, file: str) -> "libraries.polars.DataFrame":
    """The table with renamed and scaled columns; columns that the mapping does not name are unchanged.

    Args:
        table: Recorded columns; numbers only.
        mapping: The mapping.
        file: Name of the table in error messages.
    """
    pl = libraries.polars
    new, taken = {}, set()
    for target, source in mapping.sources.items():
        if source.column is None:
            new[target] = pl.Series(target, [source.offset]).new_from_index(0, table.height)
            continue
        if source.column not in table.columns:
            missing = unknown_name(f"column in {file}", source.column, table.columns)
            raise FileError(f"{mapping.name} maps {target!r}: {missing}")
        taken.add(source.column)
        new[target] = (table[source.column] * source.factor + source.offset).alias(target)
    rest = [column for column in table.columns if column not in taken]
    if clash := next((column for column in rest if column in new), None):
        raise FileError(f"{mapping.name} maps {clash!r}, but {file} has a column of that name already.")
    return pl.DataFrame({**{column: table[column] for column in rest}, **new})


def _source(target: str, entry: Any, name: str) -> ColumnSource:
    if isinstance(entry, str):
        return ColumnSource(entry)
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return ColumnSource(None, offset=float(entry))
    if not isinstance(entry, Mapping) or not isinstance(entry.get("from"), str):
        example = '{ from = "their name", unit = "deg" }'
        raise FileError(f"{name} maps {target!r} to {entry!r}; valid is a column's name, a number, or {example}.")
    keys = ("from", "unit", "sign", "scale", "offset")
    for key in entry:
        if key not in keys:
            raise unknown_name(f"key of {target!r} in {name}", key, keys)
    unit = entry.get("unit", "rad")
    if unit not in UNIT_FACTORS:
        raise unknown_name(f"unit of {target!r} in {name}", str(unit), UNIT_FACTORS)
    sign, scale, offset = (_number(entry, key, target, name) for key in ("sign", "scale", "offset"))
    if sign not in (1.0, -1.0):
        raise FileError(f"{name} gives {target!r} the sign {sign:g}; valid are 1 and -1.")
    return ColumnSource(entry["from"], sign * scale * UNIT_FACTORS[unit], offset)


def _number(entry: Mapping[str, Any], key: str, target: str, name: str) -> float:
    value = entry.get(key, 0.0 if key == "offset" else 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FileError(f"{name} gives {target!r} the {key} {value!r}, which is not a number.")
    return float(value)


def _layout(content: Mapping[str, Any], name: str) -> TableLayout:
    keys = [field.name for field in dataclasses.fields(TableLayout)]
    for key in content:
        if key not in keys:
            raise unknown_name(f"key of [file] in {name}", key, keys)
    columns, rate, separator = (content.get(key) for key in keys)
    if columns is not None and not (isinstance(columns, list) and all(isinstance(c, str) for c in columns)):
        raise FileError(f"{name} gives columns {columns!r}; valid is a list of names.")
    if rate is not None and not (isinstance(rate, int | float) and rate > 0):
        raise FileError(f"{name} gives the rate {rate!r}; valid is a positive number of samples per second.")
    if separator is not None and not (isinstance(separator, str) and len(separator) == 1):
        raise FileError(f"{name} gives the separator {separator!r}; valid is a single character.")
    return TableLayout(tuple(columns or ()), None if rate is None else float(rate), separator)
