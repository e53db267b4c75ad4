"""Joint models: friction and limits of the joints."""

from truesim.physics.simulation.joint_models.base import AbstractJointModel, ConstraintForce, JointConstants
from truesim.physics.simulation.joint_models.mujoco import MujocoJointModel
from truesim.physics.simulation.joint_models.smooth import SmoothFriction, SmoothJointModel, SmoothLimits

__all__ = [
    "AbstractJointModel",
    "ConstraintForce",
    "JointConstants",
    "MujocoJointModel",
    "SmoothFriction",
    "SmoothJointModel",
    "SmoothLimits",
]
