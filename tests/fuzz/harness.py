"""One damaged input: a loader either reads it or says in one sentence why not, within ten seconds."""

import contextlib
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.mutations import mutate
from tests.fuzz.targets import SECONDS, TARGETS
from truesim.core.errors import TruesimError


class Late(KeyboardInterrupt):
    """An input that took too long; no loader catches it."""


WAITING = 300
"""Longest time of one input on a busy machine [s]."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """An error after ten seconds of computing, or some minutes of waiting on a busy machine."""

    def late(*_: object) -> None:
        raise Late

    before = [signal.signal(kind, late) for kind in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for kind, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(kind, handler)


def check(name: str, seed: int) -> str | None:
    """Damage one file of a target and read it; returns the sentence, or None if it could be read.

    Args:
        name: Name of the target.
        seed: Of the damage; it also chooses the file.
    """
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        target.seed(folder)
        file = folder / random.Random(seed).choice(target.damaged)
        file.write_bytes(mutate(file.read_bytes(), seed))
        return read(name, folder)


def read(name: str, folder: Path) -> str | None:
    """Read the files of a target in a folder; returns the sentence, or None if they could be read."""
    try:
        with _limited():
            TARGETS[name].read(folder)
    except Late:
        raise AssertionError(f"more than {SECONDS} s") from None
    except TruesimError as error:
        sentence = str(error).strip()
    else:
        return None
    if "\n" in sentence:
        raise AssertionError(f"more than one line: {sentence}")
    return sentence
