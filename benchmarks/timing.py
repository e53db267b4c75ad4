"""Timing of function calls, and the record that a process reports."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """Result of one process."""

    seconds: float
    """Best time of one unit of the work [s]."""
    compilation: float | None = None
    """Compile time without a cache, tracing included [s]; None if nothing is compiled."""
    outputs: tuple[tuple[float, ...], ...] = ()
    """Outputs of the work, if both sides must agree on them."""


def best_seconds(f: Callable[[], object], patience: float, at_least: int = 3) -> float:
    """Shortest time of a call of f [s], after one call to warm up.

    Args:
        f: The function.
        patience: Time for which calls are repeated [s].
        at_least: Smallest number of calls.
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
