"""Checkpoints: where a long search has come to, now and then on disk, so that a killed one goes on from there."""

import time
import zipfile
from pathlib import Path

import numpy as np

from truesim.core.typing import Float
from truesim.identify.levenberg_marquardt import Progress

FILE, PART = "checkpoint.npz", ".part.checkpoint.npz"
EVERY = 20.0
"""Time between checkpoints [s]."""


class Checkpoint:
    """Keeps the coordinates of a search in a folder; to be called after every iteration."""

    def __init__(self, folder: Path, fingerprint: str, every: float = EVERY):
        """Prepares to write.

        Args:
            folder: Where to write.
            fingerprint: Tells requests apart: only the same one goes on from here.
            every: Time between writes [s].
        """
        self._path, self._fingerprint, self._every = folder / FILE, fingerprint, every
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Writes the coordinates if it is time; the file appears whole or not at all."""
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(PART)
        np.savez(part, allow_pickle=False, theta=progress.theta, fingerprint=np.array(self._fingerprint))
        part.replace(self._path)

    def read(self) -> Float[np.ndarray, "size"] | None:
        """The coordinates that the same request had come to, if there are any."""
        try:
            with np.load(self._path, allow_pickle=False) as file:
                return np.asarray(file["theta"]) if str(file["fingerprint"]) == self._fingerprint else None
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None

    def remove(self) -> None:
        """Forgets them: the search has ended."""
        self._path.unlink(missing_ok=True)
