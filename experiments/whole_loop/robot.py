"""The robot: a stand-in of a Qube at level R2, with a weak motor, a heavy pendulum and late commands; and its logs."""

import dataclasses
from pathlib import Path

import numpy as np

from truesim.bridges.real import RealEnv, SafetyLimits, StandInEnv
from truesim.bridges.real.stand_in_physics import effects_of
from truesim.policies import PolicyTask, make_task

TASK = "furuta-swingup"
FACTORS = {"actuators/motor.gain": 0.75, "bodies/pendulum.mass": 1.4}
"""Beyond the usual ranges of a uniform randomization, as are others of the level."""
LATENCY = (0.012, 0.020)
"""Range of the delay of every action [s]."""
RUNS, RUN_SECONDS = 4, 5.0
"""Recordings for identification, together 20 s."""


def real_robot(task: PolicyTask | None = None) -> StandInEnv:
    """The robot, on the task."""
    task = task or make_task(TASK)
    usual = effects_of(task, "R2")
    return StandInEnv(task, dataclasses.replace(usual, factors={**usual.factors, **FACTORS}, latency=LATENCY), robot=0)


def record(folder: Path) -> list[Path]:
    """Move the robot by smooth random voltages for 20 s, and return the logs."""
    task = dataclasses.replace(make_task(TASK), seconds=RUN_SECONDS, terminations={})
    real = RealEnv(real_robot(task), period=task.period, folder=folder, limits=SafetyLimits({"qpos/arm": (-2.4, 2.4)}))
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        rates, phases, sizes = rng.uniform(0.5, 4.0, 5), rng.uniform(0.0, 6.3, 5), rng.uniform(0.1, 0.3, 5)
        observation, _ = real.reset(seed=run)
        done, step = False, 0
        while not done:
            wave = sizes @ np.sin(2 * np.pi * rates * step * task.period + phases)
            centered = -0.4 * observation[0] - 0.3 * observation[3]
            action = np.clip([wave + centered], -1.0, 1.0)
            observation, _, terminated, truncated, _ = real.step(action)
            done, step = terminated or truncated, step + 1
    real.close()
    return real.logs
