"""Commands compared with positions: swapped columns, flipped signs, torques against positions, dead encoders."""

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
LESS = 0.2
"""Correlation by which a command must agree less with its own joint than with another to count as swapped."""
SAME_POSITION = 0.15
"""Difference of scale, and of means in standard deviations, up to which a command is the position itself."""
SWITCHED_LEVELS = 20
"""Commands with fewer distinct values are switched: their correlations say little."""
DEAD_ENCODER = "dead encoder"
"""Part of the message for which a log is refused."""


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
    out: list[Finding] = []
    for row, (i, command) in enumerate(drives.items()):
        own = model.actuators.joints[i]
        if own in places and _moves(log.columns[command]):
            at = list(places).index(own)
            out += _check(log, model, i, (command, list(places.values()), at), Comparison(*(x[row] for x in found)))
    return out


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


def _check(log: Log, model: Model, i: int, signals: tuple[str, list[str], int], found: Comparison) -> list[Finding]:
    """Findings about one command.

    Args:
        log: The log.
        model: The robot.
        i: The actuator.
        signals: The command, all positions, and which of them is the actuator's own.
        found: The command compared with each of the positions.
    """
    command, positions, at = signals
    own, other = found.correlation[at], int(np.argmax(np.abs(found.correlation)))
    best = found.correlation[other]
    position, servo = positions[at], "kp" in servos.gains(model.actuators, i)
    if not _moves(log.columns[position]):
        if not servo or not any(_moves(log.columns[name]) for name in positions):
            return []
        text = f"{DEAD_ENCODER}: it never changes, although {command} moves; leave it out (--channel) or repair it"
        return [Finding(position, f"{text}.", "warning")]
    if len(np.unique(log.columns[command])) < SWITCHED_LEVELS:
        return []
    if servo and other != at and best > FOLLOWS and abs(own) < best - LESS:
        text = f"drives {positions[other]} (correlation {best:.2f}), not {position} ({own:.2f}): swapped columns?"
    elif servo and own < -FOLLOWS:
        text = f"moves against {position} (correlation {own:.2f}): flipped sign? Give sign = -1 in a mapping file."
    elif servo and abs(best) < IGNORES:
        text = f"moves no joint (best correlation {best:.2f}): is it a torque? The actuator expects a position."
    elif not servo and own > FOLLOWS and _is_position(log, command, position, float(found.ratio[at])):
        name = model.actuators.names[i]
        text = f"looks like a position command, but the actuator expects a force: --servo 'actuators/{name}:kp=50'."
    else:
        return []
    return [Finding(command, text, "warning")]


def _is_position(log: Log, command: str, position: str, ratio: float) -> bool:
    """True if a command has scale and mean of a position."""
    u, q = (log.columns[name][np.isfinite(log.columns[name])] for name in (command, position))
    apart = abs(float(u.mean() - q.mean())) / max(float(q.std()), 1e-300)
    return abs(ratio - 1) < SAME_POSITION and apart < SAME_POSITION


def _correlate(u: np.ndarray, q: np.ndarray) -> np.ndarray:
    a, b = u - u.mean(axis=0), q - q.mean(axis=0)
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    return (a.T @ b) / np.where(scale > 1e-12, scale, np.inf)


def _moves(values: np.ndarray) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 1 and bool(np.ptp(known) > 0)
