"""Tasks for teachers: the policy sees all observations without noise, and the parameters of its episode.

A teacher learns sooner than a policy that has to infer what it does not see. It cannot run on a robot, but teach one
that can (`learners.distillation`).
"""

import dataclasses

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.policies.coordinates import ParameterCoordinates
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.task import Observation, PolicyTask

EPISODE_PARAMETERS = "episode parameters"
"""Name of the observation of drawn parameters and latency, after those of the task."""


def privileged_task(task: PolicyTask) -> PolicyTask:
    """The task with a policy that sees what the critic sees: all terms without noise, drawn parameters and latency."""
    seen = {
        name: dataclasses.replace(term, noise=0.0, bias=0.0, dropout=0.0, privileged=False)
        for name, term in task.observations.items()
    }
    coordinates = _coordinates(task)
    if coordinates is not None:
        seen[EPISODE_PARAMETERS] = Observation(lambda now: coordinates(now.parameters, now.latency))
    return dataclasses.replace(task, observations=seen, instruments=None, privileged=True)


class PrivilegedView:
    """Observations of a privileged policy in episodes of the task itself."""

    def __init__(self, task: PolicyTask):
        """Read what the task randomizes."""
        self._coordinates, self._timestep = _coordinates(task), float(task.simulator.timestep)

    def __call__(self, episode: Episode, outcome: StepOutcome) -> Float[Array, " np"]:
        """Observation of one episode, as `privileged_task` has it."""
        if self._coordinates is None:
            return outcome.privileged
        told = self._coordinates(episode.parameters, episode.latency * jnp.float32(self._timestep))
        return jnp.concatenate([outcome.privileged, told])


def _coordinates(task: PolicyTask) -> ParameterCoordinates | None:
    """Coordinates of what the task randomizes; None if that is nothing."""
    varies = task.randomization.paths or task.latency[1] > task.latency[0]
    return ParameterCoordinates(task) if varies else None
