"""Progress of a fit in the studio: stages, cost and parameters while it runs, and a way to end it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from truesim.identification.problem.network_weights import is_network
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.levenberg_marquardt import Progress
from truesim.identification.solve.relative_cost import RelativeCost
from truesim.optimize.basin_hopping import SearchResult
from truesim.physics.model.source import Finding

STAGE_WORDS = {
    "resume": "Continuing an interrupted fit.",
    "search": "Searching for the start.",
    "compile": "Compiling the simulation …",
    "solve": "Fitting …",
    "diagnose": "Computing intervals and open-loop errors …",
}


class PageObserver:
    """Observer of a fit that hands its progress to a page."""

    def __init__(self, told: Callable[[str], None], iterated: Callable[["PageObserver"], None]):
        """Remember where to report.

        Args:
            told: Called with sentences.
            iterated: Called after every iteration.
        """
        self._told, self._iterated = told, iterated
        self.is_stopped = False
        self.costs: list[float] = []
        """Cost of every iteration, relative to the first."""
        self.values: dict[str, tuple[float, float]] = {}
        """Start and present value of scalar parameters, by path [SI units]."""
        self._relative = RelativeCost()
        self._problem: Any = None

    def stop(self) -> None:
        """End the fit after the running iteration, with the best values so far."""
        self.is_stopped = True

    def warning(self, log: str, finding: Finding) -> None:
        """Show an anomaly of a log."""
        self._told(f"{log}: {finding}")

    def stage(self, name: str, problem: Problem) -> None:
        """Show the stage that begins."""
        self._problem = problem
        self._told(STAGE_WORDS[name])

    def searched(self, found: SearchResult) -> None:
        """Show the solves of a search."""
        self._told(f"{len(found.solves)} solves; the best has a cost of {found.best.cost:.4g}.")

    def iterated(self, progress: Progress) -> None:
        """Show an iteration, or end the fit if that was asked for."""
        self.costs.append(self._relative(progress.cost))
        self.values = dict(self._scalars(progress))
        self._iterated(self)
        if self.is_stopped:
            raise KeyboardInterrupt

    def _scalars(self, progress: Progress) -> list[tuple[str, tuple[float, float]]]:
        problem = self._problem
        now, start = (np.asarray(problem.values(x)[0]) for x in (progress.theta, problem.parameters.start))
        places = zip(problem.solved, problem.solved.number_slices(), strict=True)
        own = [(parameter.name, at) for parameter, at in places if not is_network(parameter)]
        return [(name, (float(start[at][0]), float(now[at][0]))) for name, at in own if now[at].size == 1]
