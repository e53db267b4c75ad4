"""Global search over the parameters of a problem."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from truesim.core.errors import TruesimError, unknown_name
from truesim.files.logs import Log
from truesim.identification.problem.problem import MANY_WEIGHTS, Problem
from truesim.identification.search.cluster import Cluster, ClusterObjective
from truesim.identification.search.mujoco_engine import MujocoEngine
from truesim.identification.search.open_loop import SEARCH_WINDOW, OpenLoop
from truesim.optimize.basin_hopping import BasinHoppingOptions, SearchResult, basin_hopping
from truesim.optimize.cma_es import CmaEsOptions, cma_es

DEFAULT_CHAINS = 16
"""Chains of basin hopping over a problem."""
DEFAULT_SOLVES = 64
"""Solves of basin hopping, if no other stopping criterion is given."""


class SearchMethod(enum.StrEnum):
    """Method of a global search."""

    HOPPING = "hopping"
    """Basin hopping with Levenberg-Marquardt."""
    CMA_ES = "cmaes"


class SearchEngine(enum.StrEnum):
    """Simulator of a global search."""

    TRUESIM = "truesim"
    MUJOCO = "mujoco"
    """MuJoCo as a black box, without derivatives."""


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """Method, engine, workers and stopping criteria of a global search."""

    method: str = SearchMethod.HOPPING
    """A `SearchMethod`."""
    engine: str = SearchEngine.TRUESIM
    """A `SearchEngine`."""
    workers: str = "1"
    """Number of threads; `ray` or the address of a Ray cluster."""
    seed: int = 0
    seconds: float | None = None
    """Stop after this time [s]."""
    solves: int | None = None
    """Stop after this number of solves, or of evaluations with `cmaes`."""
    goal: float | None = None
    """Stop when the cost is below this."""
    window: float = SEARCH_WINDOW
    """Length of the simulated windows [s]."""
    about: str = ""
    """Identity of the problem: a journal with another one is refused."""

    def __post_init__(self) -> None:
        if self.method not in tuple(SearchMethod):
            raise unknown_name("search", self.method, ("local", *(str(m) for m in SearchMethod)))
        if self.engine not in tuple(SearchEngine):
            raise unknown_name("engine", self.engine, [str(e) for e in SearchEngine])
        if self.engine == SearchEngine.MUJOCO and self.method == SearchMethod.HOPPING:
            raise TruesimError("MuJoCo gives no derivatives to hop with; search with cmaes, or on the engine truesim.")
        if self.workers.isdigit() and int(self.workers) < 1:
            raise TruesimError("There must be at least one worker.")

    @property
    def threads(self) -> int:
        """Number of threads of this process."""
        return int(self.workers) if self.workers.isdigit() else 1


def build_objective(problem: Problem, options: SearchOptions, logs: Sequence[Log] = ()) -> OpenLoop | MujocoEngine:
    """Objective of a search: open-loop errors of the problem's windows on the chosen engine.

    Args:
        problem: The problem.
        options: Engine, threads and windows.
        logs: Logs of the problem, for actuators that only MuJoCo simulates.
    """
    if problem.trained.size:
        raise TruesimError(
            f"A search takes the derivative by each unknown from every start, which {problem.trained.size} weights are "
            f"too many for (more than {MANY_WEIGHTS}): use --search local, or a smaller network."
        )
    if options.engine == SearchEngine.MUJOCO and problem.blueprint is not None:
        raise TruesimError("MuJoCo as a black box has no networks to train: search on the engine truesim.")
    if options.engine != SearchEngine.MUJOCO and problem.simulator.constraint_contact is not None:
        raise TruesimError("A search with the file's contact runs in MuJoCo: add --engine mujoco, or --search local.")
    if options.engine == SearchEngine.MUJOCO:
        return MujocoEngine(problem, options.window, options.threads, logs)
    return OpenLoop(problem, options.window, options.threads)


def search(
    problem: Problem,
    options: SearchOptions | None = None,
    *,
    logs: Sequence[Log] = (),
    journal: Path | None = None,
    callback: Callable[[SearchResult], None] | None = None,
) -> SearchResult:
    """Search the parameters of a problem globally, from many starts.

    Args:
        problem: The problem.
        options: Method, engine, workers and stopping criteria.
        logs: Logs of the problem, for actuators that only MuJoCo simulates.
        journal: File of finished work; an interrupted search continues from it.
        callback: Called whenever solves or generations have ended.
    """
    options = options or SearchOptions()
    objective = build_objective(problem, options, logs)
    stop: dict[str, Any] = {"seconds": options.seconds, "goal": options.goal, "about": options.about}
    if isinstance(objective, MujocoEngine) or options.method == SearchMethod.CMA_ES:
        evolution = CmaEsOptions(seed=options.seed, solves=options.solves, **stop)
        if options.workers.isdigit():
            return cma_es(objective, evolution, journal=journal, callback=callback)
        there = ClusterObjective(objective, options.workers)
        try:
            return cma_es(there, evolution, journal=journal, callback=callback)
        finally:
            there.close()
    solves = options.solves or (DEFAULT_SOLVES if options.seconds is None and options.goal is None else None)
    hopping = BasinHoppingOptions(DEFAULT_CHAINS, options.seed, solves=solves, **stop)
    solver = None if options.workers.isdigit() else Cluster(objective, options.workers, hopping.solve)
    return basin_hopping(objective, hopping, journal=journal, solver=solver, callback=callback)
