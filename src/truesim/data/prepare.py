"""A log made ready for use: one row per stamp, continuous angles and orientations, a velocity for every position."""

import dataclasses

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.data.checks import oddities
from truesim.data.columns import (
    joint_position_columns,
    joint_velocity_columns,
    quaternion_columns,
    sensor_columns,
)
from truesim.data.differentiate import HALF_WIDTH, derivatives, orientation_derivatives
from truesim.data.log import STAMP_TOLERANCE, Log
from truesim.data.orientation import continuous
from truesim.data.sampling import missing_samples
from truesim.model.kinds import BALL, FREE, HINGE, SLIDE
from truesim.model.model import Model
from truesim.model.source import Finding

TURN = 2 * np.pi
POSITION_SENSORS, VELOCITY_SENSORS = ("jointpos", "ballquat"), ("jointvel", "ballangvel")


def prepared(log: Log, model: Model, *, half_width: float = HALF_WIDTH, gap: float | None = None) -> Log:
    """The log of this robot, cleaned; what was done to it is in `findings`, what was computed in `derived`.

    - What looks odd, such as angles in degrees, is said and left as it is.
    - Rows with one stamp become one row, each column with its last value. Infinite values count as missing (NaN).
    - Angles that wrap around are made continuous, unless that would leave the joint's limits.
    - Orientations get unit length and do not jump between q and -q.
    - A joint without position columns takes them from a sensor that reads them, if there is one. Velocities are taken
      from sensors, or derived from positions, where they were not recorded.

    Missing samples stay missing. Preparing a prepared log changes nothing.

    Args:
        log: The recording.
        model: The robot.
        half_width: How far the differentiator looks to each side [s].
        gap: Longest step that it looks across [s]; five sampling periods if not given.
    """
    if not len(log.time):
        raise TruesimError(f"{log.name} has no samples.")
    log = _one_row_per_stamp(log)
    columns = dict(log.columns)
    notes = _unwrap(columns, model) + _straighten(columns, model)
    known = set(columns)
    _add_positions(columns, model)
    _add_velocities(columns, log.time, model, half_width, gap)
    derived = log.derived | (set(columns) - known)
    clean = dataclasses.replace(log, columns=columns, derived=frozenset(derived))
    findings = dict.fromkeys((*log.findings, *oddities(clean, model), *notes, *_missing(clean)))
    return dataclasses.replace(clean, findings=tuple(findings))


def unwrapped(angles: Float[np.ndarray, "samples"]) -> Float[np.ndarray, "samples"]:
    """Angles without jumps of more than half a turn between samples [rad]; missing samples stay missing."""
    result = angles.copy()
    known = np.isfinite(angles)
    result[known] = np.unwrap(angles[known])
    return result


def _one_row_per_stamp(log: Log) -> Log:
    new = np.concatenate([[True], np.diff(log.time) > STAMP_TOLERANCE])
    starts = np.flatnonzero(new)
    repeated = len(log.time) - len(starts)
    columns = {name: np.where(np.isfinite(values), values, np.nan) for name, values in log.columns.items()}
    if not repeated:
        return dataclasses.replace(log, columns=columns)
    for name, values in columns.items():
        last = np.maximum.reduceat(np.where(np.isfinite(values), np.arange(len(values)), -1), starts)
        columns[name] = np.where(last < 0, np.nan, values[last])
    note = Finding("time", f"{repeated} rows repeat the stamp of the row before and were merged into it.", "note")
    return dataclasses.replace(log, time=log.time[starts], columns=columns, findings=(*log.findings, note))


def _unwrap(columns: dict[str, np.ndarray], model: Model) -> list[Finding]:
    """Makes the angles of hinges continuous, in place."""
    notes = []
    for name, joint in hinge_columns(model):
        if name not in columns:
            continue
        known = columns[name][np.isfinite(columns[name])]
        jumps = int(np.sum(np.abs(np.diff(known)) > np.pi))
        if not jumps or np.ptp(known) > TURN * 1.001:  # an encoder that counts turns has no need of it
            continue
        angles = unwrapped(columns[name])
        low, high = model.joints.range[joint] if model.joints.limited[joint] else (-np.inf, np.inf)
        if np.nanmin(angles) < low - np.pi / 6 or np.nanmax(angles) > high + np.pi / 6:
            text = f"jumps by half a turn or more {jumps} times; left so, since unwrapping it would pass the limits."
            notes.append(Finding(name, text, "warning"))
        else:
            columns[name] = angles
            notes.append(Finding(name, f"wraps around {jumps} times; made continuous.", "note"))
    return notes


def hinge_columns(model: Model) -> list[tuple[str, int]]:
    """Every column that holds the angle of a hinge, with its joint."""
    hinges = [joint for joint, kind in enumerate(model.joints.kinds) if kind == HINGE]
    own = [(joint_position_columns(model, joint)[0], joint) for joint in hinges]
    encoders = [sensor for sensor in model.sensors.declared if sensor.kind == "jointpos" and sensor.object in hinges]
    return own + [(sensor_columns(sensor)[0], sensor.object) for sensor in encoders]


def _straighten(columns: dict[str, np.ndarray], model: Model) -> list[Finding]:
    """Gives orientations unit length and one sign, in place."""
    notes = []
    for names in quaternion_columns(model):
        if not all(name in columns for name in names):
            continue
        q = np.stack([columns[name] for name in names], axis=1)
        length = np.linalg.norm(q, axis=1)
        off = np.isfinite(length) & (np.abs(length - 1) > 0.01)
        if np.any(off):
            text = f"{np.sum(off)} quaternions differ from unit length by more than 1 %; scaled to it."
            notes.append(Finding(names[0].rsplit("/", 1)[0], text, "warning"))
        columns.update(zip(names, continuous(q).T, strict=True))
    return notes


def _add_positions(columns: dict[str, np.ndarray], model: Model) -> None:
    """Positions that only a sensor reads, under the joint's own name."""
    for sensor in model.sensors.declared:
        if sensor.kind in POSITION_SENSORS:
            _copy(columns, sensor_columns(sensor), joint_position_columns(model, sensor.object))


def _add_velocities(
    columns: dict[str, np.ndarray], time: np.ndarray, model: Model, half_width: float, gap: float | None
) -> None:
    """Velocities that were not recorded: from a sensor, else from positions."""
    for sensor in model.sensors.declared:
        if sensor.kind in VELOCITY_SENSORS:
            _copy(columns, sensor_columns(sensor), joint_velocity_columns(model, sensor.object))
    for joint, kind in enumerate(model.joints.kinds):
        positions, velocities = joint_position_columns(model, joint), joint_velocity_columns(model, joint)
        if not all(name in columns for name in positions) or all(name in columns for name in velocities):
            continue
        rates: list[np.ndarray] = []
        if kind in (HINGE, SLIDE, FREE):
            linear = positions[:3] if kind == FREE else positions
            rates += [derivatives(time, columns[name], half_width=half_width, gap=gap).first for name in linear]
        if kind in (BALL, FREE):
            q = np.stack([columns[name] for name in positions[-4:]], axis=1)
            rates += list(orientation_derivatives(time, q, half_width=half_width, gap=gap).first.T)
        for name, rate in zip(velocities, rates, strict=True):
            columns.setdefault(name, rate)


def _copy(columns: dict[str, np.ndarray], sources: list[str], targets: list[str]) -> None:
    if all(name in columns for name in sources) and not any(name in columns for name in targets):
        columns.update({target: columns[source] for source, target in zip(sources, targets, strict=True)})


def _missing(log: Log) -> list[Finding]:
    """A note for every recorded column with missing samples."""
    notes = []
    for name in log.columns:
        known = int(np.sum(log.present([name])))
        if known and name not in log.derived and (count := missing_samples(log, name)):
            share = 100 * count / (count + known)
            text = f"{count} of {count + known} samples are missing ({share:.2g} %); left out."
            notes.append(Finding(name, text, "note"))
    return notes
