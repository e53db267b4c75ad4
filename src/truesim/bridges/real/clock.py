"""Rate keeping: actions leave at regular times, and missed deadlines are counted."""

import time
from typing import Protocol

SLACK = 0.1
"""Part of a period by which an action may leave late without counting as missed; larger counts fewer."""


class ClockSource(Protocol):
    """A clock that can wait."""

    def now(self) -> float:
        """Time since an arbitrary moment [s]."""

    def sleep_until(self, moment: float) -> None:
        """Wait until a time of this clock [s]; return at once if it has passed."""


class WallClock:
    """Monotonic clock of the computer."""

    def now(self) -> float:
        """Time since an arbitrary moment [s]."""
        return time.monotonic()

    def sleep_until(self, moment: float) -> None:
        """Wait until a time of this clock [s]."""
        left = moment - time.monotonic()
        if left > 0:
            time.sleep(left)


class RateKeeper:
    """Deadlines `start + k period`; an action that is later than the slack has missed its deadline.

    Deadlines stay on their grid: after a late action the next one is due at the next deadline that has not passed.
    """

    def __init__(self, clock: ClockSource, period: float):
        """Begin an episode now.

        Args:
            clock: The clock.
            period: Time between actions [s].
        """
        self._clock, self._period = clock, period
        self._start, self._next = clock.now(), 0
        self.missed = 0
        """Deadlines that passed without an action."""

    @property
    def seconds(self) -> float:
        """Time since the start [s]."""
        return self._clock.now() - self._start

    def wait(self) -> float:
        """Wait for the next deadline; if it was missed, do not wait. Returns the time since the start [s]."""
        late = self.seconds - self._next * self._period
        if late <= SLACK * self._period:
            self._clock.sleep_until(self._start + self._next * self._period)
            self._next += 1
        else:
            passed = 1 + int(late // self._period)
            self.missed += passed
            self._next += passed
        return self.seconds
