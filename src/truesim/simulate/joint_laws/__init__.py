"""Laws of dry friction and of limits in the joints."""

from truesim.simulate.joint_laws.base import AbstractJointLaw, ConstraintForce, JointConstants
from truesim.simulate.joint_laws.mujoco import MujocoJointLaw
from truesim.simulate.joint_laws.smooth import SmoothFriction, SmoothJointLaw, SmoothLimits

__all__ = [
    "AbstractJointLaw",
    "ConstraintForce",
    "JointConstants",
    "MujocoJointLaw",
    "SmoothFriction",
    "SmoothJointLaw",
    "SmoothLimits",
]
