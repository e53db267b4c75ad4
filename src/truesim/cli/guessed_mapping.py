"""Output of `truesim inspect ROBOT LOG --write-mapping FILE`: the mapping with its doubts, and the next command."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.markup import escape

from truesim.cli.console import results, warn
from truesim.core.grouped import grouped
from truesim.files.logs.guess import ASSUMED_RATE
from truesim.files.logs.guessed import guess_columns
from truesim.files.logs.read_many import log_files
from truesim.physics.model import paths
from truesim.physics.model.model import Model

NEW_SERVO = "joints/*:kp=50"
"""Option that makes motors servos, with a gain from which a fit begins."""


class Choices(NamedTuple):
    """Statements of a user about the columns of a log."""

    calibration: Path | None = None
    """LeRobot's calibration file, if positions are in percent."""
    columns: Sequence[str] = ()
    """Patterns of the columns to choose from."""
    servo: Sequence[str] = ()
    """Motors that are servos, as in --servo."""


def write_guess(model: Model, robot: Path, logs: Sequence[Path], out: Path, choices: Choices) -> None:
    """Guess the columns of a log, write a mapping file, and print what is doubtful and what to run next.

    Args:
        model: The robot.
        robot: Its file.
        logs: Logs with the same columns; the first is read.
        out: Mapping file to write.
        choices: What the user has said about the columns.
    """
    logs = [file for log in logs for file in log_files(log)]
    found = guess_columns(model, logs[0], choices.calibration, choices.columns)
    out.write_text(found.text, encoding="utf-8")
    console = results(120)
    for g in found.guesses:
        if g.constant is not None:
            console.print(escape(f"{g.target} = {g.constant:g}"))
            continue
        unit = found.unit(g)
        column = f"{g.target} = {g.column}" + (f" [{unit}]" if unit else "") + (" times -1" if g.sign < 0 else "")
        console.print(escape(column))
    for line in grouped((g.column or g.target, doubt) for g in found.guesses for doubt in g.doubts):
        warn(console, line)
    if not found.has_stamps:
        warn(console, f"no column holds time stamps: {out.name} assumes {ASSUMED_RATE:g} samples a second.")
    if found.missing:
        warn(console, f"no column was found for {', '.join(found.missing)}: add it to {out.name}.")
    if len(found.missing) == model.nu > 0:
        console.print(
            f"Mapping in {escape(str(out))}. Without commands nothing can be identified: record what the actuators "
            "were told, beside the positions."
        )
        return
    console.print(f"Mapping in {escape(str(out))}. Next:")
    words = ["truesim identify", str(robot), *(str(log) for log in logs[: max(len(logs) - 1, 1)])]
    words += ["--holdout", str(logs[-1])] if len(logs) > 1 else []
    servo = choices.servo or ([NEW_SERVO] if found.needs_servo else [])
    words += [f"--servo {shlex.quote(text)}" for text in servo]
    free = _free(model, servos=found.needs_servo)
    console.print(escape(" ".join([*words, f"--mapping {out} --free {free} --out fit"])))


def _free(model: Model, servos: bool) -> str:
    """Patterns that are worth identifying first.

    Args:
        model: The robot.
        servos: Whether its motors become servos by --servo.
    """
    patterns = ["joints/*.damping", "joints/*.frictionloss"]
    patterns += ["joints/*.armature"] if np.any(np.asarray(model.joints.armature) > 0) else []
    patterns += ["actuators/*.kp"] if servos or any(p.field == "kp" for p in paths.servo_gains(model)) else []
    return " ".join(f"'{p}'" for p in [*patterns, "actuators/*.delay"])
