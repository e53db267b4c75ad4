"""Prints held-out errors of the best analytic fit and of the hybrid at the port that `truesim suggest` proposes.

`python -m experiments.real_hybrids [--out DIR] [qube] [dfki]`. Errors are medians over windows of 0.5 s, open loop.
Three hybrids differ in the seed of their network.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.real_robots.__main__ import DFKI, OFFSETS, TRAINING, freed, identified
from experiments.recorded import folder

QUBE = ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss", "joints/*.armature", "actuators/*.delay")
SEEDS = (0, 1, 2)


def compared(robot: Path, logs: Sequence[Path], kept: Sequence[Path], options: Sequence[str], out: Path) -> None:
    """Fits, asks where a network is needed, trains it, and prints both errors."""
    analytic = identified(robot, logs, kept, options, out / "analytic")
    program = [sys.executable, "-c", "from truesim.cli.main import run; run()"]
    command = [*program, "suggest", str(robot), *map(str, logs), "--fit", str(out / "analytic")]
    done = subprocess.run(
        [*command, "--out", str(out / "suggested"), "--force"], check=True, capture_output=True, text=True
    )
    print(next(line for line in done.stdout.splitlines() if "explains" in line and line.endswith("noise.")))
    for seed in SEEDS:
        blueprint = out / f"seed{seed}.toml"
        text = (out / "suggested" / "blueprint-1.toml").read_text()
        blueprint.write_text(re.sub(r'"seed" = \d+', f'"seed" = {seed}', text))
        hybrid = identified(robot, logs, kept, [*options, "--blueprint", str(blueprint)], out / f"hybrid{seed}")
        show(seed, analytic, hybrid)


def show(seed: int, analytic: Any, hybrid: Any) -> None:
    """One row a channel."""
    for channel, before in analytic["errors"]["held_out"].items():
        after = hybrid["errors"]["held_out"][channel]["median"]
        change = 100 * (after / before["median"] - 1)
        print(f"  seed {seed} {channel:16} {before['median']:.5f} -> {after:.5f} rad ({change:+.0f} %)", flush=True)


def main(words: Sequence[str], out: Path) -> None:
    """The robots that were asked for, or all."""
    if not words or "qube" in words:
        data = folder("qube")
        logs = sorted(data.glob("chirp*.csv"))
        print("Qube")
        compared(data / "rig.xml", logs[:3], logs[3:], freed(QUBE), out / "qube")
    if not words or "dfki" in words:
        data = folder("dfki_double_pendulum")
        logs = sorted(data.glob("C1_*.csv"))
        print("DFKI double pendulum C.1")
        options = [*freed((*DFKI, OFFSETS)), "--window", "0.5"]
        compared(data / "rig_C.xml", logs[: TRAINING["C1"]], logs[TRAINING["C1"] :], options, out / "dfki")


if __name__ == "__main__":
    given = sys.argv[1:]
    where = given.index("--out") if "--out" in given else None
    chosen = Path(given[where + 1]) if where is not None else Path(tempfile.mkdtemp())
    main([word for word in given if word in ("qube", "dfki")], chosen)
