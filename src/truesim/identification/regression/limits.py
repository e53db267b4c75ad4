"""Effort limits of a robot file that recorded torques exceed."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from truesim.files.logs import Log
from truesim.identification.regression.torques import TorqueMap
from truesim.physics.model.model import Model

MARGIN = 1.1
"""Room above the largest recorded torque; larger lifts limits higher."""


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
