"""Rows of the table of results, with bootstrap intervals."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from truesim.core.ray_pool import map_workers

RESAMPLES = 2000
"""Bootstrap samples of an interval."""


class Setting(NamedTuple):
    """Sizes of a benchmark, and where its trainings run."""

    quick: bool = False
    """True for a few updates of each method, to see that all runs."""
    seeds: int = 2
    """Independent trainings of each method."""
    workers: str = "1"
    """`1` for this process, `ray` or the address of a cluster for one seed on each processor there."""

    def over_seeds(self, one: Callable[[Any, int], Any], shared: Any = None) -> list[Any]:
        """Results of a function of what all seeds share and of a seed; the same wherever they are computed."""
        return map_workers(one, range(1 if self.quick else self.seeds), shared=shared, workers=self.workers)


class Row(NamedTuple):
    """One figure."""

    benchmark: str
    method: str
    value: float
    """Mean over tasks and seeds."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end."""
    required: float | None = None
    """Figure that has to be reached; None for references."""
    episodes: int = 0
    """Real episodes of each adaptation."""
    seeds: int = 1
    """Independent trainings."""
    seconds: float = 0.0
    """CPU time of one training [s]."""


def make_row(benchmark: str, method: str, returns: list[np.ndarray], **fields) -> Row:
    """A row from returns of tasks, one array for each training.

    The interval is a bootstrap over trainings, and over tasks within each.
    """
    rng, values = np.random.default_rng(0), [np.asarray(each, float).ravel() for each in returns]
    means = []
    for _ in range(RESAMPLES):
        chosen = rng.integers(len(values), size=len(values))
        means.append(np.mean([rng.choice(values[k], len(values[k])).mean() for k in chosen]))
    low, high = np.percentile(means, [2.5, 97.5])
    value = float(np.mean([each.mean() for each in values]))
    return Row(benchmark, method, value, float(low), float(high), seeds=len(values), **fields)


@contextmanager
def stopwatch(spent: list[float]) -> Iterator[None]:
    """Append the CPU time of a block [s]."""
    begin = time.process_time()
    yield
    spent.append(time.process_time() - begin)
