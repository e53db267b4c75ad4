"""Adaptation: a handful of real episodes close the gap."""

from truesim.policies.adaptation.adapt import AdaptedPolicy, RealSystem, SearchablePolicy, adapt, play_real
from truesim.policies.adaptation.bayrn import BayRnResult, bayrn
from truesim.policies.adaptation.conditioned_policy import (
    ConditionedPolicy,
    ConditionedTraining,
    learn,
    robust_policy,
    train_encoded,
    train_robust,
    train_universal,
)
from truesim.policies.adaptation.conditioned_task import tell_parameters
from truesim.policies.adaptation.dropo import DropoOptions, dropo
from truesim.policies.adaptation.env_bench import EnvBench
from truesim.policies.adaptation.episode_search import (
    EpisodeSearch,
    SearchState,
    adapt_in_simulation,
    evolution_step,
    hill_climbing,
)
from truesim.policies.adaptation.found_randomization import to_randomization
from truesim.policies.adaptation.gaussian import Gaussian, independent, kl_divergence
from truesim.policies.adaptation.gaussian_process import GaussianProcess, fit_gaussian_process
from truesim.policies.adaptation.leaderboard import (
    ADAPTATION_METHODS,
    LeaderboardOptions,
    MethodCurve,
    PolicyShelf,
    gap_closed,
    method_curve,
)
from truesim.policies.adaptation.online import OnlineLoop, OnlinePolicy, OnlineRunner
from truesim.policies.adaptation.osi import OsiNetwork, OsiOptions, train_osi
from truesim.policies.adaptation.parameter_search import Adapted, AdaptOptions, PlayedEpisode, search_parameters
from truesim.policies.adaptation.rma import RmaNetwork, RmaOptions, train_rma
from truesim.policies.adaptation.searches import SEARCHES, AbstractSearch, make_search
from truesim.policies.adaptation.simopt import (
    SimOptOptions,
    discrepancy,
    gradient_step,
    reps_step,
    reps_weights,
    simopt_round,
)
from truesim.policies.adaptation.task_bench import TaskBench, held_out_task
from truesim.policies.coordinates import ParameterCoordinates

__all__ = [
    "ADAPTATION_METHODS",
    "SEARCHES",
    "AbstractSearch",
    "AdaptOptions",
    "Adapted",
    "AdaptedPolicy",
    "BayRnResult",
    "ConditionedPolicy",
    "ConditionedTraining",
    "DropoOptions",
    "EnvBench",
    "EpisodeSearch",
    "Gaussian",
    "GaussianProcess",
    "LeaderboardOptions",
    "MethodCurve",
    "OnlineLoop",
    "OnlinePolicy",
    "OnlineRunner",
    "OsiNetwork",
    "OsiOptions",
    "ParameterCoordinates",
    "PlayedEpisode",
    "PolicyShelf",
    "RealSystem",
    "RmaNetwork",
    "RmaOptions",
    "SearchState",
    "SearchablePolicy",
    "SimOptOptions",
    "TaskBench",
    "adapt",
    "adapt_in_simulation",
    "bayrn",
    "discrepancy",
    "dropo",
    "evolution_step",
    "fit_gaussian_process",
    "gap_closed",
    "gradient_step",
    "held_out_task",
    "hill_climbing",
    "independent",
    "kl_divergence",
    "learn",
    "make_search",
    "method_curve",
    "play_real",
    "reps_step",
    "reps_weights",
    "robust_policy",
    "search_parameters",
    "simopt_round",
    "tell_parameters",
    "to_randomization",
    "train_encoded",
    "train_osi",
    "train_rma",
    "train_robust",
    "train_universal",
]
