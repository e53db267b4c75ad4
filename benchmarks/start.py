"""Start-up time: CPU seconds of `import truesim` and of short commands, each in a fresh process.

`python -m benchmarks.start` prints a table. A bare interpreter is measured too, as the lower limit.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.process import ONE_THREAD, ROOTS, pin_cores
from truesim.core.errors import TruesimError

URDF = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 0.1"/><mass value="1.0"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0 0.1"/><mass value="0.5"/>
  <inertia ixx="0.005" iyy="0.005" izz="0.0005" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="20" velocity="5"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.2"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="10" velocity="5"/></joint></robot>
"""
COMMAND = "from truesim.cli.main import main; main()"
STARTS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "import truesim": ("-c", "import truesim"),
    "truesim --help": ("-c", COMMAND, "--help"),
    "truesim --version": ("-c", COMMAND, "--version"),
    "truesim inspect arm.urdf": ("-c", COMMAND, "inspect", "arm.urdf"),
}
"""Arguments of the Python interpreter, by name."""


@dataclass(frozen=True)
class StartTime:
    """Time of one process from start to end."""

    cpu: float
    """User and system time [s]."""
    elapsed: float
    """Wall time [s]."""


def start_time(arguments: Sequence[str], repeats: int = 3) -> StartTime:
    """Smallest CPU time of several processes, after one that fills the caches.

    Args:
        arguments: Arguments of the Python interpreter; they may name the file `arm.urdf`.
        repeats: Number of processes.
    """
    with tempfile.TemporaryDirectory(prefix="truesim-start-") as folder:
        (Path(folder) / "arm.urdf").write_text(URDF)
        found = [_run(arguments, folder) for _ in range(repeats + 1)]
    return min(found[1:], key=lambda one: one.cpu)


def _run(arguments: Sequence[str], folder: str) -> StartTime:
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": ROOTS}
    before, begin = os.times(), time.perf_counter()
    with pin_cores(1):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    elapsed, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        raise TruesimError(f"The command failed with exit code {done.returncode}.")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return StartTime(cpu, elapsed)


def main(
    repeats: Annotated[int, typer.Option(help="Processes of each command, of which the best counts.", min=1)] = 3,
) -> None:
    """Print the start-up time of truesim and of short commands."""
    table = Table("command", "CPU, s", "wall, s", box=None, header_style="dim", pad_edge=False)
    for name, arguments in STARTS.items():
        try:
            found = start_time(arguments, repeats)
        except TruesimError as error:
            table.add_row(name, "failed", str(error), style="red")
            continue
        table.add_row(name, f"{found.cpu:.2f}", f"{found.elapsed:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
