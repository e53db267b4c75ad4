"""Live progress of a global search: the basins found so far."""

import time
from types import TracebackType

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from truesim.cli.progress import MAX_LIVE_PARAMETERS, SECONDS_BETWEEN_LINES
from truesim.identification.problem.network_weights import is_network
from truesim.identification.problem.problem import Problem
from truesim.optimize.basin_hopping import SearchResult

SECONDS_BETWEEN_REDRAWS = 0.25
"""Time between updates on a terminal [s]; larger costs less and shows less."""


class SearchProgress:
    """Table of basins on a terminal, or a line every few seconds elsewhere."""

    def __init__(self, console: Console, problem: Problem):
        self._console, self._problem, self._last = console, problem, 0.0
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> "SearchProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, found: SearchResult) -> None:
        """Show the solves so far."""
        pause = SECONDS_BETWEEN_LINES if self._live is None else SECONDS_BETWEEN_REDRAWS
        if time.monotonic() - self._last < pause:
            return
        self._last = time.monotonic()
        if self._live is None:
            self._console.print(self.line(found), highlight=False)
        else:
            self._live.update(Group(Text(self.line(found)), self._table(found)))

    def line(self, found: SearchResult) -> str:
        """Numbers of solves, evaluations and basins, and the best cost."""
        basins = found.basins()
        best = "nothing finite yet"
        if len(basins):
            best = f"best cost {basins.cost[0]:.6g}, found {_times(int(basins.count[0]))}"
        counts = (len(found.solves), "solve"), (found.evaluations, "evaluation"), (len(basins), "basin")
        return ", ".join([*(f"{n} {word}" if n == 1 else f"{n} {word}s" for n, word in counts), best])

    def _table(self, found: SearchResult) -> Table:
        """The lowest basins, one a row."""
        parameters = self._problem.parameters
        pairs = zip(parameters, parameters.number_slices(), strict=True)
        shown = [(p.name, at) for p, at in pairs if not is_network(p)][:MAX_LIVE_PARAMETERS]
        table = Table("cost", "times", *(escape(name) for name, _ in shown), box=None)
        basins = found.basins()
        for theta, cost, count in zip(basins.theta[:MAX_LIVE_PARAMETERS], basins.cost, basins.count, strict=False):
            values, _ = self._problem.values(theta)
            cells = [", ".join(f"{v:.4g}" for v in np.ravel(values[at])) for _, at in shown]
            table.add_row(f"{cost:.6g}", str(count), *cells)
        return table


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
