"""Learners by name: PPO, gradients through the simulator (SHAC), and random search (ARS)."""

from truesim.policies.learners.ars import ArsOptions
from truesim.policies.learners.base import LearnerOptions
from truesim.policies.learners.ppo import PpoOptions
from truesim.policies.learners.shac import ShacOptions

LEARNERS: dict[str, type[LearnerOptions]] = {"ppo": PpoOptions, "shac": ShacOptions, "ars": ArsOptions}
"""Options of learners by name."""
