"""The guessed mapping of a log: its lines, doubts and units, and the text of the mapping file."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs.guess import FULL_PERCENT, Guess, guess_mapping, mapping_text
from truesim.files.logs.lerobot import GRIPPER, calibration_units, is_lerobot
from truesim.files.logs.read import read_columns
from truesim.physics.model.columns import command_columns
from truesim.physics.model.model import Model

PERCENT_BELOW_ZERO = -2.0
"""Lowest value of a gripper in percent of its range."""


@dataclasses.dataclass(frozen=True)
class GuessedMapping:
    """Guessed meaning of the columns of a log."""

    source: str
    """Name of the log."""
    guesses: tuple[Guess, ...]
    missing: tuple[str, ...]
    """Commands of the robot that no column was found for."""

    @property
    def text(self) -> str:
        """Content of the mapping file."""
        return mapping_text(self.guesses, self.source)

    @property
    def needs_servo(self) -> bool:
        """True if motors of the robot file are position servos in the log."""
        return any(g.servo for g in self.guesses)

    @property
    def has_stamps(self) -> bool:
        """True if a column holds time stamps."""
        return any(g.target == "time" for g in self.guesses)

    def unit(self, guess: Guess) -> str:
        """Unit of the column of a guess; empty for SI units."""
        return "encoder steps" if guess.unit == "rev" else "percent" if guess.scale != 1 else guess.unit


def guess_columns(model: Model, log: Path, calibration: Path | None = None, only: Sequence[str] = ()) -> GuessedMapping:
    """Guess which column of a log is which signal of a robot, in which unit.

    Args:
        model: The robot.
        log: The log.
        calibration: LeRobot's calibration file, if positions are in percent.
        only: Patterns of the columns to choose from; all by default.
    """
    columns = read_columns(log)
    found = guess_mapping(columns, model, only)
    if len(found) < 2:
        shown = ", ".join(list(columns)[:8])
        raise TruesimError(
            f"No column of {log.name} could be matched with this robot, whose joints are "
            f"{', '.join(model.joints.names[:8])}; the log has {shown}. Is it the log of another robot?"
        )
    found = _percent(model, found, columns, calibration, is_lerobot(log))
    found += _unrecorded_commands(model, {g.target for g in found})
    targets = {g.target for g in found}
    missing = tuple(f"ctrl/{name}" for name in model.actuators.names if f"ctrl/{name}" not in targets)
    return GuessedMapping(log.name, tuple(found), missing)


def _unrecorded_commands(model: Model, targets: set[str]) -> list[Guess]:
    """Constant commands of joints of an MJCF robot that were not recorded; those of a URDF are held without any."""
    names = command_columns(model)
    if not targets.intersection(names) or (model.source is not None and model.source.format == "urdf"):
        return []
    found = []
    for i, target in enumerate(names):
        if target not in targets and f"qpos/{model.driven(i)}" not in targets:
            low, high = (float(end) for end in np.asarray(model.actuators.control_range[i]))
            value = float(np.clip(0.0, low, high))
            found.append(Guess(target, "", constant=value, doubts=(f"was not recorded: taken as {value:g}",)))
    return found


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
