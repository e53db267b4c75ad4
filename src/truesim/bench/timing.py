"""What a measurement is made of: the best time of many calls, and what a process reports."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """What one process found out."""

    seconds: float
    """Best time of one unit of the work [s]."""
    compilation: float | None = None
    """Time from the function to compiled code, from cold, tracing included [s]; None where nothing is compiled."""
    outputs: tuple[tuple[float, ...], ...] = ()
    """Results of the work, where both sides must agree on them."""


def best_seconds(f: Callable[[], object], patience: float, at_least: int = 3) -> float:
    """Shortest time of a call of f [s], of as many as fit, after one to warm up.

    Args:
        f: What to call.
        patience: How long to go on [s].
        at_least: Calls to make even if they take longer.
    """
    f()
    best, calls, begin = math.inf, 0, time.perf_counter()
    while calls < at_least or time.perf_counter() - begin < patience:
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


def elapsed(f: Callable[[], object]) -> float:
    """Time of a single call [s]."""
    start = time.perf_counter()
    f()
    return time.perf_counter() - start
