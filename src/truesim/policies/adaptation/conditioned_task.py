"""Tasks whose policy is told the parameters of its episode: the first half of universal policies, RMA and latents."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from truesim.policies.coordinates import ParameterCoordinates
from truesim.policies.draws import Draws
from truesim.policies.task import Instant, Memory, Observation, PolicyTask

TOLD_PARAMETERS, LATENT_NOISE = "told parameters", "latent noise"
"""Names of the observations that are added to a task, after its own."""


def tell_parameters(task: PolicyTask, noise: int = 0) -> PolicyTask:
    """The task with an observation of the parameters of its episode, by coordinates from -1 to 1.

    Args:
        task: The task, with a randomization.
        noise: Standard normal numbers that are drawn for each episode, held through it and observed as well; the
            noise of a stochastic latent.
    """
    coordinates = ParameterCoordinates(task)
    told = {TOLD_PARAMETERS: Observation(lambda now: coordinates(now.parameters, now.latency))}
    if not noise:
        return dataclasses.replace(task, observations={**task.observations, **told})
    task = _remember_noise(task, noise)
    told[LATENT_NOISE] = Observation(lambda now: now.memory[1])
    return dataclasses.replace(task, observations={**task.observations, **told})


def _remember_noise(task: PolicyTask, size: int) -> PolicyTask:
    """The task with a memory of two parts: its own, and normal numbers that stay through an episode."""
    own = task.memory

    def start(now: Instant, draw: Draws) -> Any:
        noise = draw.normal(shape=(size,))
        return (jnp.zeros(0) if own is None else own.start(now, draw)), noise

    def update(now: Instant) -> Any:
        return (now.memory[0] if own is None else own.update(_own(now))), now.memory[1]

    def seen(function: Callable[[Instant], Any]) -> Callable[[Instant], Any]:
        return lambda now: function(_own(now))

    command = task.command
    if command is not None and command.measured is not None:
        command = dataclasses.replace(command, measured=seen(command.measured))
    return dataclasses.replace(
        task,
        observations={k: dataclasses.replace(o, function=seen(o.function)) for k, o in task.observations.items()},
        rewards={k: dataclasses.replace(r, function=seen(r.function)) for k, r in task.rewards.items()},
        terminations={k: seen(condition) for k, condition in task.terminations.items()},
        command=command,
        memory=Memory(start, update),
    )


def _own(now: Instant) -> Instant:
    """The instant as the original task sees it."""
    return dataclasses.replace(now, memory=now.memory[0])
