"""Recorded motion as arrays in the order of the model's coordinates."""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.files.logs.differentiate import SMOOTHING_HALF_WIDTH, derivatives, orientation_derivatives
from truesim.files.logs.log import Log
from truesim.physics.model.columns import joint_position_columns, position_columns, velocity_columns
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model


class RecordedMotion(NamedTuple):
    """Configuration, velocity and acceleration at every sample; NaN where they are not known."""

    time: Float[np.ndarray, " samples"]
    """[s]"""
    q: Float[np.ndarray, "samples nq"]
    v: Float[np.ndarray, "samples nv"]
    a: Float[np.ndarray, "samples nv"]

    @property
    def complete(self) -> Bool[np.ndarray, " samples"]:
        """Samples at which every coordinate is known."""
        return np.all(np.isfinite(np.concatenate([self.q, self.v, self.a], axis=1)), axis=1)


def motion(
    log: Log, model: Model, *, half_width: float = SMOOTHING_HALF_WIDTH, gap: float | None = None
) -> RecordedMotion:
    """Motion of a cleaned log: position and velocity columns, and accelerations derived from positions.

    Args:
        log: A log cleaned by `prepare`.
        model: The robot.
        half_width: Half width of the differentiator's window [s].
        gap: Longest step within a window [s]; five sampling periods by default.
    """
    accelerations = [np.zeros((len(log.time), 0))]
    for joint, kind in enumerate(model.joints.kinds):
        positions = joint_position_columns(model, joint)
        scalars = {BALL: [], FREE: positions[:3]}.get(kind, positions)
        for name in scalars:
            a = derivatives(log.time, _column(log, name), half_width=half_width, gap=gap).second
            accelerations.append(a[:, None])
        if kind in (BALL, FREE):
            q = np.stack([_column(log, name) for name in positions[-4:]], axis=1)
            accelerations.append(orientation_derivatives(log.time, q, half_width=half_width, gap=gap).second)
    return RecordedMotion(
        log.time,
        _stack(log, position_columns(model)),
        _stack(log, velocity_columns(model)),
        np.concatenate(accelerations, axis=1),
    )


def _column(log: Log, name: str) -> np.ndarray:
    return log.columns[name] if name in log.columns else np.full(len(log.time), np.nan)


def _stack(log: Log, names: list[str]) -> np.ndarray:
    return np.stack([_column(log, name) for name in names], axis=1) if names else np.zeros((len(log.time), 0))
