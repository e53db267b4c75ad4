"""Mapping files: how a user's own columns become the columns of the convention.

```toml
[file]                          # only where the table is not an ordinary one
columns = ["x0", "y0"]          # names, for a file without a header
rate = 400.0                    # samples a second, for a file without stamps [Hz]
separator = ";"

[columns]
time = { from = "stamp", unit = "ns" }
"qpos/elbow" = "joint_2"
"qpos/shoulder" = { from = "joint_1", unit = "deg", sign = -1, offset = 0.1 }
"ctrl/elbow" = { from = "current_2", scale = 0.043 }
"ctrl/fan" = 1.0
```

A column is `sign * scale * unit * recorded + offset`, the offset in SI units. The same as JSON is read too.
"""

import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from truesim.core.errors import FileError, unknown_name

UNITS = {
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
"""Units a recorded column may have, each with the factor to SI; `g` is the acceleration of gravity."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the values of one column come from."""

    column: str | None
    """The user's name for it; None for a constant."""
    factor: float = 1.0
    """What the recorded values are multiplied by: sign, scale and unit."""
    offset: float = 0.0
    """What is added to them then, in SI units."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a table is laid out, where it is not an ordinary one."""

    columns: tuple[str, ...] = ()
    """Names of the columns of a file without a header."""
    rate: float | None = None
    """Samples a second of a file without stamps [Hz]."""
    separator: str | None = None
    """What stands between values of a text file; found by itself if not given."""


@dataclasses.dataclass(frozen=True)
class ColumnMap:
    """A mapping file, read and checked."""

    sources: Mapping[str, Source]
    """For every column of ours, where it comes from."""
    layout: Layout = Layout()
    name: str = "mapping"


def read_mapping(path: str | os.PathLike[str]) -> ColumnMap:
    """The mapping in a TOML or JSON file."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no mapping file {path}.")
    try:
        text = path.read_text()
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (UnicodeDecodeError, ValueError) as error:
        raise FileError(f"{path.name} cannot be read as {path.suffix.lstrip('.').upper()}: {error}.") from None
    return column_map(content, path.name)


def column_map(content: Mapping[str, Any], name: str = "mapping") -> ColumnMap:
    """A mapping from its content: tables `columns` and `file`, as in a mapping file.

    Args:
        content: The content, as `tomllib` or `json` reads it.
        name: What errors call it.
    """
    for table in content:
        if table not in ("columns", "file") or not isinstance(content[table], Mapping):
            raise unknown_name(f"table in {name}", table, ("columns", "file"))
    sources = {target: _source(target, entry, name) for target, entry in content.get("columns", {}).items()}
    return ColumnMap(sources, _layout(content.get("file", {}), name), name)


def mapped(table: pl.DataFrame, mapping: ColumnMap, file: str) -> pl.DataFrame:
    """The table with its columns renamed and scaled; columns that the mapping does not name stay as they are.

    Args:
        table: What was recorded; numbers only.
        mapping: How its columns are to be called.
        file: What errors call the table.
    """
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


def _source(target: str, entry: Any, name: str) -> Source:
    if isinstance(entry, str):
        return Source(entry)
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return Source(None, offset=float(entry))
    if not isinstance(entry, Mapping) or not isinstance(entry.get("from"), str):
        example = '{ from = "their name", unit = "deg" }'
        raise FileError(f"{name} maps {target!r} to {entry!r}; valid is a column's name, a number, or {example}.")
    keys = ("from", "unit", "sign", "scale", "offset")
    for key in entry:
        if key not in keys:
            raise unknown_name(f"key of {target!r} in {name}", key, keys)
    unit = entry.get("unit", "rad")
    if unit not in UNITS:
        raise unknown_name(f"unit of {target!r} in {name}", str(unit), UNITS)
    sign, scale, offset = (_number(entry, key, target, name) for key in ("sign", "scale", "offset"))
    if sign not in (1.0, -1.0):
        raise FileError(f"{name} gives {target!r} the sign {sign:g}; valid are 1 and -1.")
    return Source(entry["from"], sign * scale * UNITS[unit], offset)


def _number(entry: Mapping[str, Any], key: str, target: str, name: str) -> float:
    value = entry.get(key, 0.0 if key == "offset" else 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FileError(f"{name} gives {target!r} the {key} {value!r}, which is not a number.")
    return float(value)


def _layout(content: Mapping[str, Any], name: str) -> Layout:
    keys = [field.name for field in dataclasses.fields(Layout)]
    for key in content:
        if key not in keys:
            raise unknown_name(f"key of [file] in {name}", key, keys)
    columns, rate, separator = (content.get(key) for key in keys)
    if columns is not None and not (isinstance(columns, list) and all(isinstance(c, str) for c in columns)):
        raise FileError(f"{name} gives columns {columns!r}; valid is a list of names.")
    if rate is not None and not (isinstance(rate, int | float) and rate > 0):
        raise FileError(f"{name} gives the rate {rate!r}; valid is a positive number of samples a second.")
    if separator is not None and not (isinstance(separator, str) and len(separator) == 1):
        raise FileError(f"{name} gives the separator {separator!r}; valid is a single character.")
    return Layout(tuple(columns or ()), None if rate is None else float(rate), separator)
