"""Logs in and out of files."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from truesim.core.errors import FileError
from truesim.core.typing import Float
from truesim.data.bags import read_bag
from truesim.data.log import Log
from truesim.data.mapping import ColumnMap, Layout, column_map, mapped, read_mapping
from truesim.data.tables import numbers, read_csv, read_npz, read_parquet
from truesim.model.source import Finding

READERS: dict[str, Callable[[Path, Layout], pl.DataFrame]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log"), read_csv),
    ".parquet": read_parquet,
    ".npz": read_npz,
    **dict.fromkeys((".mcap", ".bag", ".db3"), lambda path, _: read_bag(path)),
}
"""How a file is read, by its extension."""
CLOCKS = ("timestamp", "stamp", "t", "time_s", "time [s]", "seconds", "sec", "secs", "clock", "elapsed")
"""What others call the column of stamps."""


def read_log(
    path: str | os.PathLike[str], *, mapping: ColumnMap | str | os.PathLike[str] | Mapping[str, object] | None = None
) -> Log:
    """The log in a CSV, Parquet, NPZ, MCAP or ROS bag file.

    Without a mapping, columns must have the names of the convention: `time` [s], `qpos/<joint>`, `ctrl/<actuator>` and
    so on. Empty cells and NaN are missing samples. Columns of words are left out.

    Args:
        path: The file, or the folder of a ROS 2 bag.
        mapping: How the file's own columns are to be called: a mapping file, its content, or what `read_mapping` made.
    """
    path = Path(path)
    if mapping is not None and not isinstance(mapping, ColumnMap):
        mapping = column_map(mapping) if isinstance(mapping, Mapping) else read_mapping(mapping)
    table = _table(path, mapping.layout if mapping else Layout())
    if table.is_empty():
        raise FileError(f"{path.name} has no samples.")
    table, words = numbers(table)
    if mapping is not None:
        _check_sources(mapping, words)
        table = mapped(table, mapping, path.name)
    if "time" in words:
        raise FileError(f"The column 'time' of {path.name} does not hold numbers.")
    if "time" not in table.columns:
        raise _no_time(path.name, table.columns)
    columns = {name: table[name].to_numpy() for name in table.columns}
    time = columns.pop("time")
    notes = tuple(Finding(name, "holds words, not numbers; left out.", "note") for name in words)
    return Log(time, columns, path.name, findings=notes)


def write_log(path: str | os.PathLike[str], columns: Mapping[str, Float[np.ndarray, "samples"]]) -> None:
    """Writes columns as CSV, numbers in full precision; the file appears whole or not at all."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    pl.DataFrame({name: np.asarray(values) for name, values in columns.items()}).write_csv(part)
    part.replace(path)


def _table(path: Path, layout: Layout) -> pl.DataFrame:
    if not path.exists():
        raise FileError(f"There is no log file {path}.")
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        raise FileError(f"{path} is a folder, but no ROS 2 bag (it has no metadata.yaml); name the log files in it.")
    reader = READERS[".bag"] if path.is_dir() else READERS.get(path.suffix.lower())
    if reader is None:
        raise FileError(f"{path.name} is of no known format; logs end in {', '.join(READERS)}.")
    try:
        return reader(path, layout)
    except pl.exceptions.NoDataError:
        raise FileError(f"{path.name} has no samples: the file is empty.") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as error:
        raise FileError(f"{path.name} cannot be read as a table: {str(error).splitlines()[0].rstrip('.')}.") from None


def _check_sources(mapping: ColumnMap, words: list[str]) -> None:
    for target, source in mapping.sources.items():
        if source.column in words:
            raise FileError(f"{mapping.name} maps {target!r} to {source.column!r}, which does not hold numbers.")


def _no_time(file: str, columns: list[str]) -> FileError:
    clock = next((column for column in columns if column.lower() in CLOCKS), None)
    if clock is None:
        clock = next((column for column in columns if "time" in column.lower()), None)
    shown = ", ".join(columns[:8]) + (f" … ({len(columns)} in all)" if len(columns) > 8 else "")
    hint = (
        f"if {clock!r} is it, say so in a mapping file: [columns] time = {{ from = {clock!r}, unit = 's' }}"
        if clock
        else "a mapping file can name it, or give a rate: [file] rate = 100.0"
    )
    return FileError(f"{file} has no column 'time' (its columns are {shown}); {hint}.")
