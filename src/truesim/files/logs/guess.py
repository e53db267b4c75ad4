"""Guess of a mapping: which recorded column is which signal of a robot, in which unit.

Names decide first, then numbers: stamps tell their unit by their rate, angles by the range of their joint, and commands
by the position that follows them. A column that holds a position is never taken as a command.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.files.logs.command_checks import compare
from truesim.files.logs.log import Log
from truesim.files.logs.mapping import UNIT_FACTORS
from truesim.files.logs.read import TIME_COLUMN_NAMES
from truesim.physics.model import servos
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.columns import command_columns, joint_position_columns
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model

COMMAND_WORDS = {
    "cmd",
    "command",
    "commands",
    "commanded",
    "ctrl",
    "control",
    "target",
    "targets",
    "goal",
    "goals",
    "desired",
    "action",
    "actions",
    "setpoint",
    "setpoints",
    "ref",
    "reference",
    "references",
    "trajectory",
}
RATE_WORDS = {
    "vel",
    "velocity",
    "velocities",
    "qvel",
    "dq",
    "speed",
    "speeds",
    "qd",
    "acc",
    "acceleration",
    "accelerations",
    "ddq",
    "qdd",
    "qacc",
    "jerk",
}
EFFORT_WORDS = {
    "effort",
    "efforts",
    "torque",
    "torques",
    "tau",
    "current",
    "currents",
    "load",
    "force",
    "forces",
    "temperature",
    "voltage",
}
OTHER_WORDS = {"error", "errors"}
TORQUE_WORDS = {"effort", "torque", "torques", "tau"}
STAMP_WORDS = {"t", "time", "times", "timestamp", "stamp", "seconds", "sec", "millis", "elapsed", "clock"}
DEGREE_WORDS = {"deg", "degs", "degree", "degrees"}
PLAUSIBLE_PERIODS = (2e-4, 0.3)
"""Shortest and longest plausible time between samples [s]."""
FULL_PERCENT = 101.0
"""Largest number of positions in percent, with rounding."""
SIGN_CORRELATION = -0.9
"""Correlation below which a command is taken as flipped."""


@dataclasses.dataclass(frozen=True)
class Guess:
    """One line of a mapping."""

    target: str
    column: str
    unit: str = ""
    """Empty for SI units."""
    sign: int = 1
    doubts: tuple[str, ...] = ()

    def line(self) -> str:
        """The line in a mapping file, after its doubts as comments."""
        parts = [f'from = "{self.column}"']
        parts += [f'unit = "{self.unit}"'] if self.unit else []
        parts += [f"sign = {self.sign}"] if self.sign != 1 else []
        comments = "".join(f"# {doubt}\n" for doubt in self.doubts)
        return f'{comments}"{self.target}" = {{ {", ".join(parts)} }}'


def guess_mapping(columns: Mapping[str, np.ndarray], model: Model) -> list[Guess]:
    """Guess the columns of a log.

    Args:
        columns: Recorded numbers by name, stamps included.
        model: The robot.
    """
    time = _guess_time(columns)
    names = [name for name in columns if time is None or name != time.column]
    joints = [j for j, kind in enumerate(model.joints.kinds) if kind in (HINGE, SLIDE)]
    words = {name: set(_words(name)) for name in names}
    positions = [n for n in names if not words[n] & (COMMAND_WORDS | RATE_WORDS | EFFORT_WORDS | OTHER_WORDS)]
    commands = [n for n in names if words[n] & COMMAND_WORDS and not words[n] & (RATE_WORDS | OTHER_WORDS)]
    if any("kp" in servos.gains(model.actuators, i) for i in range(model.nu)):
        commands = [n for n in commands if not words[n] & EFFORT_WORDS] or commands
    labels = [model.joints.names[j] for j in joints]
    found = [] if time is None else [time]
    for j, column in _assign(labels, positions).items():
        unit, doubts = _guess_unit(columns[column], model, joints[j])
        doubts = () if unit == "deg" and words[column] & DEGREE_WORDS else doubts
        found.append(Guess(joint_position_columns(model, joints[j])[0], column, unit, doubts=doubts))
    taken = {g.column for g in found}
    places = {g.target: g for g in found}
    driven = [model.driven(i) for i in range(model.nu)]
    by_name = _assign(list(model.actuators.names), [c for c in commands if c not in taken]) or _assign(
        driven, [c for c in commands if c not in taken]
    )
    for i, column in by_name.items():
        own = places.get(f"qpos/{driven[i]}")
        joint = model.actuators.joints[i]
        unit = _guess_unit(columns[column], model, joint)[0] if joint >= 0 and own is not None and own.unit else ""
        found.append(_with_sign(Guess(command_columns(model)[i], column, unit), own, columns, time))
    return found if by_name else [*found, *_guess_torques(words, model)]


def _guess_torques(words: Mapping[str, set[str]], model: Model) -> list[Guess]:
    """Recorded torques of the joints, which are the controls of a robot whose actuators are all torque motors."""
    actuators = model.actuators
    if any(name != AFFINE for name in actuators.models) or np.any(actuators.bias):
        return []
    torques = [name for name, own in words.items() if own & TORQUE_WORDS and not own & RATE_WORDS]
    assigned = _assign([model.driven(i) for i in range(model.nu)], torques)
    doubt = "a torque, taken as the control of its motor [N m or N]"
    return [Guess(command_columns(model)[i], column, doubts=(doubt,)) for i, column in assigned.items()]


def mapping_text(found: Sequence[Guess], source: str) -> str:
    """The text of a mapping file.

    Args:
        found: Its lines.
        source: Name of the log that they were guessed from.
    """
    return "\n".join([f"# Guessed from {source}: check the comments.", "[columns]", *(g.line() for g in found)]) + "\n"


def _guess_time(columns: Mapping[str, np.ndarray]) -> Guess | None:
    named = [n for n in columns if n.lower() == "time" or n.lower() in TIME_COLUMN_NAMES]
    named += [n for n in columns if STAMP_WORDS & set(_words(n)) and n not in named]
    for name in named:
        values = columns[name]
        steps = np.diff(values)
        if len(steps) and np.all(np.isfinite(values)) and np.all(steps >= 0) and np.any(steps > 0):
            period = float(np.median(steps[steps > 0]))
            low, high = PLAUSIBLE_PERIODS
            fitting = [u for u in ("s", "ms", "us", "ns") if low <= period * UNIT_FACTORS[u] <= high]
            doubts = () if len(fitting) == 1 else (f"samples are {period:.4g} apart: is the unit right?",)
            unit = fitting[0] if fitting else "s"
            return Guess("time", name, "" if unit == "s" else unit, doubts=doubts)
    return None


def _guess_unit(values: np.ndarray, model: Model, joint: int) -> tuple[str, tuple[str, ...]]:
    """Unit of a position, and doubts about it."""
    known = values[np.isfinite(values)]
    if not len(known) or model.joints.kinds[joint] != HINGE:
        return "", ()
    low, high = float(known.min()), float(known.max())
    bounds = np.asarray(model.joints.range[joint]) if model.joints.limited[joint] else np.array([-2 * np.pi, 2 * np.pi])
    inside = low > bounds[0] - 0.5 and high < bounds[1] + 0.5
    degrees = np.radians(low) > bounds[0] - 0.5 and np.radians(high) < bounds[1] + 0.5
    if inside:
        small = max(abs(low), abs(high)) < 0.02
        return "", (("moves by less than 0.02 rad: is it in turns?",) if small else ())
    if degrees:
        text = f"runs from {low:.4g} to {high:.4g}: taken as degrees; if it is percent of a calibrated range, as "
        text += "LeRobot records by default, give the file of the calibration (--calibration)"
        return "deg", (text,) if max(abs(low), abs(high)) <= FULL_PERCENT else ()
    return "", (
        f"runs from {low:.4g} to {high:.4g}, beyond the joint's range {bounds[0]:.3g} to {bounds[1]:.3g}: unit?",
    )


def _with_sign(guess: Guess, own: Guess | None, columns: Mapping[str, np.ndarray], time: Guess | None) -> Guess:
    """The guess of a command with the sign that its position tells, and doubts."""
    if own is None or time is None:
        missing = "its joint's position was not found" if own is None else "no column holds time stamps"
        return dataclasses.replace(guess, doubts=(f"{missing}: not checked",))
    stamps = columns[time.column] * UNIT_FACTORS[time.unit or "s"]
    log = Log(np.maximum.accumulate(stamps), {"u": columns[guess.column], "q": columns[own.column]})
    found = float(compare(log, ["u"], ["q"]).correlation[0, 0])
    if found < SIGN_CORRELATION:
        return dataclasses.replace(guess, sign=-1, doubts=(f"moves against {own.column} ({found:.2f}): sign flipped",))
    if found < 0.5:
        return dataclasses.replace(
            guess, doubts=(f"hardly moves {own.column} ({found:.2f}): another joint's, or a torque?",)
        )
    return guess


def _assign(labels: Sequence[str], columns: Sequence[str]) -> dict[int, str]:
    """Column of each label by index: by the label in its name, else by the numbers in the names."""
    found = {}
    for k, label in enumerate(labels):
        own = _words(label)
        named = [c for c in columns if _contains(_words(c), own)]
        if named:
            found[k] = min(named, key=lambda c: len(_words(c)))
    if found:
        return found
    numbered = sorted((int(m[-1]), c) for c in columns if (m := re.findall(r"\d+", c)))
    if len(numbered) == len(labels) and len({n for n, _ in numbered}) == len(labels):
        return {k: c for k, (_, c) in enumerate(numbered)}
    return {}


def _contains(words: list[str], part: list[str]) -> bool:
    return any(words[k : k + len(part)] == part for k in range(len(words) - len(part) + 1))


def _words(name: str) -> list[str]:
    return [
        w for w in re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[0-9])", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if w
    ]
