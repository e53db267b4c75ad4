"""Logs of JSON records, one a line.

Numbers within a record become columns named by their path, such as `observation/state/0`. Lists of a record that names
its joints, as ROS's joint states do, become one column per joint: `position/elbow`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truesim.core import libraries
from truesim.core.errors import FileError
from truesim.files.logs.mapping import TableLayout
from truesim.files.logs.tables import apply_layout
from truesim.files.logs.text import read_text

NAME_FIELDS = ("name", "names", "joint_name", "joint_names")
"""Fields with the names of the joints of all lists of that length."""
EXAMPLE = '{"time": 0.01, "qpos/elbow": 0.2}'
MAX_LIST_ENTRIES = 64
"""Longer lists are images or scans, and are left out."""
MAX_NESTED = 16
"""Objects that are nested deeper are left out."""


def read_records(path: Path, layout: TableLayout) -> "libraries.polars.DataFrame":
    """Read the numbers and words of JSON records, one a line."""
    rows = [_record(line, number, path) for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip()]
    if not rows:
        raise FileError(f"{path.name} has no samples: the file is empty.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns, pl = {}, libraries.polars
    for name in names:
        values = [row.get(name) for row in rows]
        is_text = any(isinstance(value, str) for value in values)
        texts = [None if value is None else str(value) for value in values]
        columns[name] = pl.Series(texts, dtype=pl.String) if is_text else pl.Series(values, dtype=pl.Float64)
    return apply_layout(pl.DataFrame(columns), layout, path)


def _record(line: bytes, number: int, path: Path) -> dict[str, float | str]:
    """Numbers and words of one line, by path."""
    try:
        content = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"Line {number} of {path.name} is no JSON: {error}.") from None
    if not isinstance(content, dict):
        raise FileError(f"Line {number} of {path.name} is no record with names, such as {EXAMPLE}.")
    return dict(_flat(content, "", ()))


def _flat(content: Any, path: str, labels: tuple[str, ...]) -> Iterator[tuple[str, float | str]]:
    """Numbers and words of a part of a record, by path.

    Args:
        content: The part.
        path: Its path.
        labels: Names of the entries of lists of that length.
    """
    if isinstance(content, dict) and path.count("/") < MAX_NESTED:
        named = next((content[field] for field in NAME_FIELDS if _are_words(content.get(field))), labels)
        for name, value in content.items():
            yield from _flat(value, f"{path}/{name}" if path else name, tuple(named))
    elif isinstance(content, bool | int | float):
        yield path, float(content)
    elif isinstance(content, str):
        yield path, content
    elif isinstance(content, list) and len(content) <= MAX_LIST_ENTRIES and not _are_words(content):
        for label, value in zip(labels if len(labels) == len(content) else range(len(content)), content, strict=True):
            yield from _flat(value, f"{path}/{label}", ())


def _are_words(content: Any) -> bool:
    return isinstance(content, list) and len(content) > 0 and all(isinstance(word, str) for word in content)
