"""Several logs at once: a glob pattern, a folder or a list of files."""

import collections
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from truesim.core.errors import FileError
from truesim.core.missing import list_names, missing_file
from truesim.files.logs.lerobot import is_lerobot, select_episodes
from truesim.files.logs.log import Log
from truesim.files.logs.mapping import ColumnMap, column_map, read_mapping
from truesim.files.logs.read import LOG_READERS, log_ending, read_episodes

GLOB_CHARACTERS = "*?["
PathLike = str | os.PathLike[str]


def read_logs(
    paths: PathLike | Sequence[PathLike],
    *,
    mapping: ColumnMap | PathLike | Mapping[str, object] | None = None,
) -> list[Log]:
    """Logs of several files, sorted by path.

    Args:
        paths: A glob pattern such as `run*.csv`, a folder (all log files in it), one file, or a list of these. The
            result is in sorted order for a pattern or a folder, and in the given order for a list.
        mapping: How the files' own columns are to be called, as in `read_log`.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [file for path in several for file in log_files(path)]
    if not files:
        raise FileError("The list of logs is empty; give files, a folder or a pattern such as 'run*.csv'.")
    if mapping is not None and not isinstance(mapping, ColumnMap):
        mapping = column_map(mapping) if isinstance(mapping, Mapping) else read_mapping(mapping)
    return distinguish([log for file in files for log in read_episodes(file, mapping=mapping)])


def distinguish(logs: Sequence[Log]) -> list[Log]:
    """The logs, those of files with the same name in different folders with as many folders as tell them apart."""
    counts = collections.Counter(log.name for log in logs)
    out = []
    for log in logs:
        same = [other.source.absolute().parts[:-1] for other in logs if other.name == log.name and other.source]
        if log.source is None or counts[log.name] == 1 or len(set(same)) < counts[log.name]:
            out.append(log)
            continue
        own, depth = log.source.absolute().parts[:-1], 1
        while sum(folders[-depth:] == own[-depth:] for folders in same) > 1:
            depth += 1
        out.append(dataclasses.replace(log, name="/".join([*own[-depth:], log.name])))
    return out


def log_files(path: PathLike) -> list[Path]:
    """Log files that a pattern, a folder or a path stands for, sorted; an error if there are none."""
    path = Path(path)
    if path.is_dir() and not (path / "metadata.yaml").is_file() and not is_lerobot(path):  # else a bag or a data set
        found = sorted(file for file in path.iterdir() if log_ending(file) in LOG_READERS)
        if not found:
            raise FileError(f"No file in {path} is a log ({', '.join(LOG_READERS)}); {_content(path)}.")
        return found
    if select_episodes(path)[0].exists():
        return [path]
    if any(character in str(path) for character in GLOB_CHARACTERS):
        return _matches(path)
    raise missing_file("log file", path)


def _matches(pattern: Path) -> list[Path]:
    fixed = next((i for i, part in enumerate(pattern.parts) if any(c in part for c in GLOB_CHARACTERS)), 0)
    folder = Path(*pattern.parts[:fixed])
    found = sorted(folder.glob(str(Path(*pattern.parts[fixed:])))) if folder.is_dir() else []
    if not found:
        raise FileError(f"No file matches {str(pattern)!r}; {_content(folder)}.")
    return found


def _content(folder: Path) -> str:
    """The content of a folder, as the end of a sentence."""
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    names = sorted(entry.name for entry in folder.iterdir())
    where = "this folder" if folder == Path() else str(folder)
    return f"{where} contains {list_names(names)}" if names else f"{where} is empty"
