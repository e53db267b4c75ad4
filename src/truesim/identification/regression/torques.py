"""Torque of the motors on each joint as a linear function of the controls, without limits."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.columns import command_columns, position_columns
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class TorqueMap:
    """Torque per control of each actuator on each joint."""

    names: tuple[str, ...]
    """Column of each actuator's control."""
    gain: Float[np.ndarray, "joints actuators"]
    """Torque per control [N m or N per control]."""
    offset: Float[np.ndarray, " joints"]
    """Torque at zero control [N m or N]."""

    @classmethod
    def of(cls, model: Model) -> "TorqueMap":
        """The map of a robot for which `inapplicable` gives no reason."""
        gain = np.zeros((model.nv, model.nu))
        dof = {link.joint: link.v_start for link in model.topology.links}
        for i, joint in enumerate(model.actuators.joints):
            gain[dof[joint], i] = np.asarray(model.actuators.gear)[i, 0] * np.asarray(model.actuators.gain)[i]
        return cls(tuple(command_columns(model)), gain, gain @ np.asarray(model.actuators.offset))

    def joint(self, log: Log, j: int, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Recorded torque on one joint at other stamps [s], without the offset of its actuators."""
        own = np.flatnonzero(self.gain[j])
        total = np.zeros(len(time))
        for i in own:
            values = log.column(self.names[i])
            known = np.isfinite(values)
            total += self.gain[j, i] * np.interp(time, log.time[known], values[known])
        return total


def inapplicable(model: Model, logs: Sequence[Log]) -> str | None:
    """Reason why the torques of these logs cannot be regressed; None if they can.

    The robot must stand on a fixed base and have hinges and slides only, driven by motors whose torque is proportional
    to the control; the logs must have all positions and controls.
    """
    actuators, joints = model.actuators, model.joints
    if not joints.names or any(kind not in (HINGE, SLIDE) for kind in joints.kinds):
        return "a joint is neither a hinge nor a slide"
    if not actuators.names or not actuators.enabled:
        return "there are no actuators"
    if not all(model.tendons.coupled) or any(joint < 0 for joint in actuators.joints):
        return "tendons transmit forces"
    if any(name != AFFINE for name in actuators.models) or np.any(actuators.bias) or np.any(actuators.gain_slope):
        return "an actuator is not a torque motor"
    if np.any(np.asarray(model.bodies.gravcomp)):
        return "gravity is compensated"
    for log in logs:
        for name in (*command_columns(model), *position_columns(model)):
            if name not in log.columns or name in log.derived or not np.isfinite(log.columns[name]).any():
                return f"{log.name} has no column {name}"
    return None
