"""Cleaning of logs: one row per stamp, continuous angles and orientations, a velocity for every position."""

import dataclasses

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs.checks import anomalies
from truesim.files.logs.differentiate import SMOOTHING_HALF_WIDTH, derivatives, orientation_derivatives
from truesim.files.logs.log import STAMP_TOLERANCE, Log
from truesim.files.logs.orientation import make_continuous
from truesim.files.logs.sampling import missing_samples
from truesim.physics.model.columns import (
    command_columns,
    joint_position_columns,
    joint_velocity_columns,
    quaternion_columns,
    sensor_columns,
)
from truesim.physics.model.kinds import BALL, FREE, HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding
from truesim.physics.model.tendons import gears

FULL_TURN = 2 * np.pi
EPOCH_STAMP = 1e6
"""First stamp beyond which a clock counts from an epoch, not from the start of a recording [s]."""
POSITION_SENSORS, VELOCITY_SENSORS = ("jointpos", "ballquat"), ("jointvel", "ballangvel")


def prepare(log: Log, model: Model, *, half_width: float = SMOOTHING_HALF_WIDTH, gap: float | None = None) -> Log:
    """Clean a log of this robot. Repairs are listed in `findings`, computed columns in `derived`.

    - Anomalies, such as angles in degrees, are reported and left unchanged.
    - Commands with stamps of their own, as in bags, are held at the stamps of the measurements.
    - Rows with equal stamps are merged; each column keeps its last value. Infinite values become missing (NaN).
    - Angles that wrap around are unwrapped, unless this would exceed the joint's limits.
    - Orientations are normalized and get consistent signs.
    - Missing position columns of a joint are taken from a sensor that measures them, if there is one. Velocities that
      were not recorded are taken from sensors, or derived from positions.

    Missing samples stay missing. Cleaning a log twice changes nothing.

    Args:
        log: The recording.
        model: The robot.
        half_width: Half width of the differentiator's window [s].
        gap: Longest step within a window [s]; five sampling periods by default.
    """
    if not len(log.time):
        raise TruesimError(f"{log.name} has no samples.")
    log = align_commands(_one_row_per_stamp(_count_from_start(log)), model)
    columns = dict(log.columns)
    notes = _unwrap_hinges(columns, model) + _normalize(columns, model)
    known = set(columns)
    _add_positions(columns, model)
    _add_velocities(columns, log.time, model, half_width, gap)
    derived = log.derived | (set(columns) - known)
    clean = dataclasses.replace(log, columns=columns, derived=frozenset(derived))
    findings = dict.fromkeys((*log.findings, *anomalies(clean, model), *notes, *_missing(clean)))
    return dataclasses.replace(clean, findings=tuple(findings))


def _count_from_start(log: Log) -> Log:
    """The log with stamps from its first sample, if they count from an epoch, so that plots keep digits."""
    if abs(log.time[0]) < EPOCH_STAMP:
        return log
    note = Finding("time", f"stamps begin at {log.time[0]:.3f} s: counted from the first sample.", "note")
    return dataclasses.replace(log, time=log.time - log.time[0], findings=(*log.findings, note))


def align_commands(log: Log, model: Model) -> Log:
    """The log at the stamps of its measurements, if commands were recorded at stamps of their own.

    Topics of a bag have stamps of their own. Rows between two measurements would be intervals without a measurement. A
    command holds from its stamp on; the row of a measurement gets its mean until the next measurement, so that commands
    act neither earlier nor later than they were given.
    """
    commands = [name for name in command_columns(model) if name in log.columns]
    measured = [name for name in log.columns if name not in commands]
    if not commands or not measured:
        return log
    driven, known = (np.any(log.present(names), axis=1) for names in (commands, measured))
    if np.mean(driven[known]) > 0.5 or not driven.any():
        return log
    rows = np.flatnonzero(known & (log.time >= log.time[driven][0]))
    held = {name: _mean_held(log, name, log.time[rows]) for name in commands}
    rates = [1 / float(np.median(np.diff(log.time[mask]))) if mask.sum() > 1 else 0.0 for mask in (driven, known)]
    text = f"at {rates[0]:.4g} Hz have stamps of their own: averaged between those of measurements ({rates[1]:.4g} Hz)."
    kept = log.rows(rows)
    note = Finding("commands", text, "note")
    return dataclasses.replace(kept, columns={**kept.columns, **held}, findings=(*log.findings, note))


def _mean_held(log: Log, name: str, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mean of a held column from each time to the next [s]; its value at the last one."""
    known = np.isfinite(log.columns[name])
    stamps, values = log.time[known], log.columns[name][known]
    last = log.hold([name], time[-1:])[:, 0]
    if len(stamps) < 2 or len(time) < 2:
        return log.hold([name], time)[:, 0]
    ends = np.append(stamps, max(time[-1], stamps[-1]) + 1.0)
    area = np.concatenate([[0.0], np.cumsum(values * np.diff(ends))])
    mean = np.diff(np.interp(time, ends, area)) / np.diff(time)
    return np.concatenate([mean, last])


def unwrap(angles: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " samples"]:
    """Unwrap angles [rad]: remove steps of more than half a turn between samples. Missing samples stay missing."""
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
    note = Finding("time", f"{repeated} rows repeat the stamp of the previous row and were merged into it.", "note")
    return dataclasses.replace(log, time=log.time[starts], columns=columns, findings=(*log.findings, note))


def _unwrap_hinges(columns: dict[str, np.ndarray], model: Model) -> list[Finding]:
    """Unwrap the angles of hinges, in place."""
    notes = []
    for name, joint in hinge_columns(model):
        if name not in columns:
            continue
        known = columns[name][np.isfinite(columns[name])]
        wraps = int(np.sum(np.abs(np.diff(known)) > np.pi))
        if not wraps or np.ptp(known) > FULL_TURN * 1.001:  # encoders that count turns are continuous already
            continue
        angles = unwrap(columns[name])
        low, high = model.joints.range[joint] if model.joints.limited[joint] else (-np.inf, np.inf)
        if np.nanmin(angles) < low - np.pi / 6 or np.nanmax(angles) > high + np.pi / 6:
            text = f"has {wraps} steps of half a turn or more; left unchanged, since unwrapping exceeds the limits."
            notes.append(Finding(name, text, "warning"))
        else:
            columns[name] = angles
            notes.append(Finding(name, f"wraps around {wraps} times; unwrapped.", "note"))
    return notes


def hinge_columns(model: Model) -> list[tuple[str, int]]:
    """Columns that hold the angle of a hinge, each with the index of its joint."""
    hinges = [joint for joint, kind in enumerate(model.joints.kinds) if kind == HINGE]
    own = [(joint_position_columns(model, joint)[0], joint) for joint in hinges]
    encoders = [sensor for sensor in model.sensors.declared if sensor.kind == "jointpos" and sensor.object in hinges]
    return own + [(sensor_columns(sensor)[0], sensor.object) for sensor in encoders]


def _normalize(columns: dict[str, np.ndarray], model: Model) -> list[Finding]:
    """Normalize quaternions and make their signs consistent, in place."""
    notes = []
    for names in quaternion_columns(model):
        if not all(name in columns for name in names):
            continue
        q = np.stack([columns[name] for name in names], axis=1)
        length = np.linalg.norm(q, axis=1)
        off = np.isfinite(length) & (np.abs(length - 1) > 0.01)
        if np.any(off):
            text = f"{np.sum(off)} quaternions differ from unit length by more than 1 %; normalized."
            notes.append(Finding(names[0].rsplit("/", 1)[0], text, "warning"))
        columns.update(zip(names, make_continuous(q).T, strict=True))
    return notes


def _add_positions(columns: dict[str, np.ndarray], model: Model) -> None:
    """Copy positions that only a sensor, or the other side of a gear, measures to the joint's own columns, in place."""
    for sensor in model.sensors.declared:
        if sensor.kind in POSITION_SENSORS:
            _copy(columns, sensor_columns(sensor), joint_position_columns(model, sensor.object))
    for pair in gears(model).values():
        sides = [joint_position_columns(model, joint) for joint in pair]
        _copy(columns, *sides)
        _copy(columns, *sides[::-1])


def _add_velocities(
    columns: dict[str, np.ndarray], time: np.ndarray, model: Model, half_width: float, gap: float | None
) -> None:
    """Add velocities that were not recorded, from a sensor or else from positions, in place."""
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
    """Notes on recorded columns with missing samples."""
    notes = []
    for name in log.columns:
        known = int(np.sum(log.present([name])))
        if known and name not in log.derived and (count := missing_samples(log, name)):
            share = 100 * count / (count + known)
            text = f"{count} of {count + known} samples are missing ({share:.2g} %); left out."
            notes.append(Finding(name, text, "note"))
    return notes
