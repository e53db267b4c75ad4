"""A journal: a file to which everything finished is appended, so that a killed run loses nothing of it.

The first line says which work it is of; each other line is one JSON record. A line that a kill cut short is dropped
when the journal is opened again.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from truesim.core.errors import FileError, TruesimError


class Journal:
    """A file of records that only grows."""

    def __init__(self, path: Path, schema: str, fingerprint: str):
        """Reads the file, or begins it.

        Args:
            path: The file.
            schema: What kind of work it is of, such as `truesim.search/1`.
            fingerprint: Of the work; a file that belongs to another is refused.
        """
        self.path = path
        self.records = _read(path, schema, fingerprint)
        self._file: BinaryIO | None = None
        """Open from the first record that is added."""
        if not path.exists() or not path.stat().st_size:
            self.append([{"schema": schema, "fingerprint": fingerprint}])
            self.close()

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Adds records; they are in the hands of the operating system when this returns."""
        if self._file is None:
            self._file = self.path.open("ab")
        text = "".join(json.dumps(record) + "\n" for record in records)
        self._file.write(text.encode())
        self._file.flush()

    def close(self) -> None:
        """Closes the file; another record opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def fingerprint(*parts: Any) -> str:
    """Equal for equal parts: arrays, numbers, text."""
    said = [np.asarray(p).tolist() if isinstance(p, np.ndarray) else repr(p) for p in parts]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _read(path: Path, schema: str, fingerprint: str) -> list[dict[str, Any]]:
    """The records of a file, which is cut after its last whole line."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("rb+") as file:
            file.truncate(len(whole))
    try:
        records = [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise FileError(f"{path} is not a journal: {error}.") from None
    if not records:
        return []
    if not isinstance(records[0], dict) or records[0].get("schema") != schema:
        raise FileError(f"{path} is not a journal that could be taken up: its first line is not of {schema}.")
    if not all(isinstance(record, dict) for record in records):
        raise FileError(f"{path} is damaged: a line of it is not a record; --force begins anew.")
    if records[0].get("fingerprint") != fingerprint:
        raise TruesimError(f"{path} belongs to other work; give another folder, or --force to begin anew.")
    return records[1:]
