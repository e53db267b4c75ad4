"""Parallel basin hopping: chains of local solves, each begun by a random step from the best that its chain has found.

Chains do not look at each other, so what a search finds depends on its seed alone: not on how many lanes, threads or
machines run it. Solve `hop` of chain `c` among `n` chains has the number `hop * n + c`, and a search that stops by
count or by cost stops at a number.
"""

import dataclasses
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identify.journal import Journal, fingerprint
from truesim.identify.search.basins import Basins, Solve, basins_of_solves
from truesim.identify.search.lanes import Lanes, Task, Tolerance
from truesim.identify.search.objective import AbstractLeastSquares, Box
from truesim.identify.search.starts import first_start, next_start

SCHEMA = "truesim.search/1"
"""Of journals of searches."""


@dataclasses.dataclass(frozen=True)
class Hopping:
    """How to hop, and when to stop; at least one of the last three must be given."""

    chains: int = 64
    seed: int = 0
    tolerance: Tolerance = dataclasses.field(default_factory=Tolerance)
    """When a solve ends."""
    every: bool = False
    """Whether every chain has to reach the cost `goal`, rather than the first that does."""
    seconds: float | None = None
    """Stop after this time [s]."""
    goal: float | None = None
    """Stop when the cost is below this."""
    solves: int | None = None
    """Stop after so many solves."""
    about: str = ""
    """What the objective is; a journal of another is not taken up."""

    def __post_init__(self) -> None:
        if self.chains < 1:
            raise TruesimError(f"A search of {self.chains} chains finds nothing; there must be at least one.")
        if self.seconds is None and self.goal is None and self.solves is None:
            raise TruesimError("The search would never stop: give a time, a cost or a number of solves.")


@dataclasses.dataclass(frozen=True)
class Found:
    """What a search has come to."""

    solves: Sequence[Solve]
    box: Box
    seconds: float
    """How long this took, without what an earlier run of the search had found [s]."""
    interrupted: bool = False

    @property
    def best(self) -> Solve:
        """The solve with the lowest cost; the earliest among equals."""
        return min(self.solves, key=lambda s: (s.cost, s.hop, s.chain))

    @property
    def evaluations(self) -> int:
        """How often the objective was evaluated for one candidate."""
        return sum(solve.iterations for solve in self.solves)

    def basins(self) -> Basins:
        """The different minima."""
        return basins_of_solves(self.solves, self.box.width)


class Solver(Protocol):
    """Something that runs solves side by side."""

    @property
    def room(self) -> int:
        """How many more solves can run."""

    def add(self, tasks: Sequence[Task]) -> None:
        """Begins solves."""

    def advance(self) -> list[Solve]:
        """Waits until some have ended; those that have."""

    def close(self) -> None:
        """Drops what still runs."""


def hop(
    objective: AbstractLeastSquares,
    settings: Hopping,
    *,
    starts: Float[np.ndarray, "chains size"] | None = None,
    journal: Path | None = None,
    solver: Solver | None = None,
    watch: Callable[[Found], None] | None = None,
) -> Found:
    """Minima that many local solves come to.

    Args:
        objective: What is made small.
        settings: How many chains, the seed, and when to stop.
        starts: Where each chain begins; drawn from the seed by default.
        journal: File of finished solves; what it holds of the same search is not done again.
        solver: What runs the solves; lanes of this process by default.
        watch: Called whenever solves have ended.
    """
    begin = time.monotonic()
    said = fingerprint(*objective.box, settings.chains, settings.seed, settings.tolerance, starts, settings.about)
    book = None if journal is None else Journal(journal, SCHEMA, said)
    chains = _Chains(objective.box, settings, starts, map(_solve, book.records if book else ()))
    solver = Lanes(objective, settings.tolerance) if solver is None else solver
    interrupted = False
    try:
        while not chains.over(time.monotonic() - begin):
            solver.add(chains.tasks(solver.room))
            ended = solver.advance()
            if book is not None:
                book.append(_record(solve) for solve in ended)
            chains.take(ended)
            if watch is not None and ended:
                watch(Found(chains.solves, objective.box, time.monotonic() - begin))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        solver.close()
        if book is not None:
            book.close()
    return Found(chains.kept(), objective.box, time.monotonic() - begin, interrupted)


class _Chains:
    """Which solves are done, run, and come next."""

    def __init__(self, box: Box, settings: Hopping, starts: np.ndarray | None, done: Iterable[Solve]):
        if starts is not None and np.shape(starts) != (settings.chains, len(box.start)):
            raise TruesimError(
                f"{settings.chains} chains of {len(box.start)} coordinates cannot begin at starts of shape "
                f"{np.shape(starts)}."
            )
        self.box, self.settings, self.starts = box, settings, starts
        self.solves: list[Solve] = []
        self._best: dict[int, Solve] = {}
        self._running: set[int] = set()
        self._last = np.inf if settings.solves is None else settings.solves - 1
        self._hops = [0] * settings.chains
        for solve in done:
            self._note(solve)
        turns = [(hop * settings.chains + chain, chain, hop) for chain, hop in enumerate(self._hops)]
        self._ready = [turn for turn in turns if not self._finished(turn[1])]
        heapq.heapify(self._ready)

    def tasks(self, room: int) -> list[Task]:
        """The next solves, at most so many."""
        found: list[Task] = []
        while room > len(found) and self._ready and self._ready[0][0] <= self._last:
            number, chain, hop = heapq.heappop(self._ready)
            self._running.add(number)
            found.append(Task(chain, hop, self._start(chain, hop)))
        return found

    def take(self, ended: Iterable[Solve]) -> None:
        """Notes solves that have ended, which lets their chains go on."""
        for solve in ended:
            self._note(solve)
            self._running.discard(self._number(solve))
            if not self._finished(solve.chain):
                hop = self._hops[solve.chain]
                heapq.heappush(self._ready, (hop * self.settings.chains + solve.chain, solve.chain, hop))

    def _note(self, solve: Solve) -> None:
        self.solves.append(solve)
        self._hops[solve.chain] = solve.hop + 1
        best = self._best.get(solve.chain)
        if best is None or solve.cost < best.cost:
            self._best[solve.chain] = solve
        if self._reached(solve.chain) and not self.settings.every:
            self._last = min(self._last, self._number(solve))

    def _reached(self, chain: int) -> bool:
        """Whether a chain has found what the search looks for."""
        goal = self.settings.goal
        return goal is not None and chain in self._best and self._best[chain].cost < goal

    def _finished(self, chain: int) -> bool:
        return self.settings.every and self._reached(chain)

    def over(self, seconds: float) -> bool:
        """Whether nothing is left to do, or no time to do it."""
        if self.settings.seconds is not None and seconds > self.settings.seconds:
            return True
        waits = bool(self._ready) and self._ready[0][0] <= self._last
        return not waits and not any(number <= self._last for number in self._running)

    def kept(self) -> list[Solve]:
        """The solves of the search in the order of their numbers, without those beyond its end."""
        numbered = sorted((self._number(solve), k) for k, solve in enumerate(self.solves))
        return [self.solves[k] for number, k in numbered if number <= self._last]

    def _number(self, solve: Solve) -> int:
        return solve.hop * self.settings.chains + solve.chain

    def _start(self, chain: int, hop: int) -> np.ndarray:
        seed = self.settings.seed
        if hop:
            return next_start(self.box, seed, chain, hop, self._best[chain].theta)
        return first_start(self.box, seed, chain) if self.starts is None else np.asarray(self.starts[chain], float)


def _record(solve: Solve) -> dict[str, Any]:
    record = dataclasses.asdict(solve)
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in record.items()}


def _solve(record: dict[str, Any]) -> Solve:
    return Solve(**{**record, "start": np.array(record["start"]), "theta": np.array(record["theta"])})
