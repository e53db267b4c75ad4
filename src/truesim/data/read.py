"""Logs in and out of files."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from truesim.core.errors import FileError
from truesim.core.typing import Float
from truesim.data.log import Log


def read_log(path: str | os.PathLike[str]) -> Log:
    """The log in a CSV or Parquet file, which must have a column `time`."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no log file {path}.")
    try:
        table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as error:
        raise FileError(f"{path.name} cannot be read as a table: {str(error).splitlines()[0]}.") from None
    if "time" not in table.columns:
        raise FileError(f"{path.name} has no column 'time'; its columns are {', '.join(table.columns[:8])}.")
    if table.is_empty():
        raise FileError(f"{path.name} has no samples.")
    text = [name for name, kind in table.schema.items() if not kind.is_numeric()]
    if "time" in text:
        raise FileError(f"The column 'time' of {path.name} does not hold numbers.")
    columns = {name: table[name].cast(pl.Float64).to_numpy() for name in table.columns if name not in text}
    time = columns.pop("time")
    if not np.all(np.isfinite(time)) or np.any(np.diff(time) < 0):
        row = int(np.argmax(~np.isfinite(time) | (np.diff(time, prepend=-np.inf) < 0)))
        raise FileError(f"Time goes backwards or is missing in row {row + 2} of {path.name}.")
    return Log(time, columns, path.name)


def write_log(path: str | os.PathLike[str], columns: Mapping[str, Float[np.ndarray, "samples"]]) -> None:
    """Writes columns as CSV, numbers in full precision; the file appears whole or not at all."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    pl.DataFrame({name: np.asarray(values) for name, values in columns.items()}).write_csv(part)
    part.replace(path)
