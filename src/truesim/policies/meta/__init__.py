"""Meta-learning: policies that adapt to a new task from a few episodes."""

from truesim.policies.meta.es_maml import EsMamlOptions, ReturnProblem, adapt_to_task, es_maml, evaluate_es_maml
from truesim.policies.meta.families import Experience, TaskFamily, episode_return, play
from truesim.policies.meta.gaussian_policy import init_policy, log_density, mean_action, sample_action
from truesim.policies.meta.maml import init_maml, maml
from truesim.policies.meta.meta_gradient import (
    MetaGradientOptions,
    MetaInfo,
    MetaLearner,
    MetaState,
    collect,
    evaluate_adaptation,
    meta_gradient,
)
from truesim.policies.meta.norml import init_norml, norml

__all__ = [
    "EsMamlOptions",
    "Experience",
    "MetaGradientOptions",
    "MetaInfo",
    "MetaLearner",
    "MetaState",
    "ReturnProblem",
    "TaskFamily",
    "adapt_to_task",
    "collect",
    "episode_return",
    "es_maml",
    "evaluate_adaptation",
    "evaluate_es_maml",
    "init_maml",
    "init_norml",
    "init_policy",
    "log_density",
    "maml",
    "mean_action",
    "meta_gradient",
    "norml",
    "play",
    "sample_action",
]
