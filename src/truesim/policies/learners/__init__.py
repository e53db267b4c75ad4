"""Learners by name: PPO, and gradients through the simulator (SHAC)."""

from truesim.policies.learners.base import LearnerOptions
from truesim.policies.learners.ppo import PpoOptions
from truesim.policies.learners.shac import ShacOptions

LEARNERS: dict[str, type[LearnerOptions]] = {"ppo": PpoOptions, "shac": ShacOptions}
"""Options of learners by name."""
