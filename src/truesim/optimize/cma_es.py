"""CMA-ES with restarts of growing population, for objectives without derivatives or with uninformative ones.

Each generation is evaluated as one batch. When a population has converged, the next one starts elsewhere and is twice
as large (IPOP; Auger and Hansen 2005).
"""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from truesim.core import libraries
from truesim.core.errors import FileError, TruesimError, parsing
from truesim.core.persistence.journal import Journal, fingerprint
from truesim.core.typing import Float
from truesim.optimize.basin_hopping import SEARCH_SCHEMA, SearchResult
from truesim.optimize.basins import SolveRecord, SolveStatus
from truesim.optimize.objective import AbstractObjective, SearchSpace
from truesim.optimize.starts import first_start

POPULATION_GROWTH = 2
"""Factor by which the population grows from restart to restart."""
DIVERGED_COST = 1e300
"""Cost of a candidate whose simulation diverged."""


@dataclasses.dataclass(frozen=True)
class CmaEsOptions:
    """Population and stopping criteria of CMA-ES; it always stops after the given number of restarts."""

    seed: int = 0
    population: int | None = None
    """Candidates of the first population; 4 + 3 ln(coordinates) by default."""
    sigma: float = 0.25
    """Standard deviation of the first generation, as a fraction of the width of the region."""
    restarts: int = 3
    """Maximum number of restarts."""
    seconds: float | None = None
    """Stop after this time [s]."""
    goal: float | None = None
    """Stop when the cost is below this."""
    solves: int | None = None
    """Stop after this number of evaluations."""
    about: str = ""
    """Identity of the objective: a journal with another one is refused."""

    def __post_init__(self) -> None:
        if self.population is not None and self.population < 3:
            raise TruesimError(f"The population is {self.population}; it must have at least 3 candidates.")
        if not self.sigma > 0:
            raise TruesimError(f"sigma is {self.sigma:g}; it must be positive.")


def cma_es(
    objective: AbstractObjective,
    options: CmaEsOptions | None = None,
    *,
    journal: Path | None = None,
    callback: Callable[[SearchResult], None] | None = None,
) -> SearchResult:
    """Minimize an objective by CMA-ES; the result has one solve for each population.

    Args:
        objective: The objective to minimize.
        options: Population, seed and stopping criteria.
        journal: File of evaluated generations; generations of the same search that it holds are not repeated.
        callback: Called after every generation.
    """
    options = options or CmaEsOptions()
    begin, space = time.monotonic(), objective.space
    said = fingerprint(*space, options.seed, options.population, options.sigma, options.about)
    book = None if journal is None else Journal(journal, SEARCH_SCHEMA, said)
    with parsing(str(journal), "the journal of a search"):
        past = iter([np.array(record["costs"], float) for record in (book.records if book else ())])
    run, interrupted = _Populations(space, options), False
    try:
        while not run.is_over(time.monotonic() - begin):
            candidates = run.candidates()
            known = next(past, None)
            if known is not None and len(known) != len(candidates):
                raise FileError(f"{journal} is damaged: a generation of {len(candidates)} has {len(known)} costs.")
            costs = objective.costs(candidates) if known is None else known
            if book is not None and known is None:
                book.append([{"costs": costs.tolist()}])
            run.tell(candidates, costs)
            if callback is not None:
                callback(SearchResult(run.solves, space, time.monotonic() - begin))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if book is not None:
            book.close()
    return SearchResult(run.solves, space, time.monotonic() - begin, interrupted)


class _Populations:
    """Populations of a search, one after the other."""

    def __init__(self, space: SearchSpace, options: CmaEsOptions):
        self.space, self.options = space, options
        self.solves: list[SolveRecord] = []
        self._begin(0)

    def _begin(self, restart: int) -> None:
        options, size = self.options, len(self.space.start)
        population = options.population or 4 + math.floor(3 * math.log(size))
        self._start = first_start(self.space, options.seed, restart)
        self._optimizer = libraries.cmaes.CMA(
            mean=self._unit(self._start),
            sigma=options.sigma,
            bounds=np.stack([self._unit(self.space.low), self._unit(self.space.high)], axis=1),
            seed=(options.seed + restart) % 2**32,
            population_size=population * POPULATION_GROWTH**restart,
        )
        self.solves.append(SolveRecord(restart, 0, self._start, self._start, np.inf, 0, SolveStatus.LIMIT))

    def candidates(self) -> Float[np.ndarray, "population size"]:
        """The next generation."""
        self._asked = np.stack([self._optimizer.ask() for _ in range(self._optimizer.population_size)])
        low, width = self.space.region[0], self.space.width
        return np.clip(low + width * self._asked, self.space.low, self.space.high)

    def tell(self, candidates: np.ndarray, costs: Float[np.ndarray, " population"]) -> None:
        """Pass the costs of a generation to the optimizer, and restart it if it has converged."""
        finite = np.where(np.isfinite(costs), costs, DIVERGED_COST)
        self._optimizer.tell(list(zip(self._asked, finite, strict=True)))
        best, now = int(np.argmin(finite)), self.solves[-1]
        converged = self._optimizer.should_stop()
        better = finite[best] < min(now.cost, DIVERGED_COST)
        self.solves[-1] = dataclasses.replace(
            now,
            theta=candidates[best] if better else now.theta,
            cost=float(finite[best]) if better else now.cost,
            iterations=now.iterations + len(costs),
            status=SolveStatus.CONVERGED if converged else SolveStatus.LIMIT,
        )
        if converged and len(self.solves) <= self.options.restarts:
            self._begin(len(self.solves))

    def is_over(self, seconds: float) -> bool:
        """True if a stopping criterion is met."""
        options, now = self.options, self.solves[-1]
        return (
            now.status == SolveStatus.CONVERGED
            or (options.seconds is not None and seconds > options.seconds)
            or (options.goal is not None and min(s.cost for s in self.solves) < options.goal)
            or (options.solves is not None and sum(s.iterations for s in self.solves) >= options.solves)
        )

    def _unit(self, theta: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
        """Coordinates as fractions of the region."""
        return (theta - self.space.region[0]) / self.space.width
