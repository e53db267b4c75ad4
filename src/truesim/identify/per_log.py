"""What is known of each log: values that differ from run to run, columns that stand for parameters, values to find.

The file is JSON: for each log (its file name, or `*` for all) a table from paths to a number, to `"free"`, or to
`"column:<name>"`:

    {"*":          {"actuators/servo.volts": "column:supply_volts"},
     "run_kp8.csv": {"actuators/servo.kp": 8.0, "bodies/payload.mass": "free"}}
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.typing import Float
from truesim.model.model import Model
from truesim.parameters import Parameter, Target
from truesim.parameters.parameter import read, target
from truesim.parameters.parameter_set import expand, parameter_at

COLUMN = "column:"
PerLog = Mapping[str, Mapping[str, float | str]]


class Known(NamedTuple):
    """What differs from log to log."""

    targets: tuple[Target, ...]
    """Numbers that are known for each log."""
    values: Float[np.ndarray, "logs targets"]
    inputs: tuple[Target, ...]
    """Numbers that follow a column."""
    columns: tuple[str, ...]
    """The column of each."""
    free: tuple[Parameter, ...]
    """Values to find, each for one log."""


def read_per_log(path: str | os.PathLike[str]) -> PerLog:
    """The table in a JSON file."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no per-log file {path}.")
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path.name} is not JSON: {error}.") from None
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise FileError(f'{path.name} must hold {{"<log>": {{"<path>": value}}}}.')
    return table


def resolve(model: Model, names: Sequence[str], table: PerLog) -> Known:
    """What the table says of the logs with these names.

    Args:
        model: The robot.
        names: Names of the logs, in order.
        table: From log names, or `*`, to paths and values.
    """
    rows = [_row(model, name, table) for name in names]
    inputs = _inputs(rows)
    places = dict.fromkeys(t for row in rows for t, value in row.items() if isinstance(value, float))
    values = [[row.get(t, float(read(model, t))) for t in places] for row in rows]
    free = [
        parameter_at(model, (t,), log=name)
        for name, row in zip(names, rows, strict=True)
        for t, value in row.items()
        if value == "free"
    ]
    for parameter in free:
        owners = {p.log for p in free if p.targets == parameter.targets}
        if owners != set(names):
            raise TruesimError(f"{parameter.targets[0]} is free for {parameter.log} but not for every log.")
    numbers = np.array(values, float).reshape(len(names), len(places))
    return Known(tuple(places), numbers, tuple(inputs), tuple(inputs.values()), tuple(free))


def _row(model: Model, name: str, table: PerLog) -> dict[Target, float | str]:
    """What is said of one log; its own entries win over those of `*`."""
    said = {**table.get("*", {}), **table.get(Path(name).stem, {}), **table.get(name, {})}
    row: dict[Target, float | str] = {}
    for text, value in said.items():
        for place in expand(model, text):
            row[place] = _value(name, text, value)
            if np.shape(read(model, place)):
                raise TruesimError(f"{text} has several numbers; name one of them, such as {target(model, text)}[0].")
    return row


def _value(log: str, path: str, value: object) -> float | str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if value == "free" or (isinstance(value, str) and value.startswith(COLUMN)):
        return value
    raise TruesimError(f'{path} of {log} is {value!r}; write a number, "free" or "{COLUMN}<name>".')


def _inputs(rows: Sequence[Mapping[Target, float | str]]) -> dict[Target, str]:
    """Column of every target that follows one; all logs must agree."""
    found: dict[Target, str] = {}
    for row in rows:
        for place, value in row.items():
            if isinstance(value, str) and value.startswith(COLUMN):
                column = value.removeprefix(COLUMN)
                if found.setdefault(place, column) != column:
                    raise TruesimError(f"{place} follows the column {found[place]} in one log and {column} in another.")
    return found
