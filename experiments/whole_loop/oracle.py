"""The oracle: a policy that goes on learning on the robot itself, with many more episodes than a robot would bear."""

import dataclasses
import json
import shutil
from pathlib import Path

import jax
import numpy as np

from experiments.whole_loop.robot import real_robot
from experiments.whole_loop.training import LEARNER
from truesim.core.persistence.atomic import write_arrays
from truesim.core.precision import float32
from truesim.policies import Environment
from truesim.policies.learners.ppo import Ppo
from truesim.policies.physics import physics_of
from truesim.policies.policy import POLICY_WEIGHTS_FILE
from truesim.policies.training import CHECKPOINT_FILE

ORACLE_EPISODES, ORACLE_RATE = 128, 5e-4
"""Robots at once, and the largest learning rate: what is learned already should not be lost."""


def train_oracle(start: Path, out: Path, seed: int, steps: int) -> None:
    """Continue the training of a policy's folder on the robot, and write the result as another folder.

    Args:
        start: Folder of the policy from which it starts, with its checkpoint.
        out: Folder of the result.
        seed: Of the episodes.
        steps: Control steps on the robot.
    """
    if (out / POLICY_WEIGHTS_FILE).is_file():
        return
    task = real_robot().task
    learner = dataclasses.replace(LEARNER, episodes=ORACLE_EPISODES, max_learning_rate=ORACLE_RATE)
    with float32():
        ppo = Ppo(Environment(task, ORACLE_EPISODES, physics=physics_of(task, ORACLE_EPISODES)), learner)
        state = ppo.start(seed)
        names = state._fields[: state._fields.index("episodes")]  # what was learned comes before the episodes
        leaves, structure = jax.tree.flatten([getattr(state, name) for name in names])
        with np.load(start / CHECKPOINT_FILE, allow_pickle=False) as file:
            learned = jax.tree.unflatten(structure, [file[f"leaf{k}"] for k in range(len(leaves))])
        state = state._replace(**dict(zip(names, learned, strict=True)))
        state = state._replace(learning_rate=np.asarray(ORACLE_RATE, np.float32))
        while int(state.steps) < steps:
            state, _ = ppo.iterate(state)
    shutil.copytree(start, out, dirs_exist_ok=True)
    (out / CHECKPOINT_FILE).unlink()
    with np.load(out / POLICY_WEIGHTS_FILE, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for k, (W, b) in enumerate(state.weights["actor"]):
        arrays |= {f"actor.{k}.weight": np.asarray(W), f"actor.{k}.bias": np.asarray(b)}
    write_arrays(out / POLICY_WEIGHTS_FILE, arrays)
    described = json.loads((out / "policy.json").read_text(encoding="utf-8"))
    described["training"]["oracle"] = {"steps": int(state.steps), "seed": seed}
    (out / "policy.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
