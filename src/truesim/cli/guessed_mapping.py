"""Output of `truesim inspect ROBOT LOG --write-mapping FILE`: the mapping with its doubts, and the next command."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape

from truesim.cli.console import results, warn
from truesim.core.errors import TruesimError
from truesim.files.logs.guess import Guess, guess_mapping, mapping_text
from truesim.files.logs.lerobot import calibration_units
from truesim.files.logs.read import read_columns
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
    columns = read_columns(logs[0])
    found = guess_mapping(columns, model)
    if len(found) < 2:
        shown = ", ".join(list(columns)[:8])
        raise TruesimError(f"No column of {logs[0].name} could be matched with this robot; it has {shown}.")
    scales = _percent(found, calibration)
    text = mapping_text([dataclasses.replace(g, unit="") if g.target in scales else g for g in found], logs[0].name)
    for target, (scale, offset) in scales.items():
        text = text.replace(
            f'"{target}" = {{ from', f'"{target}" = {{ scale = {scale:.9g}, offset = {offset:.9g}, from'
        )
    out.write_text(text, encoding="utf-8")
    console = results(120)
    for g in found:
        column = f"{g.target} = {g.column}" + (f" [{g.unit}]" if g.unit else "") + (" times -1" if g.sign < 0 else "")
        console.print(escape(column))
        for doubt in g.doubts:
            warn(console, f"{g.column} {doubt}")
    missing = [f"ctrl/{name}" for name in model.actuators.names if f"ctrl/{name}" not in {g.target for g in found}]
    if missing:
        warn(console, f"no column was found for {', '.join(missing)}: add it to {out.name}.")
    files = " ".join(str(log) for log in logs)
    console.print(f"Mapping in {escape(str(out))}. Next:")
    console.print(escape(f"truesim identify {robot} {files} --mapping {out} --free {_free(model)} --out fit"))


def _percent(found: Sequence[Guess], calibration: Path | None) -> dict[str, tuple[float, float]]:
    """Scale and offset of positions and commands in percent of their range, by target."""
    if calibration is None:
        return {}
    own = [g.target for g in found if g.target.split("/")[0] in ("qpos", "ctrl")]
    units = calibration_units(calibration, sorted({target.split("/", 1)[1] for target in own}))
    return {target: units[target.split("/", 1)[1]] for target in own}


def _free(model: Model) -> str:
    """Patterns that are worth identifying first."""
    patterns = ["joints/*.damping", "joints/*.frictionloss"]
    patterns += ["joints/*.armature"] if np.any(np.asarray(model.joints.armature) > 0) else []
    patterns += ["actuators/*.kp"] if any(p.field == "kp" for p in paths.servo_gains(model)) else []
    return " ".join(f"'{p}'" for p in [*patterns, "actuators/*.delay"])
