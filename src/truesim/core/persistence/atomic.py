"""Atomic writes: a file appears whole or not at all."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place, then move it there.

    Args:
        path: The file.
        write: Writes the content to the path that it is given.
    """
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Write a document as JSON, atomically."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as a compressed NPZ file, atomically; no pickle."""
    write_atomically(path, lambda part: np.savez_compressed(part, allow_pickle=False, **dict(arrays)))
