"""Measurements in separate processes, each with chosen cores, one thread, its own cache and a time limit."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import truesim

ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}
"""Environment in which libraries start no threads."""
ROOTS = os.pathsep.join((str(Path(truesim.__file__).parents[1]), str(Path(__file__).parents[1])))
"""Folders of the packages `truesim` and `benchmarks`, as a search path."""


@dataclass(frozen=True)
class Task:
    """One side of a comparison: a measurement by name, and the options of its process."""

    module: str
    """Module with the table of measurements."""
    name: str
    """Key in that table."""
    double: bool = True
    """True for float64 in JAX."""
    cores: int = 1
    limit: float = 240.0
    """Time limit of one process [s]."""
    processes: int = 1
    """Number of processes, of which the best counts."""
    warm: bool = False
    """True to measure with a kernel cache that an earlier process has filled."""


@dataclass(frozen=True)
class Outcome:
    """Result of a task; only `missing` is set if it could not be measured."""

    seconds: float | None = None
    compilation: float | None = None
    memory: float | None = None
    """Peak memory of the process [MB]."""
    outputs: tuple[tuple[float, ...], ...] = ()
    missing: str | None = None
    """Reason why there is no result."""


def measure(task: Task, patience: float, limit: float | None = None) -> Outcome:
    """Run a task; a failure gives an outcome with the reason.

    Args:
        task: The task.
        patience: Time for which the work is repeated in a process [s].
        limit: Time limit of a process instead of the task's own [s].
    """
    with tempfile.TemporaryDirectory(prefix="truesim-bench-") as name:
        outcomes = []
        for run in range(task.processes + task.warm):
            cache = Path(name) / ("cache" if task.warm else f"cache{run}")
            outcomes.append(_run(task, patience, limit or task.limit, cache))
            if outcomes[-1].missing:
                return outcomes[-1]
    return min(outcomes[task.warm :], key=lambda outcome: outcome.seconds or 0.0)


def _run(task: Task, patience: float, limit: float, cache: Path) -> Outcome:
    """Run one process."""
    result = cache.with_suffix(".json")
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.worker"]
    command += [task.module, task.name, str(patience), str(result)]
    with pin_cores(task.cores):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(task, cache),
            start_new_session=True,
        )
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return Outcome(missing=f"took longer than {limit:g} s")
    finally:
        _kill(process)
    if code < 0:
        return Outcome(missing=f"ended by {signal.Signals(-code).name}")
    if not result.exists():
        return Outcome(missing=f"ended with exit code {code}")
    return Outcome(**json.loads(result.read_text()))


def _environment(task: Task, cache: Path) -> dict[str, str]:
    search = os.pathsep.join(filter(None, (ROOTS, os.environ.get("PYTHONPATH"))))
    own = {"PYTHONPATH": search, "TRUESIM_CACHE": str(cache), "JAX_ENABLE_X64": str(int(task.double))}
    return {**os.environ, **ONE_THREAD, **own}


@contextmanager
def pin_cores(cores: int) -> Iterator[None]:
    """Pin this thread, and the processes it starts, to the last `cores` cores, where the system supports it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _kill(process: subprocess.Popen) -> None:
    """Kill a process and its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
