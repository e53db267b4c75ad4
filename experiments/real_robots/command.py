"""Fits of recorded robots by the command line, and the parameters and logs of the DFKI arm."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truesim.cli.exit_codes import EXIT_CODES

DFKI = ("bodies/*.mass", "bodies/*.com[2]", "bodies/*.inertia[1]", "joints/*.damping", "joints/*.frictionloss")
OFFSETS = "actuators/*.offset"
TRAINING = {"C1": 7, "C0": 6}
"""Number of logs that are fitted, by design."""


def run_identify(robot: Path, logs: Sequence[Path], holdout: Sequence[Path], options: Sequence[str], out: Path) -> Any:
    """Run `truesim identify` and return the content of fit.json."""
    program = [sys.executable, "-c", "from truesim.cli.main import run; run()"]
    command = [*program, "identify", str(robot), *map(str, logs), *options]
    for log in holdout:
        command += ["--holdout", str(log)]
    done = subprocess.run([*command, "--out", str(out), "--force"], stdout=subprocess.DEVNULL)
    if done.returncode not in EXIT_CODES.values():
        done.check_returncode()
    return json.loads((out / "fit.json").read_text(encoding="utf-8"))


def free_options(patterns: Sequence[str]) -> list[str]:
    """Command-line options that free these patterns."""
    return [word for pattern in patterns for word in ("--free", pattern)]
