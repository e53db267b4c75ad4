"""Commands compared with positions: swapped columns, flipped signs, torques, dead or stuck encoders, offsets."""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs.log import Log
from truesim.physics.model import servos
from truesim.physics.model.columns import command_columns, joint_position_columns
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

LONGEST_LAG = 0.3
"""Lag of a position behind its command up to which they are compared [s]. Larger suits slower servos."""
LAGS = 16
"""Number of lags that are compared."""
GRID_SAMPLES = 4000
"""Samples of the grid on which signals are compared, at most."""
FOLLOWS, IGNORES = 0.95, 0.3
"""Correlations above which a position follows a command, and below which it does not."""
WEAK = 0.8
"""Correlation below which half of the position servos of a robot do not follow: its commands are something else."""
LESS = 0.2
"""Correlation by which a command must agree less with its own joint than with another to count as swapped."""
SAME_POSITION = 0.15
"""Difference of scale, and of means in standard deviations, up to which a command is the position itself."""
SWITCHED_LEVELS = 20
"""Commands with fewer distinct values are switched: their correlations say little."""
DEAD_ENCODER = "dead encoder"
"""Part of the message for which a log is refused."""
HARDLY = 0.02
"""Standard deviation of a position, relative to that of its command, below which the joint hardly moves."""
STUCK_FRACTION, STUCK_COMMAND = 0.2, 0.25
"""A position that is constant for this fraction of a log, while its command covers that fraction of its range, is
stuck. Larger tolerates longer grasps."""
OFFSET, OFFSET_STEADINESS = 0.1, 3.0
"""Mean distance of a position from its command that is noted [rad], and its least ratio to the distance's standard
deviation: a load changes with the pose, a wrong zero does not."""


class Comparison(NamedTuple):
    """Commands compared with positions, at the lag at which each pair agrees best."""

    correlation: Float[np.ndarray, "*commands positions"]
    """Zero where one of them does not move."""
    ratio: Float[np.ndarray, "*commands positions"]
    """Standard deviation of the position over that of the command."""


def check_commands(log: Log, model: Model) -> list[Finding]:
    """Warnings about commands that the positions contradict.

    Args:
        log: A log with one row per stamp.
        model: The robot.
    """
    joints = [j for j, kind in enumerate(model.joints.kinds) if kind in (HINGE, SLIDE)]
    places = {j: joint_position_columns(model, j)[0] for j in joints}
    places = {j: name for j, name in places.items() if name in log.columns}
    drives = {
        i: name
        for i, name in enumerate(command_columns(model))
        if name in log.columns and model.actuators.joints[i] >= 0
    }
    if not places or not drives:
        return []
    found = compare(log, list(drives.values()), list(places.values()))
    own = {i: list(places).index(model.actuators.joints[i]) for i in drives if model.actuators.joints[i] in places}
    rows = {i: row for row, i in enumerate(drives)}
    servos_own = [abs(found.correlation[rows[i], at]) for i, at in own.items() if _is_servo(model, i)]
    weak = bool(servos_own) and len(servos_own) > 1 and float(np.median(servos_own)) < WEAK
    out: list[Finding] = []
    for i, at in own.items():
        if _moves(log.columns[drives[i]]):
            pair = Comparison(*(x[rows[i]] for x in found))
            out += _check(log, model, i, _Signals(drives[i], list(places.values()), at, weak), pair)
    return out


class _Signals(NamedTuple):
    """A command, all positions, which of them is the actuator's own, and whether most servos follow no command."""

    command: str
    positions: list[str]
    at: int
    weak: bool


def _is_servo(model: Model, i: int) -> bool:
    return "kp" in servos.gains(model.actuators, i)


def compare(log: Log, commands: list[str], positions: list[str]) -> Comparison:
    """Correlate commands with positions over a range of lags."""
    count = int(np.clip(len(log.time), 2, GRID_SAMPLES))
    grid = np.linspace(log.time[0], log.time[-1], count)
    q = np.nan_to_num(log.interpolate(positions, grid), nan=0.0)
    step = max(grid[1] - grid[0], 1e-12)
    lags = np.unique(np.linspace(0, min(round(LONGEST_LAG / step), count // 4), LAGS).astype(int))
    u = np.nan_to_num(log.hold(commands, grid), nan=0.0)
    best = np.zeros((len(commands), len(positions)))
    for lag in lags:
        now = _correlate(u[: count - lag], q[lag:])
        best = np.where(np.abs(now) > np.abs(best), now, best)
    ratio = np.std(q, axis=0)[None, :] / np.maximum(np.std(u, axis=0)[:, None], 1e-300)
    return Comparison(best, ratio)


def _check(log: Log, model: Model, i: int, signals: _Signals, found: Comparison) -> list[Finding]:
    """Findings about one command.

    Args:
        log: The log.
        model: The robot.
        i: The actuator.
        signals: The command and the positions.
        found: The command compared with each of the positions.
    """
    command, position, servo = signals.command, signals.positions[signals.at], _is_servo(model, i)
    if not _moves(log.columns[position]):
        if not servo or not any(_moves(log.columns[name]) for name in signals.positions):
            return []
        text = f"{DEAD_ENCODER}: it never changes, although {command} moves; leave it out (--channel) or repair it"
        return [Finding(position, f"{text}.", "warning")]
    own, ratio = float(found.correlation[signals.at]), float(found.ratio[signals.at])
    if servo and (said := _standstill(log, command, position, (own, ratio))):
        return [Finding(position, said, "warning")]
    if len(np.unique(log.columns[command])) < SWITCHED_LEVELS:
        return []
    if servo:
        return _check_servo(log, signals, found)
    if own > FOLLOWS and _is_position(log, command, position, ratio):
        name = model.actuators.names[i]
        text = f"looks like a position command, but the actuator expects a force: --servo 'actuators/{name}:kp=50'."
        return [Finding(command, text, "warning")]
    return []


def _check_servo(log: Log, signals: _Signals, found: Comparison) -> list[Finding]:
    """Findings about the command of a position servo."""
    command, positions, at, weak = signals
    position, own = positions[at], found.correlation[at]
    other = int(np.argmax(np.abs(found.correlation)))
    best = found.correlation[other]
    if other != at and best > FOLLOWS and abs(own) < best - LESS:
        text = f"drives {positions[other]} (correlation {best:.2f}), not {position} ({own:.2f}): swapped columns?"
    elif own < -FOLLOWS:
        text = f"moves against {position} (correlation {own:.2f}): flipped sign? Give sign = -1 in a mapping file."
    elif abs(best) < IGNORES:
        text = f"moves no joint (best correlation {best:.2f}): is it a torque? The actuator expects a position."
    elif weak and abs(own) < WEAK:
        text = (
            f"is not followed by {position} (correlation {own:.2f}): is it a torque? The actuator expects a position."
        )
    elif np.array_equal(log.columns[command], log.columns[position], equal_nan=True):
        text = f"equals {position} in every sample: it is the measured position, not what the servo was told."
    else:
        return _offset(log, command, position) if own > FOLLOWS else []
    return [Finding(command, text, "warning")]


def _standstill(log: Log, command: str, position: str, own: tuple[float, float]) -> str | None:
    """Sentence about a joint that hardly moves, or that stops, while its command moves.

    Args:
        log: The log.
        command: Command of a position servo.
        position: Position of its joint.
        own: Their correlation and the ratio of their standard deviations.
    """
    u, q = log.columns[command], log.columns[position]
    if abs(own[0]) < IGNORES and own[1] < HARDLY:
        return f"hardly moves ({np.nanstd(q):.2g}, {command} {np.nanstd(u):.2g}): a broken encoder, or a blocked joint?"
    known = np.flatnonzero(np.isfinite(q))
    edges = np.concatenate([[0], np.flatnonzero(np.diff(q[known]) != 0) + 1, [len(known)]])
    longest = int(np.argmax(np.diff(edges)))
    rows = known[edges[longest] : edges[longest + 1]]
    if len(rows) < max(STUCK_FRACTION * len(known), 3):
        return None
    during = u[rows[0] : rows[-1] + 1]
    if _travel(during) < STUCK_COMMAND * _travel(u):
        return None
    span = f"{log.time[rows[0]]:.4g} to {log.time[rows[-1]]:.4g} s"
    return f"stands still from {span} while {command} moves: a broken encoder, or a blocked joint?"


def _offset(log: Log, command: str, position: str) -> list[Finding]:
    """A note on a constant distance of a position from its command."""
    known = np.isfinite(log.columns[position])
    apart = log.columns[position][known] - log.hold([command], log.time[known])[:, 0]
    mean, std = float(np.nanmean(apart)), float(np.nanstd(apart))
    if abs(mean) < max(OFFSET, OFFSET_STEADINESS * std):
        return []
    text = (
        f"is {mean:+.3g} from {command} on average: if its zero is wrong, give offset = {-mean:.4g} in a mapping file."
    )
    return [Finding(position, text, "note")]


def _is_position(log: Log, command: str, position: str, ratio: float) -> bool:
    """True if a command has scale and mean of a position."""
    u, q = (log.columns[name][np.isfinite(log.columns[name])] for name in (command, position))
    apart = abs(float(u.mean() - q.mean())) / max(float(q.std()), 1e-300)
    return abs(ratio - 1) < SAME_POSITION and apart < SAME_POSITION


def _correlate(u: np.ndarray, q: np.ndarray) -> np.ndarray:
    a, b = u - u.mean(axis=0), q - q.mean(axis=0)
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    return (a.T @ b) / np.where(scale > 1e-12, scale, np.inf)


def _travel(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def _moves(values: np.ndarray) -> bool:
    return _travel(values) > 0
