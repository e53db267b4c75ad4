"""Measurements in processes of their own: chosen cores, one thread, a cache of their own, and a time limit."""

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
"""Environment in which libraries start no threads of their own."""


@dataclass(frozen=True)
class Task:
    """One side of a comparison: a measurement by name, and the process it needs."""

    module: str
    """Module with the table of measurements."""
    name: str
    """Key in that table."""
    double: bool = True
    """Whether JAX computes in float64."""
    cores: int = 1
    limit: float = 240.0
    """Time that one process may take [s]."""
    processes: int = 1
    """Processes of which the best counts."""
    warm: bool = False
    """Whether kernels are found in a cache that an earlier process has filled."""


@dataclass(frozen=True)
class Outcome:
    """What a task found; everything is None but the reason where it could not be measured."""

    seconds: float | None = None
    compilation: float | None = None
    memory: float | None = None
    """Most memory the process has held [MB]."""
    outputs: tuple[tuple[float, ...], ...] = ()
    missing: str | None = None
    """Why there is no figure."""


def measure(task: Task, patience: float, limit: float | None = None) -> Outcome:
    """Runs a task; a failure is an outcome that says why.

    Args:
        task: What to measure.
        patience: How long to repeat the work in a process [s].
        limit: Time that a process may take, if not the task's own [s].
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
    """One process from start to end."""
    result = cache.with_suffix(".json")
    command = [sys.executable, "-W", "ignore", "-m", "truesim.bench.worker"]
    command += [task.module, task.name, str(patience), str(result)]
    with _pinned(task.cores):
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
        _end(process)
    if code < 0:
        return Outcome(missing=f"ended by {signal.Signals(-code).name}")
    if not result.exists():
        return Outcome(missing=f"ended with exit code {code}")
    return Outcome(**json.loads(result.read_text()))


def _environment(task: Task, cache: Path) -> dict[str, str]:
    here = str(Path(truesim.__file__).parents[1])
    search = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    own = {"PYTHONPATH": search, "TRUESIM_CACHE": str(cache), "JAX_ENABLE_X64": str(int(task.double))}
    return {**os.environ, **ONE_THREAD, **own}


@contextmanager
def _pinned(cores: int) -> Iterator[None]:
    """Keeps this thread, and so the processes it starts, on the last so many cores, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _end(process: subprocess.Popen) -> None:
    """Ends a process and whatever it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
