"""Episodes of a robot on disk: one log each, and a journal of their returns.

Rows are handed to the operating system as they come. After a crash the rows of the unfinished episode become a log
like the others, and its time counts.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from truesim.core.persistence.journal import Journal, fingerprint

JOURNAL_FILE, REAL_SCHEMA = "episodes.jsonl", "truesim.real/1"
INTERRUPTED = "interrupted before its end"
"""Reason of an episode that a crash ended."""


class RealEpisode(NamedTuple):
    """An episode that was played on the real system."""

    value: float
    """Return; NaN if a crash ended the episode."""
    steps: int
    seconds: float
    """Duration [s]."""
    missed: int
    """Missed deadlines."""
    stopped: str | None
    """Why the episode was stopped: a safety limit, the budget, an interruption; None if it came to its end."""
    unsafe: bool = False
    """True if a safety limit ended it."""
    label: str = ""
    """Name of what was played, such as a policy."""
    log: str | None = None
    """File name of its log in the folder."""


class EpisodeFiles:
    """Journal and logs of episodes in a folder; without a folder, in memory only."""

    def __init__(self, folder: Path | None, period: float):
        """Open a folder, and take up the episodes in it.

        Args:
            folder: The folder; it is made if it does not exist.
            period: Time between actions [s]; a folder of another period is refused.
        """
        self.folder, self.episodes = folder, list[RealEpisode]()
        self._stream: TextIO | None = None
        self._columns: tuple[str, ...] = ()
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(folder / JOURNAL_FILE, REAL_SCHEMA, fingerprint("real", float(period)))
        self.episodes = [_from_record(record) for record in self._journal.records]
        self._recover(period)

    def begin(self, columns: tuple[str, ...]) -> None:
        """Begin the log of an episode.

        Args:
            columns: Names of the columns after `time`.
        """
        self._columns = columns
        if self.folder is not None:
            self._stream = self._part().open("w", encoding="utf-8")
            self._stream.write(",".join(("time", *columns)) + "\n")

    def row(self, time: float, values: Mapping[str, float]) -> None:
        """Append a row; a missing value is an empty cell.

        Args:
            time: Since the start of the episode [s].
            values: Values by column.
        """
        if self._stream is None:
            return
        cells = [repr(float(values[name])) if name in values else "" for name in self._columns]
        self._stream.write(",".join((repr(float(time)), *cells)) + "\n")
        self._stream.flush()

    def finish(self, episode: RealEpisode) -> RealEpisode:
        """End an episode: its log gets its name, and the journal a record."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            episode = episode._replace(log=self._name(len(self.episodes)))
            self._part().replace(self._part().with_name(str(episode.log)))
        self.episodes.append(episode)
        if self.folder is not None:
            self._journal.append([{**episode._asdict(), "value": _number(episode.value)}])
        return episode

    def close(self) -> None:
        """Close the files."""
        if self.folder is not None:
            self._journal.close()

    def _recover(self, period: float) -> None:
        """Take up the log of an episode that a crash ended."""
        part, named = self._part(), self._part().with_name(self._name(len(self.episodes)))
        if named.is_file():  # named, but not yet in the journal
            named.replace(part)
        if not part.is_file():
            return
        content = part.read_text(encoding="utf-8")
        lines = content[: content.rfind("\n") + 1].splitlines()
        if len(lines) < 2:
            part.unlink()
            return
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        seconds = float(lines[-1].split(",")[0]) + period
        self._stream = part.open("a", encoding="utf-8")
        self.finish(RealEpisode(math.nan, len(lines) - 1, seconds, 0, INTERRUPTED))

    def _part(self) -> Path:
        assert self.folder is not None, "only a folder has files"
        return self.folder / ".episode.part.csv"

    def _name(self, index: int) -> str:
        return f"episode_{index:04d}.csv"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _from_record(record: dict) -> RealEpisode:
    value = record["value"]
    return RealEpisode(**{**record, "value": math.nan if value is None else value})
