"""The search of `truesim identify`: many starts before the fit, with a live display of the basins."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from truesim.cli.progress import QUIET, SHOWN, working
from truesim.core.errors import TruesimError
from truesim.data import Log
from truesim.identify.folder import INCIDENTAL, JOURNAL, Request
from truesim.identify.problem import Problem
from truesim.identify.result import Fit
from truesim.identify.search.blackbox import conclude_on_mujoco
from truesim.identify.search.hopping import Found
from truesim.identify.search.mujoco_engine import MujocoEngine
from truesim.identify.search.open_loop import WINDOW
from truesim.identify.search.run import Plan, objective_of, search
from truesim.identify.weights import is_network

LOCAL = "local"
OFTEN = 0.25
"""The display is renewed this often [s]."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """What was asked for, and what is there already."""

    request: Request
    out: Path
    """Folder of the fit."""
    earlier: dict[str, Any] | None
    """The interrupted fit in it."""


def search_options(
    method: str, engine: str, workers: str, stop: tuple[float | None, int | None, float | None]
) -> dict[str, Any]:
    """Options as the request keeps them; none of them without a search.

    Args:
        method: `local` for none.
        engine: Of the search.
        workers: Threads or cluster.
        stop: Seconds, solves and cost after which it stops.
    """
    names = ("search", "engine", *INCIDENTAL)
    if method == LOCAL:
        if (engine, workers, stop) != ("truesim", "1", (None, None, None)):
            raise TruesimError(
                "--engine, --workers, --seconds, --solves and --cost belong to a search: add --search hopping or cmaes."
            )
        return dict.fromkeys(names)
    Plan(method, engine, workers)
    return dict(zip(names, (method, engine, workers, *stop), strict=True))


def searched(problem: Problem, logs: Sequence[Log], asked: Asked, console: Console) -> tuple[Plan, Found]:
    """The search that the options ask for; what it finishes is kept in the folder as it goes."""
    options = asked.request.options
    plan = Plan(
        method=options["search"],
        engine=options["engine"],
        workers=options["workers"],
        seed=options["seed"],
        seconds=options["seconds"],
        solves=options["solves"],
        goal=options["cost"],
        window=options["window"] or WINDOW,
        about=asked.request.fingerprint(),
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    console.print(f"Searching by {plan.method} on {plan.engine}; Ctrl-C ends the search early.", highlight=False)
    with SearchProgress(console, problem) as progress:
        found = search(problem, plan, logs=logs, journal=asked.out / JOURNAL, watch=progress)
    finite = bool(found.solves) and np.isfinite(found.best.cost)
    if found.interrupted and not finite:
        raise KeyboardInterrupt
    if not finite:
        raise TruesimError("The search found no parameters with which the simulation stays finite; narrow the bounds.")
    console.print(progress.line(found), highlight=False)
    return plan, found


def on_mujoco(
    plan: Plan, found: Found, fitted: tuple[Problem, Sequence[Log]], held_out: tuple[Problem | None, Sequence[Log]]
) -> Fit:
    """The fit of a search on MuJoCo."""

    def engine(problem: Problem, logs: Sequence[Log]) -> MujocoEngine:
        made = objective_of(problem, plan, logs)
        assert isinstance(made, MujocoEngine), "the plan's engine"
        return made

    with working(Console(stderr=True), "Simulating all windows and computing intervals …"):
        other, logs = held_out
        return conclude_on_mujoco(engine(*fitted), found, None if other is None else engine(other, logs))


class SearchProgress:
    """Shows the basins of a search on a terminal, or a line now and then elsewhere."""

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

    def __call__(self, found: Found) -> None:
        """Shows what has been found so far."""
        if time.monotonic() - self._last < (QUIET if self._live is None else OFTEN):
            return
        self._last = time.monotonic()
        if self._live is None:
            self._console.print(self.line(found), highlight=False)
        else:
            self._live.update(Group(Text(self.line(found)), self._table(found)))

    def line(self, found: Found) -> str:
        """The search in a sentence."""
        basins = found.basins()
        best = (
            f"best cost {basins.cost[0]:.6g}, found {_times(basins.count[0])}" if len(basins) else "nothing finite yet"
        )
        counts = (len(found.solves), "solve"), (found.evaluations, "evaluation"), (len(basins), "basin")
        return ", ".join([*(f"{n} {word}" if n == 1 else f"{n} {word}s" for n, word in counts), best])

    def _table(self, found: Found) -> Table:
        """The lowest basins, one a row."""
        parameters = self._problem.parameters
        pairs = zip(parameters, parameters.number_slices(), strict=True)
        shown = [(p.name, at) for p, at in pairs if not is_network(p)][:SHOWN]
        table = Table("cost", "times", *(escape(name) for name, _ in shown), box=None)
        basins = found.basins()
        for theta, cost, count in zip(basins.theta[:SHOWN], basins.cost, basins.count, strict=False):
            values, _ = self._problem.values(theta)
            cells = [", ".join(f"{v:.4g}" for v in np.ravel(values[at])) for _, at in shown]
            table.add_row(f"{cost:.6g}", str(count), *cells)
        return table


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
