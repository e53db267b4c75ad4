"""Guess of a mapping: which recorded column is which signal of a robot, in which unit.

Names decide first, then numbers: stamps tell their unit by their rate, angles by the range of their joint, and commands
by the position that follows them. A column that holds a position is never taken as a command.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.files.logs.column_names import Roles, assign, is_torque, roles, split_words
from truesim.files.logs.command_checks import FOLLOWS, compare
from truesim.files.logs.log import Log
from truesim.files.logs.mapping import UNIT_FACTORS
from truesim.files.logs.read import TIME_COLUMN_NAMES
from truesim.physics.model import servos
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.columns import command_columns, joint_position_columns
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.targets import matches_pattern

STAMP_WORDS = {
    *("t", "time", "times", "timestamp", "timestamps", "stamp", "stamps", "seconds", "sec", "millis", "elapsed"),
    *("clock", "datetime", "epoch", "ts", "zeit"),
}
DEGREE_WORDS = {"deg", "degs", "degree", "degrees"}
PLAUSIBLE_PERIODS = (2e-4, 0.3)
"""Shortest and longest plausible time between samples [s]."""
MIN_STEPS, STEADY = 20, 0.2
"""Samples, and steadiness of the steps, from which on a column without such a name may hold stamps."""
ASSUMED_RATE = 100.0
"""Sampling rate of a log without stamps, for the user to correct [Hz]."""
STEPS_A_TURN = 4096
"""Steps a turn of the absolute encoders of Feetech and Dynamixel servos."""
FULL_PERCENT = 101.0
"""Largest number of positions in percent, with rounding."""
HINGE_MARGIN, SLIDE_MARGIN = 0.5, 0.1
"""Distance beyond a joint's range that its positions may have: [rad], or as a fraction of the range."""
UNIT_NAMES = {"deg": "degrees", "cm": "centimeters", "mm": "millimeters"}
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
    scale: float = 1.0
    offset: float = 0.0
    """In SI units."""
    doubts: tuple[str, ...] = ()
    servo: bool = False
    """True if it is a position command of an actuator that is a motor in the robot file."""
    constant: float | None = None
    """Value in place of a column [SI units]."""

    def line(self) -> str:
        """The line in a mapping file, after its doubts as comments."""
        comments = "".join(f"# {doubt}\n" for doubt in self.doubts)
        if self.constant is not None:
            return f'{comments}"{self.target}" = {self.constant:.9g}'
        parts = [f'from = "{self.column}"']
        parts += [f'unit = "{self.unit}"'] if self.unit else []
        parts += [f"sign = {self.sign}"] if self.sign != 1 else []
        parts += [f"scale = {self.scale:.9g}"] if self.scale != 1 else []
        parts += [f"offset = {self.offset:.9g}"] if self.offset else []
        return f'{comments}"{self.target}" = {{ {", ".join(parts)} }}'


def guess_mapping(columns: Mapping[str, np.ndarray], model: Model, only: Sequence[str] = ()) -> list[Guess]:
    """Guess the columns of a log.

    Args:
        columns: Recorded numbers by name, stamps included.
        model: The robot.
        only: Patterns of the columns to choose from, stamps aside; all by default.
    """
    time = _guess_time(columns)
    names = [name for name in columns if time is None or name != time.column]
    names = [name for name in names if not only or any(matches_pattern(name, pattern) for pattern in only)]
    joints = [j for j, kind in enumerate(model.joints.kinds) if kind in (HINGE, SLIDE)]
    labels = [model.joints.names[j] for j in joints]
    role = roles(names, labels)
    found = [] if time is None else [time]
    places = assign(labels, role.positions)
    for j, column in places.columns.items():
        guess = Guess(joint_position_columns(model, joints[j])[0], column)
        found.append(_with_unit(guess, columns[column], model, joints[j]))
    if places.doubts:
        found[-len(places.columns)] = _doubted(found[-len(places.columns)], places.doubts)
    return [*found, *_guess_commands(columns, model, role, found)]


def _guess_commands(
    columns: Mapping[str, np.ndarray], model: Model, role: Roles, measured: Sequence[Guess]
) -> list[Guess]:
    """Controls: the torques of motors, and what servos were told.

    Args:
        columns: Recorded numbers by name.
        model: The robot.
        role: What the columns hold.
        measured: Guessed stamps and positions.
    """
    taken = {g.column for g in measured}
    motors = [i for i in range(model.nu) if _is_motor(model, i)]
    moving = [c for c in role.torques if c not in taken and np.ptp(np.nan_to_num(columns[c])) > 0]
    torques = assign([model.driven(i) for i in motors], moving)
    commands = [c for c in role.commands if c not in taken]
    if not torques.columns:
        return _told(columns, model, range(model.nu), commands, measured)
    told = [c for c in commands if not is_torque(c, model.joints.names)]
    other = f"; --servo 'joints/*:kp=50' takes position commands ({told[0]}) instead" if told else ""
    doubt = f"a torque, taken as the control of its motor [N m or N]{other}"
    names = command_columns(model)
    found = [Guess(names[motors[k]], c, doubts=(doubt,)) for k, c in torques.columns.items()]
    found = _first_doubted(found, torques.doubts)
    named = [c for c in told if any(set(split_words(c)) >= set(split_words(n)) for n in _servo_names(model, motors))]
    servos_left = [i for i in range(model.nu) if i not in motors]
    return [*found, *(_told(columns, model, servos_left, named, measured) if named else [])]


def _servo_names(model: Model, motors: Sequence[int]) -> list[str]:
    """Names of the actuators that are no motors, and of their joints."""
    others = [i for i in range(model.nu) if i not in motors]
    return [name for i in others for name in (model.actuators.names[i], model.driven(i))]


def _told(
    columns: Mapping[str, np.ndarray],
    model: Model,
    actuators: Sequence[int],
    commands: Sequence[str],
    measured: Sequence[Guess],
) -> list[Guess]:
    """Commands of some actuators, by their names or by the joints that they drive."""
    own = {g.target: g for g in measured}
    driven = [model.driven(i) for i in actuators]
    like = [g.column for g in measured[1:]]
    told = [c for c in commands if not is_torque(c, model.joints.names)]
    chosen = told if any("kp" in servos.gains(model.actuators, i) for i in actuators) and told else commands
    by_name = assign([model.actuators.names[i] for i in actuators], chosen, like)
    if not by_name.columns:
        by_name = assign(driven, chosen, like)
    found = []
    for k, column in by_name.columns.items():
        i = actuators[k]
        place, joint = own.get(f"qpos/{driven[k]}"), model.actuators.joints[i]
        guess = Guess(command_columns(model)[i], column)
        if joint >= 0 and place is not None and place.unit:
            guess = dataclasses.replace(_with_unit(guess, columns[column], model, joint), doubts=())
        found.append(_with_sign(guess, place, columns, own.get("time"), _is_motor(model, i)))
    return _first_doubted(found, by_name.doubts)


def _is_motor(model: Model, actuator: int) -> bool:
    """True for a torque motor."""
    return model.actuators.models[actuator] == AFFINE and not np.any(model.actuators.bias[actuator])


def _first_doubted(found: list[Guess], doubts: tuple[str, ...]) -> list[Guess]:
    """Guesses of one role, the first of them with doubts about all."""
    return [_doubted(found[0], doubts), *found[1:]] if found else []


def _doubted(guess: Guess, doubts: tuple[str, ...]) -> Guess:
    return dataclasses.replace(guess, doubts=(*guess.doubts, *doubts))


def mapping_text(found: Sequence[Guess], source: str) -> str:
    """The text of a mapping file.

    Args:
        found: Its lines.
        source: Name of the log that they were guessed from.
    """
    lines = [f"# Guessed from {source}: check the comments."]
    if not any(g.target == "time" for g in found):
        lines += ["[file]", "# no column holds time stamps: how many samples a second?", f"rate = {ASSUMED_RATE}"]
    return "\n".join([*lines, "[columns]", *(g.line() for g in found)]) + "\n"


def _guess_time(columns: Mapping[str, np.ndarray]) -> Guess | None:
    """The column of stamps: of those with such a name, the first that never decreases, else the first that grows."""
    named = [n for n in columns if n.lower() == "time" or n.lower() in TIME_COLUMN_NAMES]
    named += [n for n in columns if STAMP_WORDS & set(split_words(n)) and n not in named]
    steps = {n: np.diff(columns[n][np.isfinite(columns[n])]) for n in named}
    steps = {n: each for n, each in steps.items() if np.mean(each > 0) > 0.1}
    name = next((n for n, each in steps.items() if np.all(each >= 0)), next(iter(steps), None))
    unnamed: tuple[str, ...] = ()
    if name is None:
        steps = {n: np.diff(values) for n, values in columns.items() if _looks_like_stamps(values)}
        name, unnamed = next(iter(steps), None), ("grows steadily: taken as time stamps",)
    if name is None:
        return None
    each = steps[name]
    period = float(np.median(each[each > 0]))
    low, high = PLAUSIBLE_PERIODS
    fitting = [u for u in ("s", "ms", "us", "ns") if low <= period * UNIT_FACTORS[u] <= high]
    doubts: tuple[str, ...] = () if len(fitting) == 1 else (f"samples are {period:.4g} apart: is the unit right?",)
    doubts += unnamed
    doubts += (f"decreases {np.sum(each < 0)} times",) if np.any(each < 0) else ()
    unit = fitting[0] if fitting else "s"
    return Guess("time", name, "" if unit == "s" else unit, doubts=doubts)


def _looks_like_stamps(values: np.ndarray) -> bool:
    """True for numbers that grow in every sample, in steps of nearly one size; numbers of rows grow by one."""
    steps = np.diff(values)
    if len(steps) < MIN_STEPS or not np.all(steps > 0):
        return False
    period = float(np.median(steps))
    return period != 1 and float(np.median(np.abs(steps - period))) < STEADY * period


def _with_unit(guess: Guess, values: np.ndarray, model: Model, joint: int) -> Guess:
    """The guess of a position with its unit, and doubts about it."""
    unit, doubts = _guess_unit(values, model, joint)
    if unit == "deg" and (set(split_words(guess.column)) & DEGREE_WORDS or "°" in guess.column):
        doubts = ()
    if not unit and doubts and model.joints.kinds[joint] == HINGE and _are_encoder_steps(values):
        low, high = np.nanmin(values), np.nanmax(values)
        doubt = f"integers from {low:g} to {high:g}: taken as encoder steps, {STEPS_A_TURN} a turn, zero in the middle"
        doubts = (f"{doubt}; sign and offset depend on how the servo is mounted",)
        return dataclasses.replace(guess, unit="rev", scale=1 / STEPS_A_TURN, offset=-np.pi, doubts=doubts)
    return dataclasses.replace(guess, unit=unit, doubts=doubts)


def _are_encoder_steps(values: np.ndarray) -> bool:
    """True for the integers of an absolute encoder."""
    known = values[np.isfinite(values)]
    return bool(np.all(known == np.round(known)) and known.min() >= 0 and FULL_PERCENT < known.max() < STEPS_A_TURN)


def _guess_unit(values: np.ndarray, model: Model, joint: int) -> tuple[str, tuple[str, ...]]:
    """Unit of a position, and doubts about it."""
    known = values[np.isfinite(values)]
    if not len(known):
        return "", ()
    low, high = float(known.min()), float(known.max())
    hinge, limited = model.joints.kinds[joint] == HINGE, model.joints.limited[joint]
    bounds = np.asarray(model.joints.range[joint]) if limited else np.array([-1, 1]) * (2 * np.pi if hinge else np.inf)
    margin = HINGE_MARGIN if hinge else SLIDE_MARGIN * float(np.ptp(bounds))
    fitting = [
        unit
        for unit in (("rad", "deg") if hinge else ("m", "cm", "mm"))
        if low * UNIT_FACTORS[unit] > bounds[0] - margin and high * UNIT_FACTORS[unit] < bounds[1] + margin
    ]
    if not fitting:
        ends = f"{bounds[0]:.3g} to {bounds[1]:.3g}"
        return "", (f"runs from {low:.4g} to {high:.4g}, beyond the joint's range {ends}: unit?",)
    if fitting[0] in ("rad", "m"):
        small = hinge and max(abs(low), abs(high)) < 0.02
        return "", (("moves by less than 0.02 rad: is it in turns?",) if small else ())
    text = f"runs from {low:.4g} to {high:.4g}: taken as {UNIT_NAMES[fitting[0]]}"
    if max(abs(low), abs(high)) > FULL_PERCENT:
        return fitting[0], ()
    advice = "; if it is percent of a calibrated range, as LeRobot records by default, give the file of the calibration"
    return fitting[0], (f"{text}{advice} (--calibration)" if hinge else text,)


def _with_sign(
    guess: Guess, own: Guess | None, columns: Mapping[str, np.ndarray], time: Guess | None, motor: bool
) -> Guess:
    """The guess of a command with the sign that its position tells, and doubts.

    Args:
        guess: The command.
        own: The position of its joint.
        columns: Recorded numbers by name.
        time: The stamps.
        motor: Whether the actuator is a motor, so that a position command needs a servo.
    """
    if own is None or time is None:
        missing = "its joint's position was not found" if own is None else "no column holds time stamps"
        return dataclasses.replace(guess, doubts=(f"{missing}: not checked",))
    stamps = columns[time.column] * UNIT_FACTORS[time.unit or "s"]
    known = np.isfinite(stamps)
    log = Log(
        np.maximum.accumulate(stamps[known]), {"u": columns[guess.column][known], "q": columns[own.column][known]}
    )
    found = float(compare(log, ["u"], ["q"]).correlation[0, 0])
    if found < SIGN_CORRELATION:
        doubt = f"moves against {own.column} ({found:.2f}): sign flipped"
        return dataclasses.replace(guess, sign=-1, doubts=(doubt,))
    if motor and found > FOLLOWS:
        doubt = "a position command, but the actuator is a motor: --servo makes it a servo"
        return dataclasses.replace(guess, doubts=(doubt,), servo=True)
    if found < 0.5 and not motor:
        doubt = f"hardly moves {own.column} ({found:.2f}): another joint's, or a torque?"
        return dataclasses.replace(guess, doubts=(doubt,))
    return guess
