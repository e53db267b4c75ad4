"""Trainings of the comparison: nominal, uniform randomization, around the posterior, and the oracle on the robot."""

import dataclasses
from pathlib import Path

import numpy as np
from cmaes import CMA

from experiments.whole_loop.robot import TASK, real_robot
from truesim.bridges.real.stand_in_physics import USUAL_RANGES
from truesim.identification.fit import Fit
from truesim.policies import (
    Environment,
    PolicyTask,
    Randomization,
    TrainOptions,
    from_posterior,
    load_policy,
    make_task,
    train,
    uniform,
)
from truesim.policies.runner import PolicyRunner
from truesim.policies.tasks import find_task

LEARNER = dataclasses.replace(find_task(TASK).learner, critic_sees_parameters=False)
"""Critics see the same on the robot, which does not tell its parameters, as in simulation."""
UNIFORM_LATENCY = (0.0, 0.02)
"""Latency that uniform randomization covers [s]."""
UNIFORM_FRICTION = (0.0, 0.001)
"""Friction of the arm that it covers [N m]: up to 6 % of the motor's stall torque."""


def uniform_task() -> PolicyTask:
    """The task with usual ranges of masses, damping, gain, friction and latency."""
    usual = {pattern: uniform(*ends, "scale") for pattern, ends in USUAL_RANGES.items()}
    usual["joints/arm.frictionloss"] = uniform(*UNIFORM_FRICTION)
    return dataclasses.replace(make_task(TASK, None, Randomization(usual)), latency=UNIFORM_LATENCY)


def posterior_task(folder: Path, inflate: float = 1.0) -> PolicyTask:
    """The task with the fitted robot, around what its logs leave possible."""
    return make_task(TASK, folder, from_posterior(Fit.load(folder), inflate=inflate))


def task_of(role: str, fit: Path) -> PolicyTask:
    """Task in which the policy of a role is trained."""
    if role == "nominal":
        return make_task(TASK)
    if role == "uniform":
        return uniform_task()
    if role == "oracle":
        return dataclasses.replace(real_robot().task, goal=None)
    return posterior_task(fit)


def trained(role: str, fit: Path, out: Path, seed: int, steps: int) -> PolicyRunner:
    """Policy of a role; a training that is done is not repeated."""
    if not (out / "policy.json").is_file():
        train(task_of(role, fit), out, learner=LEARNER, options=TrainOptions(steps=steps, seed=seed))
    return load_policy(out)


class LinearPolicy:
    """Memoryless linear controller with an offset."""

    def __init__(self, weights: np.ndarray):
        self.weights = weights

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Action, clipped to the range."""
        return np.clip(observation @ self.weights[:-1, None] + self.weights[-1], -1.0, 1.0)


def best_linear(generations: int, seed: int = 0, population: int = 16, repeats: int = 8) -> LinearPolicy:
    """Linear controller found by CMA-ES on the whole distribution of uniform randomization."""
    task = uniform_task()
    environment = Environment(task, population * repeats)
    size = environment.reset(0)[1].observation.shape[-1] + 1
    search = CMA(np.zeros(size), 1.0, population_size=population, seed=seed)
    for generation in range(generations):
        asked = [search.ask() for _ in range(population)]
        weights = np.repeat(np.stack(asked), repeats, axis=0)
        episodes, outcome = environment.reset(generation)
        total, alive = np.zeros(len(weights)), np.ones(len(weights), bool)
        for _ in range(task.steps):
            values = np.sum(outcome.observation * weights[:, :-1], axis=1) + weights[:, -1]
            episodes, outcome = environment.step(episodes, np.clip(values, -1.0, 1.0)[:, None].astype(np.float32))
            total += alive * np.asarray(outcome.reward)
            alive &= ~(np.asarray(outcome.terminated) | np.asarray(outcome.truncated))
        means = total.reshape(population, repeats).mean(1)
        search.tell([(x, -value) for x, value in zip(asked, means, strict=True)])
    return LinearPolicy(search.mean)
