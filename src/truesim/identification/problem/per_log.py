"""Values that differ from log to log: known numbers, columns that give parameters, and free parameters.

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
from truesim.core.typing import Float, Int
from truesim.physics.model.model import Model
from truesim.physics.model.targets import Target, expand, read, target
from truesim.physics.parameters import Parameter, ParameterSet
from truesim.physics.parameters.parameter_set import parameter_at

COLUMN = "column:"
"""Prefix of a value that names a column."""
PerLog = Mapping[str, Mapping[str, float | int | str]]
"""From log names, or `*`, to paths and values."""


class PerLogValues(NamedTuple):
    """Model parameters that differ from log to log."""

    targets: tuple[Target, ...]
    """Model parameters with a known value for each log."""
    values: Float[np.ndarray, "logs targets"]
    inputs: tuple[Target, ...]
    """Model parameters that follow a column."""
    columns: tuple[str, ...]
    """Column of each."""
    free: tuple[Parameter, ...]
    """Free parameters, each for one log."""


def read_per_log(path: str | os.PathLike[str]) -> PerLog:
    """Read a table of per-log values from a JSON file."""
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


def resolve(model: Model, names: Sequence[str], table: PerLog) -> PerLogValues:
    """Resolve a table of per-log values for logs with these names.

    Args:
        model: The model of the robot.
        names: Names of the logs, in order.
        table: From log names, or `*`, to paths and values.
    """
    rows = [_row(model, name, table) for name in names]
    inputs = _inputs(rows)
    targets = dict.fromkeys(t for row in rows for t, value in row.items() if isinstance(value, float))
    values = [[row.get(t, float(read(model, t))) for t in targets] for row in rows]
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
    numbers = np.array(values, float).reshape(len(names), len(targets))
    return PerLogValues(tuple(targets), numbers, tuple(inputs), tuple(inputs.values()), tuple(free))


def _row(model: Model, name: str, table: PerLog) -> dict[Target, float | str]:
    """Entries of one log, which take precedence over those of `*`."""
    entries = {**table.get("*", {}), **table.get(Path(name).stem, {}), **table.get(name, {})}
    row: dict[Target, float | str] = {}
    for text, value in entries.items():
        for found in expand(model, text):
            row[found] = _value(name, text, value)
            if np.shape(read(model, found)):
                raise TruesimError(f"{text} has several elements; give one of them, such as {target(model, text)}[0].")
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
        for t, value in row.items():
            if isinstance(value, str) and value.startswith(COLUMN):
                column = value.removeprefix(COLUMN)
                if found.setdefault(t, column) != column:
                    raise TruesimError(f"{t} follows the column {found[t]} in one log and {column} in another.")
    return found


def slots_of(parameters: ParameterSet) -> ParameterSet:
    """Parameters of one log: of those that differ from log to log, the first of each."""
    slots: dict[tuple[Target, ...], Parameter] = {}
    for parameter in parameters:
        slots.setdefault(parameter.targets, parameter)
    return ParameterSet(tuple(slots.values()))


def slot_columns(parameters: ParameterSet, log: str) -> Int[np.ndarray, " slots"]:
    """Index of each coordinate of one log's parameters among all coordinates.

    Args:
        parameters: Parameters of all logs.
        log: Name of the log.
    """
    where = list(zip(parameters, parameters.slices(), strict=True))
    own: list[int] = []
    for slot in slots_of(parameters):
        matches = [s for p, s in where if p.targets == slot.targets and p.log in (None, log)]
        own.extend(range(matches[0].start, matches[0].stop))
    return np.array(own, int)
