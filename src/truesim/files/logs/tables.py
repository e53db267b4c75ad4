"""Tables of numbers from CSV, Parquet and NPZ files."""

import io
import itertools
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesim.core import libraries
from truesim.core.errors import FileError
from truesim.files.logs.lerobot import expand_vectors
from truesim.files.logs.mapping import TableLayout
from truesim.files.logs.text import read_text

SEPARATORS = (";", "\t", "|", ",", " ")
"""Possible separators of a text file; the first of them that occurs in its first line is used."""
MIN_NUMERIC_FRACTION = 0.5
"""A text column of which a larger fraction can be parsed is a column of numbers with missing values."""
COMMENT_MARKS = "#%"
"""Beginnings of comments before a table, and of names of columns."""
JOINT_STATE_FIELDS = ("position", "velocity", "effort")
"""Fields of ROS's joint states, in order."""
NUMERIC_KINDS = "biufmM"
"""Kinds of NumPy's types that are signals or stamps."""
OFFSET_OF_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
"""Offset of a time zone after a date."""
JOINT_COLUMNS = ("joint", "joint_name", "name", "motor", "motor_name")
"""Columns of the joint that a row belongs to, where every joint has a row of its own."""
MAX_JOINTS = 64
"""More different words in such a column are no joints."""
DECIMAL_COMMA = r"^([+-]?\d+(,\d+)?(e[+-]?\d+)?|nan|)$"


def read_csv(path: Path, layout: TableLayout) -> "libraries.polars.DataFrame":
    """Read the columns of a text file; the separator is detected in its first line."""
    text = _without_comments(read_text(path))
    first = _first_line(text)
    separator = layout.separator or _separator(first)
    unnamed = _is_number(first.split(separator)[0])
    echoed = _echoed_columns(first.split(separator)) if unnamed else ()
    if unnamed and not layout.columns and not echoed:
        raise FileError(
            f"{path.name} begins with numbers, not with names of columns; a mapping file can name them: "
            '[file] columns = ["time", "qpos/elbow"].'
        )
    table = libraries.polars.read_csv(
        text,
        has_header=not unnamed,
        separator=separator,
        infer_schema=False,
        truncate_ragged_lines=False,
    )
    if echoed and not layout.columns:
        table = table.rename(dict(zip(table.columns, echoed, strict=True)))
    return apply_layout(table, layout, path)


def read_parquet(path: Path, layout: TableLayout) -> "libraries.polars.DataFrame":
    """Read the columns of a Parquet file; entries of a list column are `name/0`, `name/1` and so on."""
    return apply_layout(expand_vectors(libraries.polars.read_parquet(path)), layout, path)


def read_npz(path: Path, layout: TableLayout) -> "libraries.polars.DataFrame":
    """Read the arrays of an NPZ file: vectors by name, columns of a matrix as `name/0`, `name/1` and so on.

    Arrays of words and of Python objects, such as names of joints, are left out: they are no signals, and reading
    objects would run code.
    """
    columns: dict[str, np.ndarray] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                try:
                    array = archive[name]
                except ValueError as error:
                    if "Object arrays" in str(error):
                        continue
                    raise
                if array.dtype.kind in NUMERIC_KINDS:
                    columns |= {name + suffix: values for suffix, values in _vectors(array)}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise FileError(f"{path.name} cannot be read as NPZ: {str(error).splitlines()[0].rstrip('.')}.") from None
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:8])
        raise FileError(f"The arrays of {path.name} differ in length: {shown}.")
    return apply_layout(libraries.polars.DataFrame(columns), layout, path)


def numeric_columns(table: "libraries.polars.DataFrame") -> "tuple[libraries.polars.DataFrame, list[str]]":
    """Numeric columns as float64 with NaN for missing values, and the names of the other columns."""
    kept, words = {}, []
    for name in table.columns:
        values = _as_numbers(table[name])
        if values is None:
            words.append(name)
        else:
            kept[name] = values.fill_null(np.nan)
    return libraries.polars.DataFrame(kept), words


def _as_numbers(values: "libraries.polars.Series") -> "libraries.polars.Series | None":
    pl = libraries.polars
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return values.cast(pl.Float64)
    if values.dtype == pl.Duration:
        return values.cast(pl.Duration("ns")).cast(pl.Int64).cast(pl.Float64) / 1e9
    if values.dtype.is_temporal() and values.dtype != pl.Time:
        stamps = values.cast(pl.Datetime("ns")).cast(pl.Int64)
        return (stamps - stamps.min()).cast(pl.Float64) / 1e9
    if values.dtype != pl.String:
        return None
    text = values.str.strip_chars().str.to_lowercase()
    text = text.replace(["true", "false"], ["1", "0"])
    if text.str.contains(DECIMAL_COMMA).all():
        text = text.str.replace(",", ".", literal=True)
    parsed = text.cast(pl.Float64, strict=False)
    said = text.is_not_null() & ~text.is_in(["", "nan", "null", "none", "na", "n/a", "-"])
    if parsed.count() > MIN_NUMERIC_FRACTION * len(text.filter(said)) or not said.any():
        return parsed
    dates = _dates(text.str.to_uppercase()) if _has_dates(text) else None
    return None if dates is None or dates.null_count() == len(dates) else _as_numbers(dates)


def _dates(text: "libraries.polars.Series") -> "libraries.polars.Series":
    """Dates of stamps; one offset of a time zone for all is left out."""
    offset = text.str.extract(OFFSET_OF_ZONE)
    text = text.str.replace(OFFSET_OF_ZONE, "") if offset.drop_nulls().n_unique() == 1 else text
    return text.str.strip_chars().str.to_datetime(strict=False, time_unit="ns")


def _has_dates(text: "libraries.polars.Series") -> bool:
    return bool(text.str.contains(r"^\d{4}-\d\d-\d\d[t ]\d\d:\d\d").any())


def pivot_joints(table: "libraries.polars.DataFrame", stamps: Sequence[str]) -> "libraries.polars.DataFrame":
    """The table with one row per stamp, if every joint has a row of its own: `position` becomes `position/elbow`.

    Args:
        table: The table.
        stamps: Names that the column of stamps may have, in lower case.
    """
    pl = libraries.polars
    key = next((c for c in table.columns if c.lower() in JOINT_COLUMNS and table[c].dtype == pl.String), None)
    time = next((c for c in table.columns if c.lower() in stamps), None)
    if key is None or time is None or not 1 < table[key].n_unique() <= min(MAX_JOINTS, table.height // 2):
        return table
    values = [c for c in table.columns if c not in (key, time)]
    parts = table.partition_by(key, as_dict=True, maintain_order=True)
    pivoted = table.select(time).unique(maintain_order=True)
    for (joint,), part in parts.items():
        own = part.unique(time, keep="last", maintain_order=True)
        own = own.select(time, *(pl.col(c).alias(f"{c}/{joint}") for c in values))
        pivoted = pivoted.join(own, on=time, how="left", maintain_order="left")
    return pivoted


def _echoed_columns(cells: Sequence[str]) -> tuple[str, ...]:
    """Columns of `ros2 topic echo --csv` of joint states, which writes no header; none for other tables.

    A row holds seconds, nanoseconds, the frame, the names of the joints, then as many positions, velocities, efforts.
    """
    if len(cells) < 5 or not (cells[0].isdigit() and cells[1].isdigit()) or _is_number(cells[2]):
        return ()
    names = list(itertools.takewhile(lambda cell: not _is_number(cell), cells[3:]))
    fields, rest = divmod(len(cells) - 3 - len(names), max(len(names), 1))
    if not names or rest or not 1 <= fields <= len(JOINT_STATE_FIELDS):
        return ()
    numbers = [f"{field}/{name.strip()}" for field in JOINT_STATE_FIELDS[:fields] for name in names]
    return ("sec", "nanosec", "frame", *(f"name/{k}" for k in range(len(names))), *numbers)


def apply_layout(table: "libraries.polars.DataFrame", layout: TableLayout, path: Path) -> "libraries.polars.DataFrame":
    """The table with the names of the layout, and with stamps at its rate."""
    if layout.columns:
        if len(layout.columns) != table.width:
            raise FileError(f"{path.name} has {table.width} columns, but the mapping names {len(layout.columns)}.")
        table = table.rename(dict(zip(table.columns, layout.columns, strict=True)))
    table = table.rename({name: name.strip(f" \t{COMMENT_MARKS}\ufeff") or name for name in table.columns})
    if layout.rate is not None and "time" not in table.columns:
        table = table.with_columns(time=libraries.polars.int_range(table.height, eager=True) / layout.rate)
    return table


def _vectors(array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Columns of an array, each with a suffix of its name; none for scalars and arrays of three dimensions or more."""
    if array.ndim == 1:
        return [("", array)]
    return [(f"/{i}", column) for i, column in enumerate(array.T)] if array.ndim == 2 else []


def _without_comments(text: bytes) -> bytes:
    """A table without the comments before it; the last of them stays if numbers follow, whose names it holds."""
    start, last = 0, None
    for line in io.BytesIO(text):
        words = line.decode("utf-8-sig", errors="replace").strip()
        if words and words[0] not in COMMENT_MARKS:
            if last is None or not any(map(_is_number, words.split(_separator(words)))):
                return text[start:]
            return text[last:].lstrip(COMMENT_MARKS.encode() + b" \t")
        last = start if words else last
        start += len(line)
    return text


def _first_line(text: bytes) -> str:
    lines = (line.decode("utf-8-sig").strip() for line in io.BytesIO(text))
    return next((line for line in lines if line), "")


def _separator(line: str) -> str:
    return next((separator for separator in SEPARATORS if separator in line), ",")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
