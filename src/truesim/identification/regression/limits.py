"""Limits of a robot file that a recording exceeds: efforts and positions."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from truesim.files.logs import Log
from truesim.identification.regression.torques import TorqueMap
from truesim.physics.model.columns import position_columns
from truesim.physics.model.model import Model

MARGIN = 1.1
"""Room above the largest recorded torque; larger lifts limits higher."""
POSITION_MARGIN = 0.02
"""Room beyond the outermost recorded position [rad or m]; larger lifts limits further."""
POSITION_TOLERANCE = 1e-3
"""Distance beyond a limit that a position may have, by noise or give of the stop [rad or m]."""


def lift_limits(model: Model, logs: Sequence[Log]) -> Model:
    """Lift limits of efforts and positions to what was recorded, so that a simulation is not stopped by them.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    return lift_position_limits(lift_effort_limits(model, logs), logs)


def lift_position_limits(model: Model, logs: Sequence[Log]) -> Model:
    """Lift limits of joints beyond the recorded positions: the robot was there.

    Args:
        model: A robot of hinges and slides.
        logs: Prepared logs.
    """
    bounds = np.array(model.joints.range, float)
    for j, name in enumerate(position_columns(model)):
        ends = recorded_ends(logs, name)
        if model.joints.limited[j] and ends is not None:
            beyond = np.array([bounds[j, 0] - ends[0], ends[1] - bounds[j, 1]]) > POSITION_TOLERANCE
            bounds[j] = np.where(beyond, np.add(ends, [-POSITION_MARGIN, POSITION_MARGIN]), bounds[j])
    if np.array_equal(bounds, model.joints.range):
        return model
    return eqx.tree_at(lambda m: m.joints.range, model, bounds)


def recorded_ends(logs: Sequence[Log], name: str) -> tuple[float, float] | None:
    """Smallest and largest value of a column in all logs; None if they have none."""
    every = np.concatenate([np.zeros(0), *(log.columns.get(name, np.zeros(0)) for log in logs)])
    known = every[np.isfinite(every)]
    return (float(known.min()), float(known.max())) if len(known) else None


def lift_effort_limits(model: Model, logs: Sequence[Log]) -> Model:
    """Lift the limits of a URDF's motors to the recorded torques, so that a simulation does not clip them.

    URDF has no motors: what its logs hold are torques that were measured, not commands that a controller clips.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    if model.source is None or model.source.format != "urdf":
        return model
    torques = TorqueMap.of(model)
    controls = np.array(
        [max((float(np.nanmax(np.abs(log.column(name)))) for log in logs), default=0.0) for name in torques.names]
    )
    high = np.asarray(model.actuators.control_range)[:, 1]
    exceeded = np.array(model.actuators.control_limited) & (controls > high)
    if not exceeded.any():
        return model
    control_range, force_range = np.array(model.actuators.control_range), np.array(model.joints.force_range)
    for i in np.flatnonzero(exceeded):
        control_range[i] = MARGIN * controls[i] * np.array([-1.0, 1.0])
        joint = model.actuators.joints[i]
        force = MARGIN * controls[i] * abs(float(np.asarray(model.actuators.gear)[i, 0]))
        force_range[joint] = np.maximum(force, force_range[joint, 1]) * np.array([-1.0, 1.0])
    return eqx.tree_at(lambda m: (m.actuators.control_range, m.joints.force_range), model, (control_range, force_range))
