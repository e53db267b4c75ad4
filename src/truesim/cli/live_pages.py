"""Live pages of the command line: the address is printed, and a browser opened where there is a terminal."""

import contextlib
import sys
import webbrowser
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from truesim.identification.reading import Observer
from truesim.studio.live import LiveFit, LivePage, csv_snapshot


@contextlib.contextmanager
def follow_fit(name: str, console: Console) -> Iterator[Observer]:
    """Scope in which a page follows a fit; gives the observer of the fit.

    Args:
        name: Name of the robot file.
        console: Console of messages.
    """
    fit = LiveFit(name)
    with LivePage(name, fit.snapshot) as page:
        _announce(page, console)
        yield fit.observer
        fit.finish()


@contextlib.contextmanager
def follow_log(log: Path, name: str, console: Console) -> Iterator[None]:
    """Scope in which a page follows a CSV file with a row for every iteration.

    Args:
        log: The file; it need not exist yet.
        name: Title of the page.
        console: Console of messages.
    """
    with LivePage(name, partial(csv_snapshot, log, name)) as page:
        _announce(page, console)
        yield


def _announce(page: LivePage, console: Console) -> None:
    console.print(f"Live page: {page.address}", markup=False)
    if sys.stdout.isatty():
        webbrowser.open(page.address)
