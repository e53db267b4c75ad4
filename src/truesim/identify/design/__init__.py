"""Design of experiments: the motion that tells most about what is uncertain, within the robot's limits."""

from truesim.identify.design.designer import Designer, design
from truesim.identify.design.limits import Limits
from truesim.identify.design.plan import Choices, Expected, Plan

__all__ = ["Choices", "Designer", "Expected", "Limits", "Plan", "design"]
