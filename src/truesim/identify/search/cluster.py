"""Solves on the machines of a Ray cluster.

Each worker runs a handful of solves at a time as lanes of its own kernel. Ray starts a worker that was killed again and
gives it the handful that it had: nothing else is lost, and since a solve depends on its task alone, nothing changes.
"""

import importlib
import os
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from truesim.core.errors import TruesimError
from truesim.identify.search.basins import Solve
from truesim.identify.search.lanes import Lanes, Task, Tolerance
from truesim.identify.search.objective import AbstractLeastSquares

HANDFUL = 8
"""Solves that a worker runs at once: a kill costs no more than these."""
LOCAL = "ray"
"""Stands for the cluster that the environment names, or one on this machine."""


class Cluster:
    """Solves that run on a Ray cluster."""

    def __init__(
        self,
        objective: AbstractLeastSquares,
        address: str = LOCAL,
        tolerance: Tolerance | None = None,
        handful: int = HANDFUL,
    ):
        """Connects to the cluster and starts a worker for each of its processors.

        Args:
            objective: What is made small; it is sent to every worker once.
            address: Of the cluster, such as `192.168.0.2:6379`; `ray` for the one that the environment names, or for
                one on this machine.
            tolerance: When a solve ends.
            handful: How many solves a worker runs at once.
        """
        ray = _ray()
        self._ray, self._handful = ray, handful
        self._own = not ray.is_initialized()
        if self._own:
            _connect(ray, address)
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Worker)
        self._shared = ray.put(objective)  # for as long as workers may have to be started again
        self.workers = [remote.remote(self._shared, tolerance or Tolerance()) for _ in range(count)]
        self._idle = list(self.workers)
        self._busy: dict[Any, Any] = {}

    @property
    def room(self) -> int:
        """How many more solves can run."""
        return self._handful * len(self._idle)

    def add(self, tasks: Sequence[Task]) -> None:
        """Begins solves."""
        for first in range(0, len(tasks), self._handful):
            worker = self._idle.pop()
            self._busy[worker.run.remote(list(tasks[first : first + self._handful]))] = worker

    def advance(self) -> list[Solve]:
        """Waits until some have ended; those that have."""
        if not self._busy:
            return []
        ready, _ = self._ray.wait(list(self._busy), num_returns=1)
        ended = []
        for reference in ready:
            self._idle.append(self._busy.pop(reference))
            ended += self._ray.get(reference)
        return ended

    def close(self) -> None:
        """Stops the workers, and leaves the cluster."""
        for worker in self.workers:
            self._ray.kill(worker)
        if self._own:
            self._ray.shutdown()


class _Worker:
    """One processor of the cluster."""

    def __init__(self, objective: AbstractLeastSquares, tolerance: Tolerance):
        self._objective, self._tolerance = objective, tolerance

    def run(self, tasks: list[Task]) -> list[Solve]:
        """Solves to the end."""
        lanes = Lanes(self._objective, self._tolerance, capacity=len(tasks))
        lanes.add(tasks)
        ended: list[Solve] = []
        while len(ended) < len(tasks):
            ended += lanes.advance()
        return ended

    def process(self) -> int:
        """Number of the worker's process."""
        return os.getpid()


def _ray() -> ModuleType:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise TruesimError(
            "Searching on several machines needs Ray: pip install 'truesim[ray]', or give --workers a number."
        ) from None


def _connect(ray: ModuleType, address: str) -> None:
    where: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {"address": address}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # Ray forks only to execute
            ray.init(log_to_driver=False, logging_level="ERROR", **where)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise TruesimError(
            f"There is no Ray cluster at {address!r} ({str(error).splitlines()[0]}); "
            "give 'ray', an address such as 192.168.0.2:6379, or a number of threads."
        ) from None
