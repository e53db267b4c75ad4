"""A pool of workers on a Ray cluster: a function of independent items, mapped in order.

Ray restarts a worker that was killed and gives it the same item again. A result depends only on its item, so that
where it was computed, and how often, changes nothing.
"""

import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from truesim.core.errors import TruesimError

DEFAULT_CLUSTER = "ray"
"""Address that stands for the cluster named by the environment, or for a new one on this machine."""


class RayPool:
    """Workers, one for each processor of a cluster.

    pool = RayPool(function, shared)
    results = pool.map(items)          # [function(shared, item) for item in items]
    """

    def __init__(self, function: Callable[[Any, Any], Any], shared: Any = None, address: str = DEFAULT_CLUSTER):
        """Connect and start the workers.

        Args:
            function: From what all items share and an item to a result; both must be picklable.
            shared: Sent to every worker once.
            address: Address of the cluster, such as `192.168.0.2:6379`; `ray` for the cluster named by the
                environment, or for a new one on this machine.
        """
        ray = import_ray()
        self._ray, self._own = ray, not ray.is_initialized()
        if self._own:
            connect_to_ray(ray, address)
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_PoolWorker)
        self._shared = ray.put(shared)  # kept alive because restarted workers need it
        self.workers = [remote.remote(function, self._shared) for _ in range(count)]

    def map(self, items: Sequence[Any], callback: Callable[[int], None] | None = None) -> list[Any]:
        """Results in the order of the items; an idle worker takes the next item.

        Args:
            items: The items.
            callback: Called with the number of results so far.
        """
        results: list[Any] = [None] * len(items)
        idle, waiting, busy = list(self.workers), list(range(len(items)))[::-1], dict[Any, tuple[int, Any]]()
        done = 0
        while waiting or busy:
            while idle and waiting:
                index, worker = waiting.pop(), idle.pop()
                busy[worker.run.remote(items[index])] = index, worker
            for reference in self._ray.wait(list(busy), num_returns=1)[0]:
                index, worker = busy.pop(reference)
                results[index], done = self._ray.get(reference), done + 1
                idle.append(worker)
                if callback is not None:
                    callback(done)
        return results

    def close(self) -> None:
        """Stop the workers and disconnect."""
        for worker in self.workers:
            self._ray.kill(worker)
        if self._own:
            self._ray.shutdown()

    def __enter__(self) -> "RayPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PoolWorker:
    """One processor of the cluster."""

    def __init__(self, function: Callable[[Any, Any], Any], shared: Any):
        self._function, self._shared = function, shared

    def run(self, item: Any) -> Any:
        """Result of an item."""
        return self._function(self._shared, item)

    def process(self) -> int:
        """Process id of the worker."""
        return os.getpid()


def import_ray() -> ModuleType:
    """The library, or an error that says how to install it."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise TruesimError(
            "Work on several machines needs Ray: pip install 'truesim[ray]', or give --workers a number."
        ) from None


def connect_to_ray(ray: ModuleType, address: str) -> None:
    """Connect to a cluster, or start one on this machine."""
    options: dict[str, Any] = {"include_dashboard": False} if address == DEFAULT_CLUSTER else {"address": address}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # Ray forks only to execute
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise TruesimError(
            f"There is no Ray cluster at {address!r} ({str(error).splitlines()[0]}); "
            "give 'ray', an address such as 192.168.0.2:6379, or a number of threads."
        ) from None


def map_workers(
    function: Callable[[Any, Any], Any], items: Sequence[Any], *, shared: Any = None, workers: str = "1"
) -> list[Any]:
    """Results of a function for independent items, such as seeds or tasks, here or on a Ray cluster: the same ones.

    Args:
        function: From what all items share and an item to a result.
        items: The items.
        shared: What they share.
        workers: A number runs them in this process, one after the other; `ray` or an address on a cluster.
    """
    if workers.isdigit():
        return [function(shared, item) for item in items]
    with RayPool(function, shared, workers) as pool:
        return pool.map(items)
