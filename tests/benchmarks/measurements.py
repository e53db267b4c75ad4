"""Measurements that take no time, or for ever; and a peer that nobody has installed."""

import os
import signal
import time

from benchmarks.timing import Measured


def surroundings(patience: float) -> Measured:
    """Reports what the process was given: its patience, its cores and the precision of JAX."""
    cores = len(os.sched_getaffinity(0))
    return Measured(0.5, outputs=((patience, cores, float(os.environ["JAX_ENABLE_X64"])),))


def absent(patience: float) -> Measured:
    """Needs a package that does not exist."""
    import no_such_engine

    return no_such_engine.step(patience)


MEASUREMENTS = {
    "surroundings": surroundings,
    "absent": absent,
    "hangs": lambda patience: time.sleep(600),
    "breaks": lambda patience: 1 / 0,
    "crashes": lambda patience: os.kill(os.getpid(), signal.SIGSEGV),
}
