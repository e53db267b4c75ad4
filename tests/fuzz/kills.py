"""SIGKILL at random times of an identification: `python -m tests.fuzz.kills [--kills 50] [JOB...]`.

Every run is killed some times, at times spread over the length of an uninterrupted one, and continued by the same
command until it ends. The result must be that of the uninterrupted run, and no worker may be left behind.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.neural_damping.__main__ import ROBOT as PENDULUM
from experiments.neural_damping.__main__ import recorded
from tests.cli.test_blueprint import RULE
from tests.cli.test_identify import FREE, ROBOT, write_recording
from truesim.files.logs import write_log
from truesim.identification.fit_folder import read_document

JOBS = {
    "identify": ("robot.xml", "run.csv", *FREE),
    "search": ("robot.xml", "run.csv", *FREE, "--search", "hopping", "--solves", "6", "--workers", "2"),
    "network": ("pendulum.xml", "pendulum.csv", "--blueprint", "damping.toml"),
}
"""Arguments of `truesim identify`, by name."""
RUN = """
import sys
from truesim.core.persistence import checkpoint
checkpoint.EVERY = 0.05
from truesim.cli.main import run
sys.exit(run())
"""
"""The command line with checkpoints far more often than users have them, so that kills fall between many of them."""
KILLS_OF_A_RUN = 4
"""Kills before a run is left to end."""
TOLERANCE = 1e-3
"""Difference of estimates that counts as equal, in standard deviations; of errors of networks, relative."""
WORKERS_END = 10.0
"""Time in which workers notice that their parent is gone [s]."""


def main() -> int:
    """Kill, continue and compare; the exit code is 1 if any run ended elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills")
    parser.add_argument("--kills", type=int, default=50, help="of all jobs together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("jobs", nargs="*", default=list(JOBS))
    given = parser.parse_args()
    each = math.ceil(given.kills / len(given.jobs))
    failed = 0
    for job in given.jobs:
        worst, killed = 0.0, 0
        for done, difference in check(job, each, given.seed):
            worst, killed = max(worst, difference), killed + done
            failed += not difference <= TOLERANCE
        print(f"{job}: {killed} kills, largest difference {worst:.2g} (of {TOLERANCE:g})", flush=True)
    return int(failed > 0)


def check(job: str, kills: int, seed: int) -> Iterator[tuple[int, float]]:
    """Kill runs of a job; yields the number of kills of each run and how far its result is from the uninterrupted.

    Args:
        job: Name of the job.
        kills: Number of kills.
        seed: Of their times.
    """
    random_times = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write(folder)
        _finish(job, folder, "first")  # compiles
        begin = time.monotonic()
        _finish(job, folder, "whole")
        seconds = time.monotonic() - begin
        run = 0
        while kills > 0:
            out, run = f"killed{run}", run + 1
            done = sum(_kill(job, folder, out, random_times.uniform(0.3, 1.0) * seconds) for _ in range(KILLS_OF_A_RUN))
            if not (folder / out / "fit.json").exists():
                _finish(job, folder, out)
            kills -= max(done, 1)
            yield done, _difference(folder / "whole", folder / out)


def _write(folder: Path) -> None:
    write_recording(folder)
    (folder / "robot.xml").write_text(ROBOT)
    (folder / "pendulum.xml").write_text(PENDULUM.format(shoulder=0, elbow=0))
    motion = recorded(1e-3)
    write_log(folder / "pendulum.csv", {"time": motion.time, **motion.columns})
    (folder / "damping.toml").write_text(RULE)


def _start(job: str, folder: Path, out: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", RUN, "identify", *JOBS[job], "--out", out, "--quiet"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        words, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip


def _finish(job: str, folder: Path, out: str) -> None:
    process = _start(job, folder, out)
    said, _ = process.communicate()
    if process.returncode not in (0, 3, 4):
        raise AssertionError(f"{job} ended with exit code {process.returncode}: {said}")


def _kill(job: str, folder: Path, out: str, after: float) -> bool:
    """Kill a run after some seconds; False if it had ended."""
    if (folder / out / "fit.json").exists():
        return False
    process = _start(job, folder, out)
    try:
        process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        _wait_for_workers(process.pid)
        return True
    if process.returncode not in (0, 3, 4):
        raise AssertionError(f"{job} ended with exit code {process.returncode}")
    return False


def _wait_for_workers(group: int) -> None:
    """Wait until no process of a session is left; an error after some seconds."""
    end = time.monotonic() + WORKERS_END
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("workers were left behind")


def _difference(whole: Path, resumed: Path) -> float:
    """Largest difference of two fits: of estimates in standard deviations, of errors relative."""
    a, b = (read_document(folder) for folder in (whole, resumed))
    estimates = [
        abs(p["value"] - q["value"]) / max(abs(p["high"] - p["low"]) / 4, 1e-300)
        for p, q in zip(a["parameters"], b["parameters"], strict=True)
    ]
    errors = [
        abs(np.log(b["errors"]["train"][row]["rmse"] / error["rmse"])) for row, error in a["errors"]["train"].items()
    ]
    same = json.dumps(a["status"]) == json.dumps(b["status"])
    return max([*estimates, *errors]) if same else math.inf


if __name__ == "__main__":
    sys.exit(main())
