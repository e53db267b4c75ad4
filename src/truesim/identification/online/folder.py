"""Output folder of a watched stream.

- `estimates.csv`: time, and value, lower and upper end of the 95 % interval of every parameter.
- `changes.jsonl`: one line for each change.
- the robot file, under its own name, with the last estimates.
- `state.npz`: state from which the same command continues.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.files.robots import save
from truesim.identification.online.update import ParameterChange, TrackedParameter, Update
from truesim.identification.online.watcher import WATCH_SCHEMA, Watcher


class WatchFolder:
    """Writer of a watcher's estimates and changes; rows are appended to the files."""

    def __init__(self, folder: str | os.PathLike[str], watcher: Watcher, *, every: float = 0.0, force: bool = False):
        """Open the folder, and restore the state of an earlier run of the same watcher.

        Args:
            folder: Folder to write to.
            watcher: The watcher; its state is saved.
            every: Shortest time between rows of estimates [s].
            force: Whether to replace existing files.
        """
        self.folder, self._watcher, self._every = Path(folder), watcher, every
        self._written = -np.inf
        state = self.folder / "state.npz"
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"{self.folder} is a file; give another folder.")
        self.resumed = state.is_file() and not force
        if self.resumed:
            watcher.restore(_read_state(state))
        elif self.folder.is_dir() and any(self.folder.iterdir()) and not force:
            raise TruesimError(f"{self.folder} is not empty and holds no watched stream; give another, or --force.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._fresh = not self.resumed

    def add(self, update: Update) -> None:
        """Append an update, and its change if it has one."""
        if update.change is not None:
            self._append("changes.jsonl", json.dumps(describe_change(update.change, update)))
        if update.time - self._written < self._every and update.change is None:
            return
        self._written = update.time
        known = update.parameters
        if self._fresh:
            (self.folder / "estimates.csv").write_text(",".join(["time", *_header(known)]) + "\n", encoding="utf-8")
            self._fresh = False
        numbers = [update.time, *(float(x) for k in known for n in _numbers(k) for x in n)]
        self._append("estimates.csv", ",".join(f"{x:.9g}" for x in numbers))

    def keep(self) -> None:
        """Write the state of the watcher, and the robot with the current estimates."""
        part = self.folder / ".state.part.npz"
        np.savez(part, allow_pickle=False, **self._watcher.state())
        part.replace(self.folder / "state.npz")
        update = self._watcher.update
        if update is not None:
            source = self._watcher.model.source
            name = "robot.xml" if source is None or source.path is None else source.path.name
            save(update.model, self.folder / name)

    def _append(self, name: str, line: str) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def describe_change(change: ParameterChange, update: Update) -> dict[str, Any]:
    """A change as plain numbers: values before and after of each parameter that may change."""
    after = {k.path: k for k in update.parameters}
    before = {k.path: k for k in change.before}
    return {
        "schema": WATCH_SCHEMA,
        "time": change.time,
        "detected": change.detected,
        "parameters": {
            path: {
                "unit": after[path].unit,
                "before": np.asarray(before[path].value).tolist(),
                "after": np.asarray(after[path].value).tolist(),
                "after_std": np.asarray(after[path].std).tolist(),
            }
            for path in change.paths
        },
    }


def _header(known: tuple[TrackedParameter, ...]) -> list[str]:
    names = [k.path if k.value.size == 1 else f"{k.path}[{i}]" for k in known for i in range(k.value.size)]
    return [f"{name}{suffix}" for name in names for suffix in ("", ":low", ":high")]


def _numbers(known: TrackedParameter) -> list[tuple[float, float, float]]:
    return list(zip(np.ravel(known.value), np.ravel(known.low), np.ravel(known.high), strict=True))


def _read_state(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"{path} cannot be read: {str(error).splitlines()[0]}; --force starts anew.") from None
