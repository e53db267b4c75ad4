"""Checkpoints: coordinates of a running solve on disk, from which an interrupted solve continues."""

import time
import zipfile
from pathlib import Path

import numpy as np

from truesim.core.typing import Float

FILE, PART = "checkpoint.npz", ".part.checkpoint.npz"
EVERY = 20.0
"""Time between checkpoints [s]."""


class Checkpoint:
    """Writes the coordinates of a solve to a folder; called after every iteration."""

    def __init__(self, folder: Path, fingerprint: str, every: float | None = None):
        """Prepare to write.

        Args:
            folder: Folder of the checkpoint.
            fingerprint: Hash of the request: only the same request continues from the checkpoint.
            every: Time between writes [s]; `EVERY` by default.
        """
        self._path, self._fingerprint, self._every = folder / FILE, fingerprint, EVERY if every is None else every
        self._last = time.monotonic()

    def __call__(self, theta: Float[np.ndarray, " size"]) -> None:
        """Write the coordinates if the interval has passed; the write is atomic."""
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(PART)
        np.savez(part, allow_pickle=False, theta=theta, fingerprint=np.array(self._fingerprint))
        part.replace(self._path)

    def read(self) -> Float[np.ndarray, " size"] | None:
        """Coordinates of the last checkpoint of the same request, if there is one."""
        try:
            with np.load(self._path, allow_pickle=False) as file:
                return np.asarray(file["theta"]) if str(file["fingerprint"]) == self._fingerprint else None
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None

    def remove(self) -> None:
        """Delete the checkpoint."""
        self._path.unlink(missing_ok=True)
