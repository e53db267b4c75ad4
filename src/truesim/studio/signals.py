"""Signals beside a motion: measured and simulated channels of a log, by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.physics.model import paths
from truesim.physics.model.columns import command_columns, joint_position_columns
from truesim.physics.model.model import Model

FIT_CURVES = ("measured", "fitted", "start")


class Signals(NamedTuple):
    """Channels of one log over time."""

    time: Float[np.ndarray, " samples"]
    """[s]"""
    rows: Sequence[str]
    """Names of the channels."""
    curves: Mapping[str, Float[np.ndarray, "samples rows"]]
    """Values by curve: `measured`, `fitted`, `start`, `command`; NaN where a curve has no value."""


def fit_signals(signals: Mapping[str, np.ndarray], key: str) -> Signals:
    """Signals of one log of a fit.

    Args:
        signals: Signals of the fit, from `Fit.signals`.
        key: Log within the signals, such as `train/run0.csv`.
    """
    rows = [str(row) for row in signals["rows"]]
    return Signals(signals[f"{key}/time"], rows, {name: signals[f"{key}/{name}"] for name in FIT_CURVES})


def log_signals(model: Model, log: Log) -> Signals:
    """Columns of a log; positions that a position servo drives are shown with its command.

    Args:
        model: The robot.
        log: A prepared log.
    """
    known = [name for name in log.columns if np.isfinite(log.columns[name]).any()]
    known = [name for name in known if name not in log.derived] or known
    rows = sorted(known, key=lambda name: name.partition("/")[0] not in ("qpos", "sensor"))
    measured = np.stack([log.columns[name] for name in rows], axis=1)
    command = np.full_like(measured, np.nan)
    for position, control in _servo_columns(model).items():
        if position in rows and control in log.columns:
            command[:, rows.index(position)] = log.columns[control]
    return Signals(log.time, rows, {"measured": measured, "command": command})


def _servo_columns(model: Model) -> dict[str, str]:
    """Column of the command of each position servo, by the column of the position that follows it."""
    servos = [p.index for p in paths.servo_gains(model) if p.field == "kp" and p.index is not None]
    joints = [(i, model.actuators.joints[i]) for i in servos if model.actuators.joints[i] >= 0]
    return {joint_position_columns(model, joint)[0]: command_columns(model)[i] for i, joint in joints}
