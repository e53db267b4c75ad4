"""The stage of the logs: files, the mapping of their columns, and what they hold."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from truesim.core.errors import TruesimError
from truesim.core.grouped import grouped
from truesim.files.logs import Log
from truesim.files.logs.guessed import GuessedMapping
from truesim.studio.session import Session
from truesim.studio.words import breakable, plain


class DataStage:
    """Controls that load logs and correct the mapping of their columns."""

    def __init__(
        self,
        server: Any,
        session: Session,
        tell: Callable[[str], None],
        loaded: Callable[[Sequence[Log]], None],
        folder: Callable[[], Path],
    ):
        """Make the controls; `connect` makes them act.

        Args:
            server: Server of the page.
            session: State of the studio.
            tell: Shows a sentence above the stages.
            loaded: Called with logs that were loaded.
            folder: Gives the folder for a mapping file.
        """
        self._session, self._tell, self._loaded, self._folder = session, tell, loaded, folder
        self._written: Path | None = None
        gui = server.gui
        self.paths = gui.add_text(
            "Logs", "", multiline=True, hint="Files, folders or LeRobot data sets on this machine, one a line"
        )
        self.mapping = gui.add_text("Mapping", "", hint="File that renames and scales columns; empty for none")
        self._load = gui.add_button("Load logs")
        self._guess = gui.add_button(
            "Guess the mapping", hint="Which column is which signal, in which unit", color="gray"
        )
        self._upload = gui.add_upload_button("Upload a log", mime_type="*/*", color="gray")
        self.holdout = gui.add_number("Held out", 0, min=0, step=1, hint="Logs at the end that are only predicted")
        self._words = gui.add_markdown("")
        self._guessed = gui.add_folder("Guessed mapping", visible=False)
        with self._guessed:
            self._guessed_words = gui.add_markdown("")
            self._calibration = gui.add_text(
                "Calibration", "", hint="LeRobot's calibration file, for positions in percent"
            )
            self._again = gui.add_button("Guess again", color="gray")
            self._text = gui.add_text("Mapping file", "", multiline=True)
            self._use = gui.add_button("Use this mapping")

    def connect(self, guard: Callable[[Callable[[], None]], None], keep: Callable[[Any], Path]) -> None:
        """Let the controls act.

        Args:
            guard: Runs an action, and shows its error on the page.
            keep: Writes an uploaded file, and gives its path.
        """
        self._load.on_click(lambda _: guard(self.load))
        self._guess.on_click(lambda _: guard(self.guess))
        self._again.on_click(lambda _: guard(self.guess))
        self._use.on_click(lambda _: guard(self.use_mapping))
        self._upload.on_upload(lambda _: guard(lambda: self.load([keep(self._upload.value)])))

    def forget(self) -> None:
        """Forget the logs, because another robot was loaded."""
        self.paths.value, self.mapping.value, self._words.content = "", "", ""
        self._guessed.visible = False

    def load(self, files: Sequence[Path] | None = None) -> None:
        """Load logs; for those that cannot be read without a mapping, one is guessed."""
        given, mapping = list(files or self._given()), self.mapping.value.strip()
        self.paths.value = "\n".join(map(str, given))
        try:
            logs = self._session.load_logs(given, Path(mapping).expanduser() if mapping else None)
        except TruesimError as error:
            if mapping or not self._can_guess():
                raise
            self._tell(f"{plain(str(error))} **A mapping was guessed: check it below, then use it.**")
            return
        rows = [f"| {log.name} | {len(log.time)} | {log.time[-1] - log.time[0]:.3g} s |" for log in logs]
        columns = ", ".join(f"`{column}`" for column in logs[0].columns if column not in logs[0].derived)
        table = "| log | samples | length |\n|---|---|---|\n" + "\n".join(rows)
        self._words.content = f"{table}\n\nColumns of this robot: {columns}"
        self._guessed.visible = False
        self._loaded(logs)
        self._tell(f"{len(logs)} {'log is' if len(logs) == 1 else 'logs are'} loaded. **Next: Parameters.**")

    def guess(self) -> None:
        """Guess which column is which signal, and offer the mapping for correction."""
        calibration = self._calibration.value.strip()
        found = self._session.guess(self._given(), Path(calibration).expanduser() if calibration else None)
        self._guessed_words.content = mapping_table(found)
        self._text.value, self._guessed.visible = found.text, True
        self._tell(f"A mapping was guessed from {found.source}: **check it below, then use it.**")

    def use_mapping(self) -> None:
        """Write the mapping file, and load the logs with it."""
        path = self._mapping_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text.value, encoding="utf-8")
        self.mapping.value = str(path)
        self.load()

    def _given(self) -> list[Path]:
        return [Path(line.strip()).expanduser() for line in self.paths.value.splitlines() if line.strip()]

    def _can_guess(self) -> bool:
        """Guess a mapping; False if no column belongs to the robot."""
        try:
            self.guess()
        except TruesimError:
            return False
        return True

    def _mapping_file(self) -> Path:
        """File for the mapping; another one than those that were there before."""
        if self._written is None:
            names = (f"mapping{number}.toml" for number in ("", *range(2, 1000)))
            self._written = next(path for path in map(self._folder().joinpath, names) if not path.exists())
        return self._written


def mapping_table(found: GuessedMapping) -> str:
    """Lines of a guessed mapping as a Markdown table, and what is doubtful."""
    rows = []
    for guess in found.guesses:
        unit = found.unit(guess) or ("s" if guess.target == "time" else "")
        how = " ".join([unit, "times -1" if guess.sign < 0 else ""]).strip()
        rows.append(f"| `{breakable(guess.target)}` | `{breakable(guess.column)}` | {how} |")
    doubts = grouped((guess.target, doubt) for guess in found.guesses for doubt in guess.doubts)
    doubts += [f"no column was found for {', '.join(found.missing)}"] if found.missing else []
    table = "| signal | column | unit |\n|---|---|---|\n" + "\n".join(rows)
    return table + "\n\n" + "\n".join(f"- ⚠ {doubt}" for doubt in doubts)
