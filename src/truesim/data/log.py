"""A log: named columns over time."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from truesim.core.errors import FileError, unknown_name
from truesim.core.typing import Float


@dataclasses.dataclass(frozen=True)
class Log:
    """Columns of one recording; `time` [s] increases."""

    time: Float[np.ndarray, "samples"]
    columns: Mapping[str, Float[np.ndarray, "samples"]]
    name: str = "log"

    def column(self, name: str) -> Float[np.ndarray, "samples"]:
        """One column; an error with the nearest match if there is none."""
        if name not in self.columns:
            raise unknown_name(f"column in {self.name}", name, self.columns)
        return self.columns[name]

    def held(self, names: Sequence[str], time: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n columns"]:
        """Columns at other times [s], each value held until the next sample; the first one also before its time."""
        index = np.clip(np.searchsorted(self.time, time + 1e-9, side="right") - 1, 0, None)
        return np.stack([self.column(name)[index] for name in names], axis=1) if names else np.zeros((len(time), 0))


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
