"""Stopwatch: exclusive times of nested parts."""

import time

from truesim.core.timing import Stopwatch, part


def test_times_are_exclusive():
    """The time of an inner part is not that of the outer one; parts of one name are added up."""
    events = []
    watch = Stopwatch(events.append)
    with watch.running(), part("solving"):
        time.sleep(0.02)
        for _ in range(2):
            with part("tracing", "kernel"):
                time.sleep(0.05)
    assert list(watch.seconds) == ["solving", "tracing"]
    assert 0.02 <= watch.seconds["solving"] < 0.09
    assert watch.seconds["tracing"] >= 0.1
    begun, ended = ([e for e in events if (e.seconds is None) == first] for first in (True, False))
    assert [e.name for e in begun] == ["solving", "tracing", "tracing"]
    assert [(e.name, e.subject) for e in ended] == [("tracing", "kernel"), ("tracing", "kernel"), ("solving", "")]


def test_without_a_stopwatch_nothing_is_measured():
    """Parts are entered and left."""
    watch = Stopwatch()
    with watch.running():
        pass
    with part("solving"):
        pass
    assert watch.seconds == {}


def test_errors_end_a_part():
    """A part that fails has a time, and the next part is not within it."""
    watch = Stopwatch()
    try:
        with watch.running(), part("reading"):
            raise ValueError
    except ValueError:
        pass
    with watch.running(), part("solving"):
        time.sleep(0.01)
    assert watch.seconds["solving"] >= 0.01
