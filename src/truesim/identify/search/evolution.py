"""CMA-ES with restarts of growing population: for objectives that have no derivatives, or none worth following.

Each generation is evaluated as one batch. When a population has come to rest, the next begins elsewhere and is twice as
large (IPOP; Auger and Hansen 2005).
"""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cmaes import CMA

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identify.journal import Journal, fingerprint
from truesim.identify.search.basins import Solve
from truesim.identify.search.hopping import SCHEMA, Found
from truesim.identify.search.objective import AbstractObjective, Box
from truesim.identify.search.starts import first_start

GROWTH = 2
"""By which factor the population grows from restart to restart."""
ASTRAY = 1e300
"""Cost of a candidate whose simulation does not stay finite."""


@dataclasses.dataclass(frozen=True)
class Evolution:
    """How to evolve, and when to stop; without any of the last three, after the given restarts."""

    seed: int = 0
    population: int | None = None
    """Candidates of the first population; 4 + 3 ln(coordinates) by default."""
    spread: float = 0.25
    """Standard deviation of the first generation, in parts of the width of the region."""
    restarts: int = 3
    """So many populations after the first, at most."""
    seconds: float | None = None
    """Stop after this time [s]."""
    goal: float | None = None
    """Stop when the cost is below this."""
    solves: int | None = None
    """Stop after so many evaluations."""
    about: str = ""
    """What the objective is; a journal of another is not taken up."""

    def __post_init__(self) -> None:
        if self.population is not None and self.population < 3:
            raise TruesimError(f"A population of {self.population} cannot evolve; it must have at least 3 candidates.")
        if not self.spread > 0:
            raise TruesimError(f"The spread is {self.spread:g}; it must be positive.")


def evolve(
    objective: AbstractObjective,
    settings: Evolution | None = None,
    *,
    journal: Path | None = None,
    watch: Callable[[Found], None] | None = None,
) -> Found:
    """The best that every population came to.

    Args:
        objective: What is made small.
        settings: Population, seed, and when to stop.
        journal: File of evaluated generations; what it holds of the same search is not evaluated again.
        watch: Called after every generation.
    """
    settings = settings or Evolution()
    begin, box = time.monotonic(), objective.box
    said = fingerprint(*box, settings.seed, settings.population, settings.spread, settings.about)
    book = None if journal is None else Journal(journal, SCHEMA, said)
    past = iter(book.records if book else ())
    run, interrupted = _Run(box, settings), False
    try:
        while not run.over(time.monotonic() - begin):
            candidates = run.candidates()
            known = next(past, None)
            costs = np.array(known["costs"]) if known else objective.costs(candidates)
            if book is not None and not known:
                book.append([{"costs": costs.tolist()}])
            run.tell(candidates, costs)
            if watch is not None:
                watch(Found(run.solves, box, time.monotonic() - begin))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if book is not None:
            book.close()
    return Found(run.solves, box, time.monotonic() - begin, interrupted)


class _Run:
    """One population after the other."""

    def __init__(self, box: Box, settings: Evolution):
        self.box, self.settings = box, settings
        self.solves: list[Solve] = []
        self._begin(0)

    def _begin(self, restart: int) -> None:
        settings, size = self.settings, len(self.box.start)
        population = settings.population or 4 + math.floor(3 * math.log(size))
        self._start = first_start(self.box, settings.seed, restart)
        self._evolver = CMA(
            mean=self._unit(self._start),
            sigma=settings.spread,
            bounds=np.stack([self._unit(self.box.low), self._unit(self.box.high)], axis=1),
            seed=(settings.seed + restart) % 2**32,
            population_size=population * GROWTH**restart,
        )
        start = Solve(restart, 0, self._start, self._start, np.inf, 0, "limit")
        self.solves.append(start)

    def candidates(self) -> Float[np.ndarray, "population size"]:
        """The next generation."""
        self._asked = np.stack([self._evolver.ask() for _ in range(self._evolver.population_size)])
        low, width = self.box.region[0], self.box.width
        return np.clip(low + width * self._asked, self.box.low, self.box.high)

    def tell(self, candidates: np.ndarray, costs: Float[np.ndarray, "population"]) -> None:
        """What the generation cost; the next restart begins when it has come to rest."""
        finite = np.where(np.isfinite(costs), costs, ASTRAY)
        self._evolver.tell(list(zip(self._asked, finite, strict=True)))
        best, now = int(np.argmin(finite)), self.solves[-1]
        rests = self._evolver.should_stop()
        better = finite[best] < min(now.cost, ASTRAY)
        self.solves[-1] = dataclasses.replace(
            now,
            theta=candidates[best] if better else now.theta,
            cost=float(finite[best]) if better else now.cost,
            iterations=now.iterations + len(costs),
            ending="converged" if rests else "limit",
        )
        if rests and len(self.solves) <= self.settings.restarts:
            self._begin(len(self.solves))

    def over(self, seconds: float) -> bool:
        """Whether there is a reason to stop."""
        settings, now = self.settings, self.solves[-1]
        return (
            now.ending == "converged"
            or (settings.seconds is not None and seconds > settings.seconds)
            or (settings.goal is not None and min(s.cost for s in self.solves) < settings.goal)
            or (settings.solves is not None and sum(s.iterations for s in self.solves) >= settings.solves)
        )

    def _unit(self, theta: Float[np.ndarray, "size"]) -> Float[np.ndarray, "size"]:
        """Coordinates in parts of the region."""
        return (theta - self.box.region[0]) / self.box.width
