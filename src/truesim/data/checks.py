"""What looks odd in a log: wrong units, channels that do not move, channels that clip."""

import numpy as np

from truesim.core.typing import Float
from truesim.data.columns import (
    command_columns,
    joint_position_columns,
    joint_velocity_columns,
    position_columns,
    sensor_columns,
)
from truesim.data.differentiate import derivatives
from truesim.data.log import Log
from truesim.data.sampling import sampling
from truesim.model.kinds import HINGE
from truesim.model.model import Model
from truesim.model.source import Finding

DEGREE = np.pi / 180
SLACK = 0.5
"""How far beyond its limits a recorded angle may be [rad]: soft stops and encoder offsets."""
FAST = 100.0
"""A hinge that turns faster than this is unusual [rad/s]: about 1,000 turns a minute."""
SLOW_PERIOD = 0.5
"""Time between samples that is unusually long [s]."""
LEVELS = 20
"""A channel with fewer different values than this is switched, not clipped."""
PLACES = ("jointpos", "ballquat", "actuatorpos", "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis")
"""Sensors of where things are; they rest at an extreme whenever the robot does."""
CLIPPED = 0.02
"""Part of the samples at one extreme from which on a channel counts as clipped."""


def oddities(log: Log, model: Model) -> tuple[Finding, ...]:
    """What a user should know of this log before it is fitted, most serious first.

    Args:
        log: A log with one row per stamp.
        model: The robot.
    """
    found = [*_stamps(log), *_degrees(log, model), *_rest(log, model), *_idle(log, model), *_clipping(log, model)]
    order = {"warning": 0, "note": 1}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def moves(values: Float[np.ndarray, "samples"]) -> bool:
    """Whether a signal moves by more than its noise, which is told from neighbouring samples."""
    known = values[np.isfinite(values)]
    if len(known) < 3:
        return False
    noise = np.std(np.diff(known, 2)) / np.sqrt(6)
    low, high = np.quantile(known, [0.005, 0.995])
    return bool(high - low > 10 * noise + 1e-9 * np.max(np.abs(known)))


def clipped(values: Float[np.ndarray, "samples"], low: float = np.nan, high: float = np.nan) -> float:
    """Part of the samples that stay at an extreme: the given bounds, or the signal's own if it rests there."""
    known = values[np.isfinite(values)]
    if len(known) < LEVELS or len(np.unique(known)) < LEVELS:
        return 0.0
    tolerance = 1e-6 * np.ptp(known)
    if np.isfinite(low) and np.isfinite(high):
        return float(np.mean((known <= low + tolerance) | (known >= high - tolerance)))
    ends = [known <= known.min() + tolerance, known >= known.max() - tolerance]
    return float(sum(np.mean(end) for end in ends if np.mean(end) > CLIPPED))


def _stamps(log: Log) -> list[Finding]:
    period = sampling(log).period
    if not period >= SLOW_PERIOD:
        return []
    text = (
        f"samples are {period:.3g} s apart; if the stamps are not in seconds, a mapping file can say so (unit = 'ms')."
    )
    return [Finding("time", text, "warning")]


def _degrees(log: Log, model: Model) -> list[Finding]:
    found = []
    for joint, kind in enumerate(model.joints.kinds):
        name = joint_position_columns(model, joint)[0]
        if kind != HINGE or name not in log.columns:
            continue
        velocity = joint_velocity_columns(model, joint)[0]
        measured = log.columns.get(velocity) if velocity not in log.derived else None
        rate = log.columns[velocity] if velocity in log.derived else derivatives(log.time, log.columns[name]).first
        bounds = model.joints.range[joint] if model.joints.limited[joint] else None
        if said := _looks_like_degrees(log.columns[name], rate, measured, bounds):
            column = velocity if said.startswith("velocity") else name
            text = f"{said}: it looks like degrees; a mapping file can say so (unit = 'deg')."
            found.append(Finding(column, text, "warning"))
    return found


def _looks_like_degrees(
    angle: np.ndarray, rate: np.ndarray, velocity: np.ndarray | None, bounds: np.ndarray | None
) -> str | None:
    """Why an angle, or its velocity, is probably not in radians."""
    known = angle[np.isfinite(angle)]
    if len(known) < 3:
        return None
    low, high = known.min(), known.max()
    if velocity is not None and (ratio := _ratio(rate, velocity)) is not None:
        if 0.8 < ratio * DEGREE < 1.25:
            return f"position changes {ratio:.0f} times as fast as the velocity column says"
        if 0.8 < ratio / DEGREE < 1.25:
            return f"velocity is {1 / ratio:.0f} times the rate of the position column"
    if bounds is not None:
        outside = max(bounds[0] - low, high - bounds[1]) > SLACK
        fits = low * DEGREE > bounds[0] - 0.1 and high * DEGREE < bounds[1] + 0.1
        span = f"runs from {low:.3g} to {high:.3g}, but the joint's range is {bounds[0]:.3g} to {bounds[1]:.3g} rad"
        return span if outside and fits else None
    speed = np.nanquantile(np.abs(rate), 0.99) if np.any(np.isfinite(rate)) else 0.0
    if np.ptp(known) > 4 * np.pi and speed > FAST:
        return f"runs from {low:.3g} to {high:.3g} at up to {speed:.3g} a second, much for radians"
    return None


def _ratio(rate: np.ndarray, velocity: np.ndarray) -> float | None:
    """How many times faster one signal is than the other, where both are known and move together."""
    known = np.isfinite(rate) & np.isfinite(velocity)
    x, y = velocity[known], rate[known]
    if np.sum(known) < 10 or not moves(x) or not moves(y):
        return None
    agree = abs(x @ y) > 0.7 * np.linalg.norm(x) * np.linalg.norm(y)
    return float(np.linalg.norm(y) / np.linalg.norm(x)) if agree else None


def _rest(log: Log, model: Model) -> list[Finding]:
    positions = [name for name in position_columns(model) if name in log.columns]
    if not positions or any(moves(log.columns[name]) for name in positions):
        return []
    text = "no joint moves: it shows what holds the robot at rest, but no inertia, damping or friction."
    return [Finding(log.name, text, "warning")]


def _idle(log: Log, model: Model) -> list[Finding]:
    found = []
    joints = [joint_position_columns(model, joint) for joint in range(len(model.joints.names))]
    for name in [*(columns[0] for columns in joints if len(columns) == 1), *command_columns(model)]:
        values = log.columns.get(name, np.zeros(0))
        known = values[np.isfinite(values)]
        if len(values) and not len(known):
            found.append(Finding(name, "has no values at all.", "warning"))
        elif len(known) > 1 and np.ptp(known) == 0:
            found.append(Finding(name, f"never changes from {known[0]:.6g}.", "note"))
    return found


def _clipping(log: Log, model: Model) -> list[Finding]:
    found = []
    for i, name in enumerate(command_columns(model)):
        limited = model.actuators.control_limited[i]
        bounds = model.actuators.control_range[i] if limited else (np.nan, np.nan)
        part = clipped(log.columns.get(name, np.zeros(0)), *bounds)
        if part > CLIPPED:
            where = "at the bound of the actuator" if limited else "at its largest or smallest value"
            found.append(Finding(name, f"is {where} in {100 * part:.0f} % of the samples.", "note"))
    velocities = [joint_velocity_columns(model, joint) for joint in range(len(model.joints.names))]
    sensed = [name for s in model.sensors.declared if s.kind not in PLACES for name in sensor_columns(s)]
    for name in [*(column for columns in velocities for column in columns), *sensed]:
        if name in log.columns and name not in log.derived and (part := clipped(log.columns[name])) > CLIPPED:
            found.append(Finding(name, f"rests at an extreme in {100 * part:.0f} % of the samples: clipped?", "note"))
    return found
