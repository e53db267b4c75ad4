"""Exclusive times of the parts of a job: a part's time does not contain that of parts that run within it.

Code names its parts with `part`; without a stopwatch this costs nothing. Parts may be nested, and one part may be
entered many times.
"""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple


class PartTime(NamedTuple):
    """A part that has begun or ended."""

    name: str
    """Such as `tracing`, `compiling` or `solving`."""
    subject: str
    """Object of the work, such as the name of a kernel; empty if there is only one."""
    seconds: float | None
    """Exclusive time of a part that has ended [s]; None when it begins."""


class Stopwatch:
    """Total exclusive time of each part [s], in the order in which parts were first entered."""

    def __init__(self, callback: Callable[[PartTime], None] | None = None):
        """Start with no time.

        Args:
            callback: Called when a part begins and when it ends.
        """
        self.seconds: dict[str, float] = {}
        self._callback = callback
        self._within: list[float] = []

    @contextlib.contextmanager
    def running(self) -> Iterator["Stopwatch"]:
        """Scope in which `part` is measured by this stopwatch."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @contextlib.contextmanager
    def part(self, name: str, subject: str = "") -> Iterator[None]:
        """Scope of a part."""
        self.seconds.setdefault(name, 0.0)
        self._report(PartTime(name, subject, None))
        self._within.append(0.0)
        begin = time.perf_counter()
        try:
            yield
        finally:
            whole = time.perf_counter() - begin
            own = whole - self._within.pop()
            if self._within:
                self._within[-1] += whole
            self.seconds[name] += own
            self._report(PartTime(name, subject, own))

    def _report(self, event: PartTime) -> None:
        if self._callback is not None:
            self._callback(event)


_current: contextvars.ContextVar[Stopwatch | None] = contextvars.ContextVar("stopwatch", default=None)


def part(name: str, subject: str = "") -> contextlib.AbstractContextManager[None]:
    """Scope of a part of a job, measured by the stopwatch that is running, if any.

    Args:
        name: Part that the time is added to.
        subject: Object of the work.
    """
    stopwatch = _current.get()
    return contextlib.nullcontext() if stopwatch is None else stopwatch.part(name, subject)
