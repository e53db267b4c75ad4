"""Policies: tasks, randomization, learners, and trained policies as folders.

- `task`, `episodes`, `environment`: a task as small functions, one episode of it, and compiled batches;
- `tasks`: the shipped ones by name;
- `randomization`, `draws`: parameters that differ between episodes, and random numbers of kernels;
- `learners`, `training`: PPO, short-horizon gradients, and the loop around them with log and checkpoints;
- `adaptation`, `meta`: policies that adapt to a robot, and learning to adapt;
- `policy`, `runner`, `play`: the result as a folder, run with NumPy alone, played in truesim or MuJoCo.
"""

from truesim.policies.environment import Environment
from truesim.policies.learners import PpoOptions, ShacOptions
from truesim.policies.play import PlayOptions, play
from truesim.policies.policy import TrainedPolicy, load_policy
from truesim.policies.randomization import (
    Randomization,
    correlated,
    from_posterior,
    from_samples,
    log_uniform,
    normal,
    truncated,
    uniform,
)
from truesim.policies.randomization_files import read_randomization
from truesim.policies.task import Actions, CommandSource, Instant, Memory, Observation, PolicyTask, Pushes, Reward
from truesim.policies.tasks import make_task
from truesim.policies.training import TrainOptions, train

__all__ = [
    "Actions",
    "CommandSource",
    "Environment",
    "Instant",
    "Memory",
    "Observation",
    "PlayOptions",
    "PolicyTask",
    "PpoOptions",
    "Pushes",
    "Randomization",
    "Reward",
    "ShacOptions",
    "TrainOptions",
    "TrainedPolicy",
    "correlated",
    "from_posterior",
    "from_samples",
    "load_policy",
    "log_uniform",
    "make_task",
    "normal",
    "play",
    "read_randomization",
    "train",
    "truncated",
    "uniform",
]
