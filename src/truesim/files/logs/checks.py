"""Anomalies of a log: probable unit errors, channels without motion, clipped channels."""

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs.command_checks import check_commands
from truesim.files.logs.differentiate import derivatives
from truesim.files.logs.log import Log
from truesim.files.logs.sampling import sampling
from truesim.physics.model.columns import (
    command_columns,
    joint_position_columns,
    joint_velocity_columns,
    position_columns,
    sensor_columns,
)
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

RADIANS_PER_DEGREE = np.pi / 180
LIMIT_TOLERANCE = 0.5
"""Distance beyond the joint limits that a recorded angle may have [rad]: soft stops and encoder offsets."""
LARGEST_RADIANS = 2 * np.pi
"""Angle beyond the joint limits from which on degrees are suspected [rad]; smaller ones have another zero."""
UNUSUAL_SPEED = 100.0
"""Speed of a hinge above which degrees are suspected [rad/s]: about 1,000 revolutions per minute."""
UNUSUAL_PERIOD = 0.5
"""Sampling period above which a wrong time unit is suspected [s]."""
MIN_CLIPPED_LEVELS = 20
"""A channel with fewer distinct values counts as switched, not as clipped."""
POSE_SENSORS = (
    "jointpos",
    "ballquat",
    "actuatorpos",
    "framepos",
    "framequat",
    "framexaxis",
    "frameyaxis",
    "framezaxis",
)
"""Kinds of sensors of positions and orientations; at rest they stay at an extreme without being clipped."""
CLIPPED_FRACTION = 0.02
"""Fraction of samples at an extreme above which a channel counts as clipped."""


def anomalies(log: Log, model: Model) -> tuple[Finding, ...]:
    """Anomalies that a user should know before fitting this log, warnings first.

    Args:
        log: A log with one row per stamp.
        model: The robot.
    """
    found = [*_stamps(log), *(units := [*_degrees(log, model), *_beyond_range(log, model)])]
    found += check_commands(log, model)
    found += [*_at_rest(log, model), *_idle(log, model), *([] if units else _clipping(log, model))]
    order = {"warning": 0, "note": 1}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def is_moving(values: Float[np.ndarray, " samples"]) -> bool:
    """True if a signal varies by more than its noise, which is estimated from second differences."""
    known = values[np.isfinite(values)]
    if len(known) < 3:
        return False
    noise = np.std(np.diff(known, 2)) / np.sqrt(6)
    low, high = np.quantile(known, [0.005, 0.995])
    return bool(high - low > 10 * noise + 1e-9 * np.max(np.abs(known)))


def clipped_fraction(values: Float[np.ndarray, " samples"], low: float = np.nan, high: float = np.nan) -> float:
    """Fraction of samples at an extreme: at the given bounds, else at the signal's own minimum and maximum.

    Args:
        values: The signal.
        low: Lower bound; NaN if there is none.
        high: Upper bound; NaN if there is none.
    """
    known = values[np.isfinite(values)]
    if len(known) < MIN_CLIPPED_LEVELS or len(np.unique(known)) < MIN_CLIPPED_LEVELS:
        return 0.0
    tolerance = 1e-6 * np.ptp(known)
    if np.isfinite(low) and np.isfinite(high):
        return float(np.mean((known <= low + tolerance) | (known >= high - tolerance)))
    ends = [known <= known.min() + tolerance, known >= known.max() - tolerance]
    return float(sum(np.mean(end) for end in ends if np.mean(end) > CLIPPED_FRACTION))


def _stamps(log: Log) -> list[Finding]:
    period = sampling(log).period
    if not period >= UNUSUAL_PERIOD:
        return []
    unit = "if the stamps are not in seconds, give their unit in a mapping file (unit = 'ms')"
    text = f"samples are {period:.3g} s apart; {unit}."
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
        bounds = np.asarray(model.joints.range[joint]) if model.joints.limited[joint] else None
        if said := _looks_like_degrees(log.columns[name], rate, measured, bounds):
            column = velocity if said.startswith("velocity") else name
            text = f"{said}: it looks like degrees; give the unit in a mapping file (unit = 'deg')."
            found.append(Finding(column, text, "warning"))
    return found


def _beyond_range(log: Log, model: Model) -> list[Finding]:
    """Positions beyond the range of their joint: in another unit, which is not degrees, or with another zero."""
    found = []
    for joint, kind in enumerate(model.joints.kinds):
        name = joint_position_columns(model, joint)[0]
        if kind not in (HINGE, SLIDE) or name not in log.columns or not model.joints.limited[joint]:
            continue
        known = log.columns[name][np.isfinite(log.columns[name])]
        low, high = np.asarray(model.joints.range[joint], float)
        tolerance = max(LIMIT_TOLERANCE, high - low) if kind == HINGE else high - low
        factor = RADIANS_PER_DEGREE if kind == HINGE else 0.0
        ends = (known.min(), known.max()) if len(known) else (low, high)
        beyond, far = max(low - ends[0], ends[1] - high), max(-ends[0], ends[1]) > LARGEST_RADIANS
        fits_in_degrees = factor and ends[0] * factor > low - 0.1 and ends[1] * factor < high + 0.1
        unit = "rad" if kind == HINGE else "m"
        text = f"runs from {ends[0]:.3g} to {ends[1]:.3g}, but the joint's range is {low:.3g} to {high:.3g} {unit}"
        if beyond > tolerance and not fits_in_degrees:
            text += ": in which unit is it? Give unit or scale in a mapping file."
        elif kind == HINGE and beyond > LIMIT_TOLERANCE and not far:
            text += ": is its zero another than the robot file's? Give offset, or unit = 'deg', in a mapping file."
        else:
            continue
        found.append(Finding(name, text, "warning"))
    return found


def _looks_like_degrees(
    angle: np.ndarray, rate: np.ndarray, velocity: np.ndarray | None, bounds: np.ndarray | None
) -> str | None:
    """Reason to assume that an angle, or its velocity, is not in radians; None if there is none."""
    known = angle[np.isfinite(angle)]
    if len(known) < 3:
        return None
    low, high = known.min(), known.max()
    if velocity is not None and (ratio := _ratio(rate, velocity)) is not None:
        if 0.8 < ratio * RADIANS_PER_DEGREE < 1.25:
            return f"position changes {ratio:.0f} times as fast as the velocity column"
        if 0.8 < ratio / RADIANS_PER_DEGREE < 1.25:
            return f"velocity is {1 / ratio:.0f} times the rate of the position column"
    if bounds is not None:
        outside = max(bounds[0] - low, high - bounds[1]) > LIMIT_TOLERANCE and max(-low, high) > LARGEST_RADIANS
        fits = low * RADIANS_PER_DEGREE > bounds[0] - 0.1 and high * RADIANS_PER_DEGREE < bounds[1] + 0.1
        span = f"runs from {low:.3g} to {high:.3g}, but the joint's range is {bounds[0]:.3g} to {bounds[1]:.3g} rad"
        return span if outside and fits else None
    speed = np.nanquantile(np.abs(rate), 0.99) if np.any(np.isfinite(rate)) else 0.0
    if np.ptp(known) > 4 * np.pi and speed > UNUSUAL_SPEED:
        return f"runs from {low:.3g} to {high:.3g} at up to {speed:.3g} per second, too fast for radians"
    return None


def _ratio(rate: np.ndarray, velocity: np.ndarray) -> float | None:
    """Ratio of the rate to the velocity where both are known; None if they do not move together."""
    known = np.isfinite(rate) & np.isfinite(velocity)
    x, y = velocity[known], rate[known]
    if np.sum(known) < 10 or not is_moving(x) or not is_moving(y):
        return None
    agree = abs(x @ y) > 0.7 * np.linalg.norm(x) * np.linalg.norm(y)
    return float(np.linalg.norm(y) / np.linalg.norm(x)) if agree else None


def _at_rest(log: Log, model: Model) -> list[Finding]:
    positions = [name for name in position_columns(model) if name in log.columns]
    if not positions or any(is_moving(log.columns[name]) for name in positions):
        return []
    text = "no joint moves: the log determines static forces, but no inertia, damping or friction."
    return [Finding(log.name, text, "warning")]


def _idle(log: Log, model: Model) -> list[Finding]:
    found = []
    joints = [joint_position_columns(model, joint) for joint in range(len(model.joints.names))]
    for name in [*(columns[0] for columns in joints if len(columns) == 1), *command_columns(model)]:
        values = log.columns.get(name, np.zeros(0))
        known = values[np.isfinite(values)]
        if len(values) and not len(known):
            found.append(Finding(name, "has no values.", "warning"))
        elif len(known) > 1 and np.ptp(known) == 0:
            found.append(Finding(name, f"never changes from {known[0]:.6g}.", "note"))
    return found


def _clipping(log: Log, model: Model) -> list[Finding]:
    found = []
    for i, name in enumerate(command_columns(model)):
        limited = model.actuators.control_limited[i]
        bounds = model.actuators.control_range[i] if limited else (np.nan, np.nan)
        part = clipped_fraction(log.columns.get(name, np.zeros(0)), *bounds)
        if part > CLIPPED_FRACTION:
            where = "at the bound of the actuator" if limited else "at its largest or smallest value"
            found.append(Finding(name, f"is {where} in {100 * part:.0f} % of the samples.", "note"))
    velocities = [joint_velocity_columns(model, joint) for joint in range(len(model.joints.names))]
    sensed = [name for s in model.sensors.declared if s.kind not in POSE_SENSORS for name in sensor_columns(s)]
    for name in [*(column for columns in velocities for column in columns), *sensed]:
        if name not in log.columns or name in log.derived:
            continue
        if (part := clipped_fraction(log.columns[name])) > CLIPPED_FRACTION:
            text = f"is at its minimum or maximum in {100 * part:.0f} % of the samples: clipped?"
            found.append(Finding(name, text, "note"))
    return found
