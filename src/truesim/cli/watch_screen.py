"""Screen of `truesim watch`: estimates and changes as they arrive, on a terminal or as lines."""

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code, Status
from truesim.identification.online import ParameterChange, Rejected, Sample, Update, Watcher, WatchFolder

MAX_WATCHED_PARAMETERS = 20
"""Parameters shown at once; a larger value needs a taller terminal."""
STREAM_SECONDS_BETWEEN_LINES = 1.0
"""Time of the stream between lines where the output is not a terminal [s]; larger prints fewer."""
SECONDS_BETWEEN_SAVES = 30.0
"""Time between saves of the filter state [s]; larger loses more when the process is killed."""
MAX_PRINTED_REJECTIONS = 5
"""Rejected lines that are printed; later ones are only counted."""


MAX_PRINTED_MISFITS = 4
"""Signs of a misfit that are printed."""


def follow(
    watcher: Watcher, incoming: Iterable[Sample | Rejected], screen: "Screen", folder: WatchFolder | None
) -> None:
    """Feed samples to a watcher until the stream ends, show updates, and save the state from time to time.

    Args:
        watcher: The estimator.
        incoming: Samples; those before the watcher's time are skipped.
        screen: Where updates are shown.
        folder: Where updates and the state are saved, if anywhere.
    """
    seen, kept = watcher.time, time.monotonic()
    for sample in incoming:
        if not isinstance(sample, Rejected) and sample.get("time", np.inf) <= seen:
            continue  # an earlier run used it
        found = watcher.feed(sample)
        if isinstance(found, Rejected):
            screen.reject(found)
        elif isinstance(found, Update):
            screen.show(found)
            if folder is not None:
                folder.add(found)
                if time.monotonic() - kept > SECONDS_BETWEEN_SAVES:
                    kept = time.monotonic()
                    folder.keep()


class Screen:
    """Table of estimates on a terminal, or a line every second of the stream elsewhere."""

    def __init__(self, console: Console, watcher: Watcher):
        self._console, self._watcher = console, watcher
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._last, self._rejections = -np.inf, 0

    def __enter__(self) -> "Screen":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def reject(self, rejected: Rejected) -> None:
        """Print why a line was rejected."""
        self._rejections += 1
        if self._rejections <= MAX_PRINTED_REJECTIONS:
            self._console.print(f"[yellow]rejected:[/] {escape(rejected.reason)}")
        if self._rejections == MAX_PRINTED_REJECTIONS:
            self._console.print("Further rejected lines are only counted.")

    def show(self, update: Update) -> None:
        """Show an update; before the first, whether the model fits."""
        if self._last == -np.inf:
            self._warn()
        if update.change is not None:
            self._console.print(_sentence(update.change, update))
        if update.time - self._last < (0.25 if self._live is not None else STREAM_SECONDS_BETWEEN_LINES):
            return
        self._last = update.time
        if self._live is not None:
            self._live.update(Group(Text(f"{update.time:.2f} s"), _table(update)))
        else:
            values = ", ".join(
                f"{k.path} {_numbers(k.value)} ± {_numbers(1.96 * k.std)} {k.unit}" for k in update.parameters[:4]
            )
            self._console.print(f"{update.time:.2f} s: {escape(values)}")

    def _warn(self) -> None:
        """Print signs of a model that does not fit, and what to free."""
        found = self._watcher.misfit
        if not found:
            return
        freed = [d.subjects[0] for d in found if d.code in (Code.FIXED_PARAMETER, Code.CONTRADICTED)]
        if self._watcher.status is not Status.CONVERGED:
            self._console.print(f"Status: [bold]{self._watcher.status}[/].")
        for diagnostic in found[:MAX_PRINTED_MISFITS]:
            self._console.print(f"  {escape(explain(diagnostic))}")
        if freed:
            patterns = " ".join(f"'{pattern}'" for pattern in (*self._watcher.free, *freed))
            self._console.print(f"  Next: the same command with --free {escape(patterns)}.")

    def summary(self, out: Path | None) -> None:
        """Print the last estimates."""
        update = self._watcher.update
        assert update is not None, "a summary needs an update"
        self._console.print(_table(update, shown=len(update.parameters)))
        self._console.print(f"Until {update.time:.6g} s; {self._watcher.rejected} lines rejected.")
        self._warn()
        if out is not None:
            self._console.print(f"Result in {escape(str(out))}.")


def _sentence(change: ParameterChange, update: Update) -> str:
    before = {k.path: k for k in change.before}
    parts = [
        f"{k.path} {_numbers(before[k.path].value)} → {_numbers(k.value)} {k.unit}"
        for k in update.parameters
        if k.path in change.paths
    ]
    return (
        f"[bold red]Change[/] at {change.time:.2f} s (detected at {change.detected:.2f} s): {escape('; '.join(parts))}"
    )


def _table(update: Update, shown: int = MAX_WATCHED_PARAMETERS) -> Table:
    table = Table("parameter", "value", "95 % interval", "unit", box=None)
    for k in update.parameters[:shown]:
        interval = f"{_numbers(k.low)} … {_numbers(k.high)}"
        table.add_row(escape(k.path), _numbers(k.value), interval, k.unit)
    return table


def _numbers(values: np.ndarray | np.floating) -> str:
    return ", ".join(f"{x:.5g}" for x in np.ravel(values))
