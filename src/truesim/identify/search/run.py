"""A search over a problem's parameters, by any method, on any engine, with any workers."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from truesim.core.errors import TruesimError, unknown_name
from truesim.data import Log
from truesim.identify.problem import MANY, Problem
from truesim.identify.search.cluster import Cluster
from truesim.identify.search.evolution import Evolution, evolve
from truesim.identify.search.hopping import Found, Hopping, hop
from truesim.identify.search.mujoco_engine import MujocoEngine
from truesim.identify.search.open_loop import WINDOW, OpenLoop

METHODS = ("hopping", "cmaes")
ENGINES = ("truesim", "mujoco")
CHAINS, SOLVES = 16, 64
"""Chains of a search over a problem, and solves if nothing else ends it."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to search."""

    method: str = "hopping"
    """`hopping` (Levenberg-Marquardt from many starts) or `cmaes`."""
    engine: str = "truesim"
    """`truesim` or `mujoco`, which has no derivatives."""
    workers: str = "1"
    """Number of threads; `ray` or the address of a Ray cluster."""
    seed: int = 0
    seconds: float | None = None
    """Stop after this time [s]."""
    solves: int | None = None
    """Stop after so many solves, or evaluations of `cmaes`."""
    goal: float | None = None
    """Stop when the cost is below this."""
    window: float = WINDOW
    """Length of the windows that are simulated [s]."""
    about: str = ""
    """What the problem is; a journal of another is not taken up."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("search", self.method, ("local", *METHODS))
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        if self.engine == "mujoco" and self.method == "hopping":
            raise TruesimError("MuJoCo gives no derivatives to hop with; search with cmaes, or on the engine truesim.")
        if self.method == "cmaes" and not self.workers.isdigit():
            raise TruesimError(f"CMA-ES runs in one process: give a number of workers, not {self.workers!r}.")
        if self.workers.isdigit() and int(self.workers) < 1:
            raise TruesimError("There must be at least one worker.")

    @property
    def threads(self) -> int:
        """Threads of this process."""
        return int(self.workers) if self.workers.isdigit() else 1


def objective_of(problem: Problem, plan: Plan, logs: Sequence[Log] = ()) -> OpenLoop | MujocoEngine:
    """What a search makes small: open-loop errors of the problem's windows on the chosen engine.

    Args:
        problem: The problem.
        plan: Engine, threads and windows.
        logs: The problem's logs, for actuators that only MuJoCo knows.
    """
    if problem.trained.size:
        raise TruesimError(
            f"A search takes the derivative by each unknown from every start, which {problem.trained.size} weights are "
            f"too many for (more than {MANY}): use --search local, or a smaller network."
        )
    if plan.engine == "mujoco" and problem.blueprint is not None:
        raise TruesimError("MuJoCo as a black box has no networks to train: search on the engine truesim.")
    if plan.engine == "mujoco":
        return MujocoEngine(problem, plan.window, plan.threads, logs)
    return OpenLoop(problem, plan.window, plan.threads)


def search(
    problem: Problem,
    plan: Plan | None = None,
    *,
    logs: Sequence[Log] = (),
    journal: Path | None = None,
    watch: Callable[[Found], None] | None = None,
) -> Found:
    """Where in the space of parameters a problem's logs are explained, from many starts.

    Args:
        problem: The problem.
        plan: How.
        logs: The problem's logs, for actuators that only MuJoCo knows.
        journal: File of what is finished; a killed search goes on from it.
        watch: Called whenever something has been finished.
    """
    plan = plan or Plan()
    objective = objective_of(problem, plan, logs)
    if isinstance(objective, MujocoEngine) or plan.method == "cmaes":
        evolution = Evolution(
            seed=plan.seed, seconds=plan.seconds, goal=plan.goal, solves=plan.solves, about=plan.about
        )
        return evolve(objective, evolution, journal=journal, watch=watch)
    solves = plan.solves or (SOLVES if plan.seconds is None and plan.goal is None else None)
    settings = Hopping(CHAINS, plan.seed, seconds=plan.seconds, goal=plan.goal, solves=solves, about=plan.about)
    solver = None if plan.workers.isdigit() else Cluster(objective, plan.workers, settings.tolerance)
    return hop(objective, settings, journal=journal, solver=solver, watch=watch)
