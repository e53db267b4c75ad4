"""Local solves and generations of CMA-ES on the machines of a Ray cluster.

Each worker runs a small batch of solves at a time. Ray restarts a worker that was killed and sends it the same batch
again. A solve depends only on its task, so that the result of the search does not change.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.core.ray_pool import DEFAULT_CLUSTER, RayPool, connect_to_ray, import_ray
from truesim.core.typing import Float
from truesim.optimize.basins import SolveRecord
from truesim.optimize.levenberg_marquardt import BatchedLevenbergMarquardt, LevenbergMarquardtOptions, SolveTask
from truesim.optimize.objective import AbstractLeastSquares, AbstractObjective

WORKER_BATCH = 8
"""Solves in the batch of a worker: more of them are lost when a worker is killed, fewer use its kernel less well."""


class Cluster:
    """Local solver that runs on a Ray cluster."""

    def __init__(
        self,
        objective: AbstractLeastSquares,
        address: str = DEFAULT_CLUSTER,
        options: LevenbergMarquardtOptions | None = None,
        batch: int = WORKER_BATCH,
    ):
        """Connect to the cluster and start one worker for each processor.

        Args:
            objective: The objective to minimize; it is sent to every worker once.
            address: Address of the cluster, such as `192.168.0.2:6379`; `ray` for the cluster named by the environment,
                or for a new one on this machine.
            options: Termination of each solve.
            batch: Number of solves in the batch of a worker.
        """
        ray = import_ray()
        self._ray, self._batch = ray, batch
        self._own = not ray.is_initialized()
        if self._own:
            connect_to_ray(ray, address)
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Worker)
        self._shared = ray.put(objective)  # kept alive because restarted workers need it
        self.workers = [remote.remote(self._shared, options or LevenbergMarquardtOptions()) for _ in range(count)]
        self._idle = list(self.workers)
        self._busy: dict[Any, Any] = {}

    @property
    def room(self) -> int:
        """Number of solves that can be added."""
        return self._batch * len(self._idle)

    def add(self, tasks: Sequence[SolveTask]) -> None:
        """Send solves to idle workers."""
        for first in range(0, len(tasks), self._batch):
            worker = self._idle.pop()
            self._busy[worker.run.remote(list(tasks[first : first + self._batch]))] = worker

    def advance(self) -> list[SolveRecord]:
        """Wait until one batch has ended, and return its solves."""
        if not self._busy:
            return []
        ready, _ = self._ray.wait(list(self._busy), num_returns=1)
        ended = []
        for reference in ready:
            self._idle.append(self._busy.pop(reference))
            ended += self._ray.get(reference)
        return ended

    def close(self) -> None:
        """Stop the workers and disconnect."""
        for worker in self.workers:
            self._ray.kill(worker)
        if self._own:
            self._ray.shutdown()


class _Worker:
    """One processor of the cluster."""

    def __init__(self, objective: AbstractLeastSquares, options: LevenbergMarquardtOptions):
        self._objective, self._options = objective, options

    def run(self, tasks: list[SolveTask]) -> list[SolveRecord]:
        """Run a batch of solves to the end."""
        solver = BatchedLevenbergMarquardt(self._objective, self._options, capacity=len(tasks))
        solver.add(tasks)
        ended: list[SolveRecord] = []
        while len(ended) < len(tasks):
            ended += solver.advance()
        return ended

    def process(self) -> int:
        """Process id of the worker."""
        return os.getpid()


class ClusterObjective(AbstractObjective):
    """An objective whose costs are computed on a Ray cluster, a few candidates on each worker at a time."""

    def __init__(self, objective: AbstractObjective, address: str = DEFAULT_CLUSTER, batch: int = WORKER_BATCH):
        """Connect to the cluster.

        Args:
            objective: The objective; it is sent to every worker once.
            address: As of `Cluster`.
            batch: Candidates that a worker evaluates at once, and loses when it is killed.
        """
        self.space, self.steps, self.threads = objective.space, objective.steps, objective.threads
        self._batch, self.pool = batch, RayPool(_costs, objective, address)

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Cost of every candidate."""
        parts = [theta[first : first + self._batch] for first in range(0, len(theta), self._batch)]
        return np.concatenate(self.pool.map(parts))

    def close(self) -> None:
        """Stop the workers and disconnect."""
        self.pool.close()


def _costs(objective: AbstractObjective, theta: np.ndarray) -> np.ndarray:
    return np.asarray(objective.costs(theta))
