"""Output of `truesim inspect ROBOT LOG --write-mapping FILE`: the mapping with its doubts, and the next command."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape

from truesim.cli.console import results, warn
from truesim.core.grouped import grouped
from truesim.files.logs.guessed import guess_columns
from truesim.files.logs.read_many import log_files
from truesim.physics.model import paths
from truesim.physics.model.model import Model


def write_guess(model: Model, robot: Path, logs: Sequence[Path], out: Path, calibration: Path | None) -> None:
    """Guess the columns of a log, write a mapping file, and print what is doubtful and what to run next.

    Args:
        model: The robot.
        robot: Its file.
        logs: Logs with the same columns; the first is read.
        out: Mapping file to write.
        calibration: LeRobot's calibration file, if positions are in percent.
    """
    logs = [file for log in logs for file in log_files(log)]
    found = guess_columns(model, logs[0], calibration)
    out.write_text(found.text, encoding="utf-8")
    console = results(120)
    for g in found.guesses:
        unit = found.unit(g)
        column = f"{g.target} = {g.column}" + (f" [{unit}]" if unit else "") + (" times -1" if g.sign < 0 else "")
        console.print(escape(column))
    for line in grouped((g.column, doubt) for g in found.guesses for doubt in g.doubts):
        warn(console, line)
    if found.missing:
        warn(console, f"no column was found for {', '.join(found.missing)}: add it to {out.name}.")
    console.print(f"Mapping in {escape(str(out))}. Next:")
    words = ["truesim identify", str(robot), *(str(log) for log in logs[: max(len(logs) - 1, 1)])]
    words += ["--holdout", str(logs[-1])] if len(logs) > 1 else []
    console.print(escape(" ".join([*words, f"--mapping {out} --free {_free(model)} --out fit"])))


def _free(model: Model) -> str:
    """Patterns that are worth identifying first."""
    patterns = ["joints/*.damping", "joints/*.frictionloss"]
    patterns += ["joints/*.armature"] if np.any(np.asarray(model.joints.armature) > 0) else []
    patterns += ["actuators/*.kp"] if any(p.field == "kp" for p in paths.servo_gains(model)) else []
    return " ".join(f"'{p}'" for p in [*patterns, "actuators/*.delay"])
