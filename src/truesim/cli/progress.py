"""Live progress of a fit: iteration, cost, and the parameters that move."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from truesim.identify.levenberg_marquardt import Progress
from truesim.identify.problem import Problem
from truesim.identify.weights import is_network

SHOWN = 8
"""Parameters that are shown at once."""
QUIET = 5.0
"""Without a terminal, a line is printed this often [s]."""


class FitProgress:
    """Shows a fit on a terminal, or as a line now and then elsewhere."""

    def __init__(self, console: Console, problem: Problem):
        self._console, self._problem = console, problem
        self._start = np.asarray(problem.values(problem.parameters.start)[0])
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._last = 0.0

    def __enter__(self) -> "FitProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Shows one iteration."""
        line = f"iteration {progress.iteration}, cost {progress.cost:.6g}, largest move {progress.step:.2g}"
        if self._live is not None:
            self._live.update(Group(Text(line), self._table(progress)))
        elif time.monotonic() - self._last > QUIET:
            self._last = time.monotonic()
            self._console.print(line, highlight=False)

    def _table(self, progress: Progress) -> Table:
        problem = self._problem
        values, _ = problem.values(progress.theta)
        table = Table("parameter", "start", "now", "unit", box=None)
        moved = np.abs(progress.theta - problem.parameters.start)
        places = zip(problem.solved, problem.solved.slices(), problem.solved.number_slices(), strict=True)
        own = [place for place in places if not is_network(place[0])]
        for parameter, _, at in sorted(own, key=lambda place: -float(moved[place[1]].max(initial=0.0)))[:SHOWN]:
            table.add_row(escape(parameter.name), _numbers(self._start[at]), _numbers(values[at]), parameter.unit)
        for parameter, at in zip(problem.parameters, problem.parameters.slices(), strict=True):
            if is_network(parameter):
                change = f"{parameter.size} weights, changed by {np.sqrt(np.mean(moved[at] ** 2)):.3g} (rms)"
                table.add_row(escape(parameter.name), "", change, "")
        return table


class Counting:
    """Shows how far something has come; call it with the number done and the number in all."""

    def __init__(self, console: Console, text: str):
        self._console, self._text, self._last = console, text, time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        self._bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True)

    def __enter__(self) -> Callable[[int, int], None]:
        if self._console.is_terminal:
            self._bar.start()
            self._task = self._bar.add_task(self._text, total=None)
        else:
            self._console.print(f"{self._text} …", highlight=False)
        return self._seen

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def _seen(self, done: int, total: int) -> None:
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._last > QUIET:
            self._last = time.monotonic()
            self._console.print(f"{done} of {total}", highlight=False)


@contextmanager
def working(console: Console, text: str) -> Iterator[None]:
    """Says what is being done while it is done."""
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        console.print(text, highlight=False)
        yield


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{v:.5g}" for v in values)
