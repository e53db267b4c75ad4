"""Errors for files that do not exist, with the nearest file that does."""

import difflib
from pathlib import Path

from truesim.core.errors import FileError

MAX_LISTED_FILES = 8
"""File names listed in an error; a larger value makes longer sentences."""


def missing_file(kind: str, path: Path, advice: str = "") -> FileError:
    """Error for a file that does not exist: names it and the nearest file in its folder.

    Args:
        kind: Contents of the file ("log", "robot file").
        path: File that was asked for.
        advice: End of the sentence if no file has a similar name.
    """
    folder = path.parent
    if not folder.is_dir():
        return FileError(f"There is no {kind} {path}: the folder {folder} does not exist.")
    near = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1, cutoff=0.6)
    hint = f"; did you mean {folder / near[0]}?" if near else f"; {advice}." if advice else "."
    return FileError(f"There is no {kind} {path}{hint}")


def list_names(names: list[str]) -> str:
    """Comma-separated names, shortened to the first few."""
    shown = ", ".join(names[:MAX_LISTED_FILES])
    return f"{shown} … ({len(names)} in all)" if len(names) > MAX_LISTED_FILES else shown
