"""Parallel basin hopping: chains of local solves, each started by a random step from the best minimum of its chain.

Chains are independent, so that the result depends only on the seed, and not on the batch size, the number of threads or
the number of machines. Solve `hop` of chain `c` among `n` chains has the number `hop * n + c`, and a search that stops
by count or by cost stops at a number.
"""

import dataclasses
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from truesim.core.errors import TruesimError, parsing
from truesim.core.persistence.journal import Journal, fingerprint
from truesim.core.typing import Float
from truesim.optimize.basins import Basins, SolveRecord, SolveStatus, group_solves
from truesim.optimize.levenberg_marquardt import BatchedLevenbergMarquardt, LevenbergMarquardtOptions, SolveTask
from truesim.optimize.objective import AbstractLeastSquares, SearchSpace
from truesim.optimize.starts import first_start, next_start

SEARCH_SCHEMA = "truesim.search/1"
"""Schema of search journals."""


@dataclasses.dataclass(frozen=True)
class BasinHoppingOptions:
    """Chains and stopping criteria of basin hopping; at least one of `seconds`, `goal` and `solves` is required."""

    chains: int = 64
    seed: int = 0
    solve: LevenbergMarquardtOptions = dataclasses.field(default_factory=LevenbergMarquardtOptions)
    """Termination of each local solve."""
    every_chain: bool = False
    """True if every chain has to reach the cost `goal`, instead of the first chain that does."""
    seconds: float | None = None
    """Stop after this time [s]."""
    goal: float | None = None
    """Stop when the cost is below this."""
    solves: int | None = None
    """Stop after this number of solves."""
    about: str = ""
    """Identity of the objective: a journal with another one is refused."""

    def __post_init__(self) -> None:
        if self.chains < 1:
            raise TruesimError(f"A search needs at least one chain, not {self.chains}.")
        if self.seconds is None and self.goal is None and self.solves is None:
            raise TruesimError("The search would never stop: give a time, a cost or a number of solves.")


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """Result of a global search."""

    solves: Sequence[SolveRecord]
    space: SearchSpace
    seconds: float
    """Duration of this run, without earlier runs of the same journal [s]."""
    interrupted: bool = False

    @property
    def best(self) -> SolveRecord:
        """The solve with the lowest cost; the earliest among equals."""
        return min(self.solves, key=lambda s: (s.cost, s.hop, s.chain))

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the objective, candidates counted one by one."""
        return sum(solve.iterations for solve in self.solves)

    def basins(self) -> Basins:
        """Distinct minima of the search."""
        return group_solves(self.solves, self.space.width)


@runtime_checkable
class LocalSolver(Protocol):
    """Interface of solvers that run local solves side by side."""

    @property
    def room(self) -> int:
        """Number of solves that can be added."""

    def add(self, tasks: Sequence[SolveTask]) -> None:
        """Start solves."""

    def advance(self) -> list[SolveRecord]:
        """Wait until at least one solve has ended, and return those that have."""

    def close(self) -> None:
        """Drop all running solves."""


def basin_hopping(
    objective: AbstractLeastSquares,
    options: BasinHoppingOptions,
    *,
    starts: Float[np.ndarray, "chains size"] | None = None,
    journal: Path | None = None,
    solver: LocalSolver | None = None,
    callback: Callable[[SearchResult], None] | None = None,
) -> SearchResult:
    """Minimize an objective by basin hopping.

    Args:
        objective: The objective to minimize.
        options: Chains, seed and stopping criteria.
        starts: First start of each chain; drawn from the seed by default.
        journal: File of finished solves; solves of the same search that it holds are not repeated.
        solver: Solver of the local problems; a batch in this process by default.
        callback: Called whenever solves have ended.
    """
    begin = time.monotonic()
    book = None if journal is None else Journal(journal, SEARCH_SCHEMA, _identity(objective.space, options, starts))
    with parsing(str(journal), "the journal of a search"):
        chains = _Chains(objective.space, options, starts, map(_from_record, book.records if book else ()))
    solver = BatchedLevenbergMarquardt(objective, options.solve) if solver is None else solver
    interrupted = False
    try:
        while not chains.is_over(time.monotonic() - begin):
            solver.add(chains.tasks(solver.room))
            ended = solver.advance()
            if book is not None:
                book.append(_to_record(solve) for solve in ended)
            chains.take(ended)
            if callback is not None and ended:
                callback(SearchResult(chains.solves, objective.space, time.monotonic() - begin))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        solver.close()
        if book is not None:
            book.close()
    return SearchResult(chains.kept(), objective.space, time.monotonic() - begin, interrupted)


class _Chains:
    """Finished, running and waiting solves of all chains."""

    def __init__(
        self,
        space: SearchSpace,
        options: BasinHoppingOptions,
        starts: np.ndarray | None,
        done: Iterable[SolveRecord],
    ):
        if starts is not None and np.shape(starts) != (options.chains, len(space.start)):
            raise TruesimError(
                f"{options.chains} chains of {len(space.start)} coordinates cannot begin at starts of shape "
                f"{np.shape(starts)}."
            )
        self.space, self.options, self.starts = space, options, starts
        self.solves: list[SolveRecord] = []
        self._best: dict[int, SolveRecord] = {}
        self._running: set[int] = set()
        self._last = np.inf if options.solves is None else options.solves - 1
        self._hops = [0] * options.chains
        for solve in done:
            if not 0 <= solve.chain < options.chains or solve.hop != self._hops[solve.chain]:
                raise TruesimError(f"a journal has hop {solve.hop} of chain {solve.chain} out of turn; it is damaged.")
            self._note(solve)
        turns = [(hop * options.chains + chain, chain, hop) for chain, hop in enumerate(self._hops)]
        self._ready = [turn for turn in turns if not self._is_finished(turn[1])]
        heapq.heapify(self._ready)

    def tasks(self, room: int) -> list[SolveTask]:
        """The next solves, at most `room` of them."""
        found: list[SolveTask] = []
        while room > len(found) and self._ready and self._ready[0][0] <= self._last:
            number, chain, hop = heapq.heappop(self._ready)
            self._running.add(number)
            found.append(SolveTask(chain, hop, self._start(chain, hop)))
        return found

    def take(self, ended: Iterable[SolveRecord]) -> None:
        """Record finished solves, and queue the next solve of their chains."""
        for solve in ended:
            self._note(solve)
            self._running.discard(self._number(solve))
            if not self._is_finished(solve.chain):
                hop = self._hops[solve.chain]
                heapq.heappush(self._ready, (hop * self.options.chains + solve.chain, solve.chain, hop))

    def _note(self, solve: SolveRecord) -> None:
        self.solves.append(solve)
        self._hops[solve.chain] = solve.hop + 1
        best = self._best.get(solve.chain)
        if best is None or solve.cost < best.cost:
            self._best[solve.chain] = solve
        if self._has_reached_goal(solve.chain) and not self.options.every_chain:
            self._last = min(self._last, self._number(solve))

    def _has_reached_goal(self, chain: int) -> bool:
        """True if a chain has reached the goal."""
        goal = self.options.goal
        return goal is not None and chain in self._best and self._best[chain].cost < goal

    def _is_finished(self, chain: int) -> bool:
        return self.options.every_chain and self._has_reached_goal(chain)

    def is_over(self, seconds: float) -> bool:
        """True if all solves are done, or the time is over."""
        if self.options.seconds is not None and seconds > self.options.seconds:
            return True
        waits = bool(self._ready) and self._ready[0][0] <= self._last
        return not waits and not any(number <= self._last for number in self._running)

    def kept(self) -> list[SolveRecord]:
        """Solves in the order of their numbers, up to the last number of the search."""
        numbered = sorted((self._number(solve), k) for k, solve in enumerate(self.solves))
        return [self.solves[k] for number, k in numbered if number <= self._last]

    def _number(self, solve: SolveRecord) -> int:
        return solve.hop * self.options.chains + solve.chain

    def _start(self, chain: int, hop: int) -> np.ndarray:
        seed = self.options.seed
        if hop:
            return next_start(self.space, seed, chain, hop, self._best[chain].theta)
        return first_start(self.space, seed, chain) if self.starts is None else np.asarray(self.starts[chain], float)


def _identity(space: SearchSpace, options: BasinHoppingOptions, starts: np.ndarray | None) -> str:
    """Fingerprint of a search; the text of the tolerances is that of the first version of the journal."""
    solve = options.solve
    tolerances = _Verbatim(f"Tolerance(fall={solve.ftol!r}, step={solve.xtol!r}, iterations={solve.iterations!r})")
    return fingerprint(*space, options.chains, options.seed, tolerances, starts, options.about)


class _Verbatim(str):
    """Text that represents itself without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _to_record(solve: SolveRecord) -> dict[str, Any]:
    record = dataclasses.asdict(solve)
    record["ending"] = str(record.pop("status"))
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in record.items()}


def _from_record(record: dict[str, Any]) -> SolveRecord:
    fields = {**record, "start": np.array(record["start"]), "theta": np.array(record["theta"])}
    status = SolveStatus(fields.pop("ending"))
    return SolveRecord(**fields, status=status)
