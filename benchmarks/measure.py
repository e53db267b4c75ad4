"""Timing, and measurements in processes of their own."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def best_seconds(f: Callable[[], object], repeats: int = 10) -> float:
    """Shortest time of a call, after one to warm up."""
    f()
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def in_own_process(module: str, name: str, *, cores: int = 1, seconds: float = 240, cache: str | None = None) -> dict:
    """What `python -m module name` prints as JSON, on so many cores; a failure is `{"missing": why}`."""
    available = sorted(os.sched_getaffinity(0))[-cores:]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    if cache is not None:
        environment["TRUESIM_CACHE"] = cache
    command = [sys.executable, "-W", "ignore", "-m", module, name]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, available),
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"took longer than {seconds:.0f} s"}
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(measurements: dict[str, Callable[[], dict]]) -> None:
    """Run the measurement named on the command line and print it as JSON."""
    sys.stdout.write(json.dumps(measurements[sys.argv[1]]()) + "\n")
