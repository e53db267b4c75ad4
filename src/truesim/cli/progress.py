"""Live progress: iterations of a fit, and counts."""

import time
from collections.abc import Callable
from types import TracebackType

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from truesim.identification.problem.network_weights import is_network
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.levenberg_marquardt import Progress
from truesim.identification.solve.relative_cost import RelativeCost

MAX_LIVE_PARAMETERS = 8
"""Parameters shown at once; a larger value needs a taller terminal."""
SECONDS_BETWEEN_LINES = 5.0
"""Time between lines where the output is not a terminal [s]; larger prints fewer."""


class FitProgress:
    """Iteration, cost and the parameters that change most on a terminal, or a line every few seconds elsewhere."""

    def __init__(self, console: Console, problem: Problem):
        self._console, self._problem = console, problem
        self._start = np.asarray(problem.values(problem.parameters.start)[0])
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._last, self._cost = 0.0, RelativeCost()

    def __enter__(self) -> "FitProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one iteration."""
        cost = self._cost(progress.cost)
        line = f"iteration {progress.iteration}, cost {cost:.4g} of the first, largest step {progress.step:.2g}"
        if self._live is not None:
            self._live.update(Group(Text(line), self._table(progress)))
        elif time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._console.print(line, highlight=False)

    def _table(self, progress: Progress) -> Table:
        problem = self._problem
        values, _ = problem.values(progress.theta)
        table = Table("parameter", "start", "now", "unit", box=None)
        moved = np.abs(progress.theta - problem.parameters.start)
        places = zip(problem.solved, problem.solved.slices(), problem.solved.number_slices(), strict=True)
        own = [place for place in places if not is_network(place[0])]
        most = sorted(own, key=lambda place: -float(moved[place[1]].max(initial=0.0)))[:MAX_LIVE_PARAMETERS]
        for parameter, _, at in most:
            table.add_row(escape(parameter.name), _numbers(self._start[at]), _numbers(values[at]), parameter.unit)
        for parameter, at in zip(problem.parameters, problem.parameters.slices(), strict=True):
            if is_network(parameter):
                change = f"{parameter.size} weights, changed by {np.sqrt(np.mean(moved[at] ** 2)):.3g} (rms)"
                table.add_row(escape(parameter.name), "", change, "")
        return table


class Waiting:
    """A line with the seconds that have passed, on a terminal only."""

    def __init__(self, console: Console, text: str):
        self._bar = Bar(TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True)
        if console.is_terminal:
            self._bar.start()
            self._bar.add_task(text, total=None)

    def close(self) -> None:
        """Remove the line."""
        if self._bar.live.is_started:
            self._bar.stop()


class Counting:
    """Progress bar; the entered context is a function of the number done and the total."""

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
        return self._update

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def _update(self, done: int, total: int) -> None:
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._console.print(f"{done} of {total}", highlight=False)


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{v:.5g}" for v in values)
