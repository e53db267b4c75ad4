"""Learners by name: PPO, gradients through the simulator, random search, distillation and cloning."""

from truesim.policies.learners.ars import ArsOptions
from truesim.policies.learners.base import LearnerOptions
from truesim.policies.learners.cloning import CloneOptions
from truesim.policies.learners.distillation import DistillOptions
from truesim.policies.learners.ppo import PpoOptions
from truesim.policies.learners.shac import ShacOptions

LEARNERS: dict[str, type[LearnerOptions]] = {
    "ppo": PpoOptions,
    "shac": ShacOptions,
    "ars": ArsOptions,
    "distill": DistillOptions,
    "clone": CloneOptions,
}
"""Options of learners by name."""
