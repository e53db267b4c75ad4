"""Output of `truesim inspect ROBOT LOG --write-mapping FILE`: the mapping with its doubts, and the next command."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.markup import escape

from truesim.cli.console import results, warn
from truesim.cli.grouped import grouped
from truesim.core.errors import TruesimError
from truesim.files.logs.guess import ASSUMED_RATE, FULL_PERCENT, Guess, guess_mapping, mapping_text
from truesim.files.logs.lerobot import GRIPPER, calibration_units, is_lerobot
from truesim.files.logs.read import read_columns
from truesim.files.logs.read_many import log_files
from truesim.physics.model import paths
from truesim.physics.model.model import Model

NEW_SERVO = "joints/*:kp=50"
"""Option that makes motors servos, with a gain from which a fit begins."""
PERCENT_BELOW_ZERO = -2.0
"""Lowest value of a gripper in percent of its range."""


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
    columns = read_columns(logs[0])
    found = guess_mapping(columns, model, choices.columns)
    if len(found) < 2:
        shown = ", ".join(list(columns)[:8])
        raise TruesimError(
            f"No column of {logs[0].name} could be matched with this robot, whose joints are "
            f"{', '.join(model.joints.names[:8])}; the log has {shown}. Is it the log of another robot?"
        )
    found = _percent(model, found, columns, choices.calibration, is_lerobot(logs[0]))
    out.write_text(mapping_text(found, logs[0].name), encoding="utf-8")
    console = results(120)
    for g in found:
        unit = "percent" if g.scale != 1 else g.unit
        column = f"{g.target} = {g.column}" + (f" [{unit}]" if unit else "") + (" times -1" if g.sign < 0 else "")
        console.print(escape(column))
    for line in grouped((g.column, doubt) for g in found for doubt in g.doubts):
        warn(console, line)
    if found[0].target != "time":
        warn(console, f"no column holds time stamps: {out.name} assumes {ASSUMED_RATE:g} samples a second.")
    missing = [f"ctrl/{name}" for name in model.actuators.names if f"ctrl/{name}" not in {g.target for g in found}]
    if missing:
        warn(console, f"no column was found for {', '.join(missing)}: add it to {out.name}.")
    console.print(f"Mapping in {escape(str(out))}. Next:")
    words = ["truesim identify", str(robot), *(str(log) for log in logs[: max(len(logs) - 1, 1)])]
    words += ["--holdout", str(logs[-1])] if len(logs) > 1 else []
    servo = choices.servo or ([NEW_SERVO] if any(g.servo for g in found) else [])
    words += [f"--servo {shlex.quote(text)}" for text in servo]
    free = _free(model, servos=any(g.servo for g in found))
    console.print(escape(" ".join([*words, f"--mapping {out} --free {free} --out fit"])))


def _percent(
    model: Model,
    found: Sequence[Guess],
    columns: Mapping[str, np.ndarray],
    calibration: Path | None,
    lerobot: bool,
) -> list[Guess]:
    """The guesses, with scale and offset of positions and commands in percent of their range.

    LeRobot records all joints but the gripper in degrees if it is told so: if one of them exceeds a hundred percent.

    Args:
        model: The robot.
        found: Guesses.
        columns: Recorded numbers by name.
        calibration: LeRobot's calibration file, if positions are in percent.
        lerobot: Whether the log is a LeRobot data set.
    """
    joints = {g.target: g.target.split("/", 1)[1] for g in found if g.target.split("/")[0] in ("qpos", "ctrl")}
    beyond = [g for g in found if g.target in joints and _largest(columns[g.column]) > FULL_PERCENT]
    limits = {n: tuple(np.asarray(model.joints.range[j])) for j, n in enumerate(model.joints.names)}
    limits = {n: limits[n] for j, n in enumerate(model.joints.names) if model.joints.limited[j]}
    if calibration is not None:
        chosen = [target for target, name in joints.items() if name == GRIPPER or not beyond]
        names = sorted({joints[target] for target in chosen})
        units = calibration_units(calibration, names, {n: ends[0] for n, ends in limits.items()})
        doubt = "never exceeds 100: taken as percent; if the arm was recorded in degrees (use_degrees), give "
        doubt += 'unit = "deg" instead of scale'
        doubts = {target: () if joints[target] == GRIPPER else (doubt,) for target in chosen}
    else:
        chosen = [
            t for t, n in joints.items() if lerobot and n == GRIPPER and n in limits and _in_percent(found, columns, t)
        ]
        units = {n: ((ends[1] - ends[0]) / 100, ends[0]) for n, ends in limits.items()}
        doubts = dict.fromkeys(chosen, ("taken as percent of the joint's range in the robot file (or --calibration)",))
    return [
        dataclasses.replace(
            g, unit="", scale=units[joints[g.target]][0], offset=units[joints[g.target]][1], doubts=doubts[g.target]
        )
        if g.target in chosen
        else g
        for g in found
    ]


def _in_percent(found: Sequence[Guess], columns: Mapping[str, np.ndarray], target: str) -> bool:
    """True if the column of a target runs from 0 to 100, and not in radians."""
    values = next(columns[g.column] for g in found if g.target == target)
    return float(np.nanmin(values, initial=np.inf)) > PERCENT_BELOW_ZERO and 2 * np.pi < _largest(values) < FULL_PERCENT


def _largest(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values), initial=0.0))


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
