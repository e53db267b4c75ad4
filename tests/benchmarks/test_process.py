"""Measurements in processes of their own."""

import os
import time
from pathlib import Path

import pytest

from benchmarks.process import Task, measure
from benchmarks.worker import report

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def _tests_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH")))))


def task(name: str, **options: object) -> Task:
    return Task("tests.benchmarks.measurements", name, **options)


def test_a_process_gets_what_it_asks_for():
    """Patience, one core and precision reach the measurement; its memory is reported; we stay on our own cores."""
    before = os.sched_getaffinity(0)
    outcome = measure(task("surroundings", double=False), patience=0.25)
    assert outcome.missing is None
    assert outcome.seconds == 0.5
    assert outcome.outputs[0] == [0.25, 1, 0]
    assert 5 < outcome.memory < 2000
    assert os.sched_getaffinity(0) == before


def test_what_hangs_is_ended():
    """A process that is too slow is ended and reported, soon after its limit."""
    start = time.perf_counter()
    outcome = measure(task("hangs"), patience=0.1, limit=0.5)
    assert outcome.missing == "took longer than 0.5 s"
    assert outcome.seconds is None
    assert time.perf_counter() - start < 3


def test_a_crash_says_so():
    """A process that ends without a word leaves the signal that ended it."""
    assert measure(task("crashes"), patience=0.1).missing == "ended by SIGSEGV"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "no_such_engine is not installed: pip install 'truesim[bench]'"),
        ("breaks", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_failure_says_why(name, reason):
    """A peer that is not installed, or raises, leaves a reason."""
    assert report("tests.benchmarks.measurements", name, 0.1) == {"missing": reason}
