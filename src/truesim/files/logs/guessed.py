"""The guessed mapping of a log: its lines, doubts and units, and the text of the mapping file."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs.guess import FULL_PERCENT, Guess, guess_mapping, mapping_text
from truesim.files.logs.lerobot import GRIPPER, calibration_units
from truesim.files.logs.read import read_columns
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class GuessedMapping:
    """What the columns of a log probably are."""

    source: str
    """Name of the log."""
    guesses: tuple[Guess, ...]
    scales: Mapping[str, tuple[float, float]]
    """Scale and offset of signals in percent of a calibrated range, by name of the signal."""
    missing: tuple[str, ...]
    """Commands of the robot that no column was found for."""

    @property
    def text(self) -> str:
        """Content of the mapping file."""
        plain = [dataclasses.replace(g, unit="") if g.target in self.scales else g for g in self.guesses]
        text = mapping_text(plain, self.source)
        for target, (scale, offset) in self.scales.items():
            numbers = f"scale = {scale:.9g}, offset = {offset:.9g}"
            text = text.replace(f'"{target}" = {{ from', f'"{target}" = {{ {numbers}, from')
        return text

    def unit(self, guess: Guess) -> str:
        """Unit of the column of a guess; empty for SI units."""
        return "percent" if guess.target in self.scales else guess.unit


def guess_columns(model: Model, log: Path, calibration: Path | None = None) -> GuessedMapping:
    """Guess which column of a log is which signal of a robot, in which unit.

    Args:
        model: The robot.
        log: The log.
        calibration: LeRobot's calibration file, if positions are in percent.
    """
    columns = read_columns(log)
    found = guess_mapping(columns, model)
    if len(found) < 2:
        shown = ", ".join(list(columns)[:8])
        raise TruesimError(
            f"No column of {log.name} could be matched with this robot, whose joints are "
            f"{', '.join(model.joints.names[:8])}; the log has {shown}. Is it the log of another robot?"
        )
    scales = {} if calibration is None else _percent(model, found, columns, calibration)
    guesses = tuple(dataclasses.replace(g, doubts=()) if g.target in scales else g for g in found)
    targets = {g.target for g in found}
    missing = tuple(f"ctrl/{name}" for name in model.actuators.names if f"ctrl/{name}" not in targets)
    return GuessedMapping(log.name, guesses, scales, missing)


def _percent(
    model: Model, found: list[Guess], columns: Mapping[str, np.ndarray], calibration: Path
) -> dict[str, tuple[float, float]]:
    """Scale and offset of positions and commands in percent of their range, by target.

    LeRobot records all joints but the gripper in degrees if it is told so: if one of them exceeds a hundred percent.
    """
    own = [g for g in found if g.target.split("/")[0] in ("qpos", "ctrl")]
    joints = {g.target: g.target.split("/", 1)[1] for g in own}
    beyond = [g for g in own if np.nanmax(np.abs(columns[g.column]), initial=0.0) > FULL_PERCENT]
    chosen = [target for target, name in joints.items() if name == GRIPPER or not beyond]
    names = sorted({joints[target] for target in chosen})
    limits = {n: float(np.asarray(model.joints.range[j])[0]) for j, n in enumerate(model.joints.names) if n in names}
    limited = {n for j, n in enumerate(model.joints.names) if model.joints.limited[j]}
    units = calibration_units(calibration, names, {n: limits[n] for n in limits if n in limited})
    return {target: units[joints[target]] for target in chosen}
