"""`truesim watch`: parameters of a robot while it runs, and sudden changes of them."""

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from truesim.cli import watch_options as given
from truesim.cli.arguments import FloatingBase, Mapping, Robot
from truesim.cli.fit_options import Bounds, Channel, Free, Prior, Tie
from truesim.cli.pairs import pairs
from truesim.core.errors import TruesimError
from truesim.data import read_mapping
from truesim.formats import load
from truesim.identify.build import Options
from truesim.identify.online import Change, Rejected, Sample, Update, Watcher, WatchFolder, Watching, samples

SHOWN = 20
"""Parameters that are shown at once."""
QUIET = 1.0
"""Without a terminal, a line is printed this often, in time of the stream [s]."""
KEPT = 30.0
"""The state to go on from is written this often [s]."""
COMPLAINTS = 5
"""Rejected lines that are printed; later ones are only counted."""


def watch(
    robot: Robot,
    stream: given.Stream,
    free: Free,
    changes: given.Changes = None,
    out: given.Out = None,
    first: given.First = 2.0,
    memory: given.Memory = 60.0,
    between_alarms: given.BetweenAlarms = 86400.0,
    patience: given.Patience = None,
    mapping: Mapping = None,
    tie: Tie = None,
    bounds: Bounds = None,
    prior: Prior = None,
    channel: Channel = None,
    floating_base: FloatingBase = False,
    force: given.Force = False,
) -> None:
    """Follow ROBOT while it runs: parameters with 95 % intervals as samples arrive, and sudden changes of them.

    Ctrl-C ends it; with --out, the same command goes on from there.
    """
    options = Options(
        ties=[t.split(",") for t in tie or []],
        bounds=pairs(bounds, "LOW:HIGH"),
        priors=pairs(prior, "MEAN:STD"),
        channels=channel or (),
    )
    watching = Watching(("*",) if changes is None else tuple(changes), first, memory, between_alarms)
    watcher = Watcher(load(robot, floating_base=floating_base), free, options=options, watching=watching)
    console = Console(highlight=False, soft_wrap=True)
    folder = None if out is None else WatchFolder(out, watcher, force=force)
    if folder is not None and folder.resumed:
        console.print(f"Going on from {watcher.time:.6g} s, as {escape(str(out))} holds it.")
    incoming = samples(stream, patience=patience, mapping=None if mapping is None else read_mapping(mapping))
    with _Screen(console, watcher) as screen:
        try:
            _follow(watcher, incoming, screen, folder)
        except KeyboardInterrupt:
            console.print("Interrupted." if folder is None else "Interrupted; the same command goes on.")
        finally:
            if folder is not None:
                folder.keep()
    if watcher.update is None:
        raise TruesimError(
            f"The stream ended after {watcher.samples} lines, {watcher.rejected} of them rejected, before anything "
            f"could be said: --first asks for {first:g} s."
        )
    screen.summary(out)


def _follow(
    watcher: Watcher, incoming: Iterable[Sample | Rejected], screen: "_Screen", folder: WatchFolder | None
) -> None:
    seen, kept = watcher.time, time.monotonic()
    for sample in incoming:
        if not isinstance(sample, Rejected) and sample.get("time", np.inf) <= seen:
            continue  # an earlier run has seen it
        found = watcher.feed(sample)
        if isinstance(found, Rejected):
            screen.complain(found)
        elif isinstance(found, Update):
            screen.show(found)
            if folder is not None:
                folder.add(found)
                if time.monotonic() - kept > KEPT:
                    kept = time.monotonic()
                    folder.keep()


class _Screen:
    """Shows estimates as they come: a table on a terminal, else a line now and then."""

    def __init__(self, console: Console, watcher: Watcher):
        self._console, self._watcher = console, watcher
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._last, self._complaints = -np.inf, 0

    def __enter__(self) -> "_Screen":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def complain(self, rejected: Rejected) -> None:
        """Says why a line was left out."""
        self._complaints += 1
        if self._complaints <= COMPLAINTS:
            self._console.print(f"[yellow]left out:[/] {escape(rejected.reason)}")
        if self._complaints == COMPLAINTS:
            self._console.print("Further ones are only counted.")

    def show(self, update: Update) -> None:
        """Shows what is known."""
        if update.change is not None:
            self._console.print(_sentence(update.change, update))
        if update.time - self._last < (0.25 if self._live is not None else QUIET):
            return
        self._last = update.time
        if self._live is not None:
            self._live.update(Group(Text(f"{update.time:.2f} s"), _table(update)))
        else:
            values = ", ".join(
                f"{k.path} {_numbers(k.value)} ± {_numbers(1.96 * k.std)} {k.unit}" for k in update.parameters[:4]
            )
            self._console.print(f"{update.time:.2f} s: {escape(values)}")

    def summary(self, out: Path | None) -> None:
        """What is known at the end."""
        update = self._watcher.update
        assert update is not None, "a summary needs an update"
        self._console.print(_table(update, shown=len(update.parameters)))
        self._console.print(f"Until {update.time:.6g} s; {self._watcher.rejected} lines left out.")
        if out is not None:
            self._console.print(f"Result in {escape(str(out))}.")


def _sentence(change: Change, update: Update) -> str:
    before = {k.path: k for k in change.before}
    parts = [
        f"{k.path} {_numbers(before[k.path].value)} → {_numbers(k.value)} {k.unit}"
        for k in update.parameters
        if k.path in change.paths
    ]
    return f"[bold red]Change[/] at {change.time:.2f} s (known at {change.detected:.2f} s): {escape('; '.join(parts))}"


def _table(update: Update, shown: int = SHOWN) -> Table:
    table = Table("parameter", "value", "95 % interval", "unit", box=None)
    for k in update.parameters[:shown]:
        interval = f"{_numbers(k.low)} … {_numbers(k.high)}"
        table.add_row(escape(k.path), _numbers(k.value), interval, k.unit)
    return table


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{x:.5g}" for x in np.ravel(values))
