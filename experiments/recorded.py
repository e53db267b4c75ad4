"""Folders of recordings, and printing of tables."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def folder(name: str) -> Path:
    """Folder of recordings in `$TRUESIM_DATA`, or beside the repository; exits if there is none."""
    path = Path(os.environ.get("TRUESIM_DATA", BESIDE)) / name
    if not path.is_dir():
        sys.exit(f"Skipped: the recordings are not at {path}; set TRUESIM_DATA to the folder that holds {name}.")
    return path


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    cells = [list(map(_text, row)) for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _text(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
