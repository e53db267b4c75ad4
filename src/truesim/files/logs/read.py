"""Reading and writing of log files."""

import csv
import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from truesim.core import libraries
from truesim.core.errors import FileError, parsing
from truesim.core.typing import Float
from truesim.files.logs.bags import read_bag
from truesim.files.logs.lerobot import is_lerobot, read_lerobot, select_episodes
from truesim.files.logs.log import Log
from truesim.files.logs.mapping import ColumnMap, TableLayout, apply_mapping, column_map, read_mapping
from truesim.files.logs.plain_csv import read_plain_csv
from truesim.files.logs.records import read_records
from truesim.files.logs.stamps import join_stamps, order_rows
from truesim.files.logs.tables import numeric_columns, pivot_joints, read_csv, read_npz, read_parquet
from truesim.files.logs.text import COMPRESSIONS
from truesim.physics.model.source import Finding

LOG_READERS: "dict[str, Callable[[Path, TableLayout], libraries.polars.DataFrame]]" = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log"), read_csv),
    ".parquet": read_parquet,
    ".npz": read_npz,
    **dict.fromkeys((".jsonl", ".ndjson"), read_records),
    **dict.fromkeys((".mcap", ".bag", ".db3"), lambda path, _: read_bag(path)),
}
"""Reader of each file extension."""
OTHER_FORMATS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a spreadsheet: export the table as CSV"),
    ".npy": "one array without names: save it with names, np.savez('run.npz', time=…, q=…)",
    **dict.fromkeys((".mat", ".h5", ".hdf5", ".pkl", ".pickle"), "not read: save its arrays as NPZ or CSV"),
    ".json": "not read: write one record a line into a file that ends in .jsonl",
}
"""Common formats that are not read, and what to do."""
STAMP_UNITS = ("s", "ms", "us", "ns")
GUESS_COMMAND = "`truesim inspect ROBOT LOG --write-mapping mine.toml` guesses one."
"""End of messages that advise a mapping file."""
TIME_COLUMN_NAMES = ("timestamp", "stamp", "t", "time_s", "time [s]", "seconds", "sec", "secs", "clock", "elapsed")
"""Common names of the column of stamps."""


def log_ending(path: Path) -> str:
    """Ending that tells the format of a log: that before a compression, as in `run.csv.gz`."""
    last = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower()
    return inner if last in COMPRESSIONS and LOG_READERS.get(inner) is read_csv else last


def read_log(
    path: str | os.PathLike[str], *, mapping: ColumnMap | str | os.PathLike[str] | Mapping[str, object] | None = None
) -> Log:
    """Read a log from a CSV, Parquet, NPZ, MCAP or ROS bag file.

    Without a mapping, columns must have the names of the convention: `time` [s], `qpos/<joint>`, `ctrl/<actuator>` and
    so on. Empty cells and NaN are missing samples. Columns of text are left out.

    Args:
        path: The file, or the folder of a ROS 2 bag or of a LeRobot data set with one episode.
        mapping: Translation of the file's own columns: a mapping file, its content, or the result of `read_mapping`.
    """
    episodes = read_episodes(path, mapping=mapping)
    if len(episodes) > 1:
        raise FileError(f"{path} holds {len(episodes)} episodes, each of which is a log: use read_logs.")
    return episodes[0]


def read_episodes(
    path: str | os.PathLike[str], *, mapping: ColumnMap | str | os.PathLike[str] | Mapping[str, object] | None = None
) -> list[Log]:
    """Read all logs of a file: one, or every episode of a LeRobot data set; arguments as those of `read_log`.

    `FOLDER#2` and `FOLDER#0-7` stand for some episodes of a data set.
    """
    path, chosen = select_episodes(Path(path))
    if mapping is not None and not isinstance(mapping, ColumnMap):
        mapping = column_map(mapping) if isinstance(mapping, Mapping) else read_mapping(mapping)
    if not path.exists() or not is_lerobot(path):
        if chosen is not None:
            raise FileError(f"{path} is no LeRobot data set, so that it has no episodes {_span(chosen)}.")
        if mapping is None and (columns := read_plain_csv(path)) is not None:
            return [Log(columns.pop("time"), columns, path.name, source=path)]
        return [_log(path, path.name, _table(path, mapping.layout if mapping else TableLayout()), mapping)]
    try:
        with parsing(str(path), "a LeRobot data set"):
            episodes = read_lerobot(path)
    except OSError as error:
        raise FileError(f"{path} cannot be read as a data set: {error.strerror or error}.") from None
    if chosen is not None and (missing := [k for k in chosen if k not in episodes]):
        raise FileError(f"{path} has no episode {missing[0]}; it has {', '.join(map(str, list(episodes)[:20]))}.")
    ideal = Finding(
        "time", "stamps are frame numbers over the frame rate; when samples were taken is not known.", "note"
    )
    found = [
        _log(path, f"{path.name}#{k}", table, mapping) for k, table in episodes.items() if chosen is None or k in chosen
    ]
    return [dataclasses.replace(log, findings=(*log.findings, ideal)) for log in found]


def _span(episodes: range) -> str:
    return f"{episodes[0]} to {episodes[-1]}" if len(episodes) > 1 else str(episodes.start)


def read_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Recorded numbers by name, stamps included, without any mapping; of a LeRobot data set, those of an episode."""
    path, chosen = select_episodes(Path(path))
    with parsing(str(path), "a log"):
        if path.exists() and is_lerobot(path):
            episodes = read_lerobot(path)
            table = next((t for k, t in episodes.items() if chosen is None or k in chosen), None)
            if table is None:
                raise FileError(f"{path} has no episodes {_span(chosen or range(1))}.")
        else:
            table = _table(path, TableLayout())
        if table.is_empty():
            raise FileError(f"{path.name} has no samples.")
        table = join_stamps(numeric_columns(table)[0])
    return {column: table[column].to_numpy() for column in table.columns}


def _log(path: Path, name: str, table: "libraries.polars.DataFrame", mapping: ColumnMap | None) -> Log:
    if table.is_empty():
        raise FileError(f"{name} has no samples.")
    with parsing(name, "a table of numbers"):
        table, words = numeric_columns(table)
        table = join_stamps(table)
        if mapping is not None:
            _check_sources(mapping, words)
            table = apply_mapping(table, mapping, name)
    if "time" in words:
        raise FileError(f"The column 'time' of {name} does not hold numbers.")
    if "time" not in table.columns:
        raise _no_time(name, table.columns)
    table, notes = order_rows(table)
    columns = {column: table[column].to_numpy() for column in table.columns}
    time = columns.pop("time")
    notes += [Finding(column, "holds text, not numbers; left out.", "note") for column in words]
    return Log(time, columns, name, findings=tuple(notes), source=path)


def write_log(path: str | os.PathLike[str], columns: Mapping[str, Float[np.ndarray, " samples"]]) -> None:
    """Write columns as CSV in full precision, atomically."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True))
    part.replace(path)


def _table(path: Path, layout: TableLayout) -> "libraries.polars.DataFrame":
    if not path.exists():
        raise FileError(f"There is no log file {path}.")
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        raise FileError(f"{path} is a folder, but no ROS 2 bag (it has no metadata.yaml); name the log files in it.")
    reader = LOG_READERS[".bag"] if path.is_dir() else LOG_READERS.get(log_ending(path))
    if reader is None and path.suffix.lower() in OTHER_FORMATS:
        raise FileError(f"{path.name} is {OTHER_FORMATS[path.suffix.lower()]}.")
    if reader is None:
        raise FileError(
            f"{path.name} is of no known format; logs end in {', '.join(LOG_READERS)}; text may be compressed "
            f"({', '.join(COMPRESSIONS)})."
        )
    if not path.is_dir() and not path.is_file():
        raise FileError(f"{path} is not a regular file.")
    try:
        with parsing(path.name, "a log"):
            return pivot_joints(_read_with(reader, path, layout), ("time", *TIME_COLUMN_NAMES))
    except OSError as error:
        raise FileError(f"{path.name} cannot be read as a table: {str(error).splitlines()[0].rstrip('.')}.") from None


def _read_with(
    reader: "Callable[[Path, TableLayout], libraries.polars.DataFrame]", path: Path, layout: TableLayout
) -> "libraries.polars.DataFrame":
    pl = libraries.polars
    try:
        return reader(path, layout)
    except pl.exceptions.NoDataError:
        raise FileError(f"{path.name} has no samples: the file is empty.") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise FileError(f"{path.name} cannot be read as a table: {str(error).splitlines()[0].rstrip('.')}.") from None


def _check_sources(mapping: ColumnMap, words: list[str]) -> None:
    for target, source in mapping.sources.items():
        if source.column in words:
            raise FileError(f"{mapping.name} maps {target!r} to {source.column!r}, which does not hold numbers.")


def _no_time(file: str, columns: list[str]) -> FileError:
    clock = next((column for column in columns if column.lower() in TIME_COLUMN_NAMES), None)
    if clock is None:
        clock = next((column for column in columns if "time" in column.lower()), None)
    shown = ", ".join(columns[:8]) + (f" … ({len(columns)} in all)" if len(columns) > 8 else "")
    ending = re.split(r"[^a-z]+", (clock or "").lower().rstrip("])"))[-1]
    unit = ending if ending in STAMP_UNITS else "s"
    hint = (
        f"if it is {clock!r}, a mapping file says so: [columns] time = {{ from = {clock!r}, unit = {unit!r} }}"
        if clock
        else "a mapping file can name it, or give a rate: [file] rate = 100.0"
    )
    return FileError(f"{file} has no column 'time' (its columns are {shown}); {hint}. {GUESS_COMMAND}")
