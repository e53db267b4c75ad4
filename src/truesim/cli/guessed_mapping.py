"""Output of `truesim inspect ROBOT LOG --write-mapping FILE`: the mapping with its doubts, and the next command."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape

from truesim.cli.console import results, warn
from truesim.cli.grouped import grouped
from truesim.core.errors import TruesimError
from truesim.files.logs.guess import FULL_PERCENT, Guess, guess_mapping, mapping_text
from truesim.files.logs.lerobot import GRIPPER, calibration_units
from truesim.files.logs.read import read_columns
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
    columns = read_columns(logs[0])
    found = guess_mapping(columns, model)
    if len(found) < 2:
        shown = ", ".join(list(columns)[:8])
        raise TruesimError(
            f"No column of {logs[0].name} could be matched with this robot, whose joints are "
            f"{', '.join(model.joints.names[:8])}; the log has {shown}. Is it the log of another robot?"
        )
    scales = _percent(model, found, columns, calibration)
    found = [dataclasses.replace(g, doubts=()) if g.target in scales else g for g in found]
    text = mapping_text([dataclasses.replace(g, unit="") if g.target in scales else g for g in found], logs[0].name)
    for target, (scale, offset) in scales.items():
        text = text.replace(
            f'"{target}" = {{ from', f'"{target}" = {{ scale = {scale:.9g}, offset = {offset:.9g}, from'
        )
    out.write_text(text, encoding="utf-8")
    console = results(120)
    for g in found:
        unit = "percent" if g.target in scales else g.unit
        column = f"{g.target} = {g.column}" + (f" [{unit}]" if unit else "") + (" times -1" if g.sign < 0 else "")
        console.print(escape(column))
    for line in grouped((g.column, doubt) for g in found for doubt in g.doubts):
        warn(console, line)
    missing = [f"ctrl/{name}" for name in model.actuators.names if f"ctrl/{name}" not in {g.target for g in found}]
    if missing:
        warn(console, f"no column was found for {', '.join(missing)}: add it to {out.name}.")
    console.print(f"Mapping in {escape(str(out))}. Next:")
    words = ["truesim identify", str(robot), *(str(log) for log in logs[: max(len(logs) - 1, 1)])]
    words += ["--holdout", str(logs[-1])] if len(logs) > 1 else []
    console.print(escape(" ".join([*words, f"--mapping {out} --free {_free(model)} --out fit"])))


def _percent(
    model: Model, found: Sequence[Guess], columns: Mapping[str, np.ndarray], calibration: Path | None
) -> dict[str, tuple[float, float]]:
    """Scale and offset of positions and commands in percent of their range, by target.

    LeRobot records all joints but the gripper in degrees if it is told so: if one of them exceeds a hundred percent.
    """
    if calibration is None:
        return {}
    own = [g for g in found if g.target.split("/")[0] in ("qpos", "ctrl")]
    joints = {g.target: g.target.split("/", 1)[1] for g in own}
    beyond = [g for g in own if np.nanmax(np.abs(columns[g.column]), initial=0.0) > FULL_PERCENT]
    chosen = [target for target, name in joints.items() if name == GRIPPER or not beyond]
    names = sorted({joints[target] for target in chosen})
    limits = {n: float(np.asarray(model.joints.range[j])[0]) for j, n in enumerate(model.joints.names) if n in names}
    limited = {n for j, n in enumerate(model.joints.names) if model.joints.limited[j]}
    units = calibration_units(calibration, names, {n: limits[n] for n in limits if n in limited})
    return {target: units[joints[target]] for target in chosen}


def _free(model: Model) -> str:
    """Patterns that are worth identifying first."""
    patterns = ["joints/*.damping", "joints/*.frictionloss"]
    patterns += ["joints/*.armature"] if np.any(np.asarray(model.joints.armature) > 0) else []
    patterns += ["actuators/*.kp"] if any(p.field == "kp" for p in paths.servo_gains(model)) else []
    return " ".join(f"'{p}'" for p in [*patterns, "actuators/*.delay"])
