"""Trainings on a Ray cluster: the same policies as in one process, also when a worker is killed on the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import dataclasses, os, signal, threading
import jax
import numpy as np
import ray
from truesim.core import ray_pool
from truesim.policies import PpoOptions, Randomization, make_task, uniform
from truesim.policies.adaptation import ConditionedTraining, LeaderboardOptions, OsiNetwork, OsiOptions, PolicyShelf

unknown = Randomization({"bodies/pole.mass": uniform(0.1, 0.3)})
task = dataclasses.replace(make_task("cart-pole-swingup", None, unknown), seconds=0.5)
learner = PpoOptions(episodes=8, horizon=8, hidden=(8,), activation="tanh", normalize=False)
training = ConditionedTraining(learner, steps=256, evaluate_every=2, evaluated=4)
osi = OsiOptions(OsiNetwork(4, (8,)), 1, 4, samples=64, epochs=1, minibatch=32)
options = LeaderboardOptions(training=training, osi=osi)
here, there = PolicyShelf(task, options), PolicyShelf(task, options)

killed = []
class Pool(ray_pool.RayPool):
    def map(self, items, callback=None):
        victim = ray.get(self.workers[0].process.remote())
        def kill():
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        threading.Timer(2.0, kill).start()  # while it still compiles
        return super().map(items, callback)
ray_pool.RayPool = Pool

methods = ["up-osi", "so-cma", "latent-awr"]
there.prepare(methods, "ray")
assert killed, "nobody was killed"
here.prepare(methods)
def same(a, b):
    assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
for condition in ("universal", "latent"):
    same(here.policy(condition).layers, there.policy(condition).layers)
same(here.online("universal").weights, there.online("universal").weights)
print("same policies")
"""


@pytest.mark.slow
def test_a_killed_worker_changes_no_policy():
    """Conditioned policies and their estimators are bit by bit the same."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "RAY_worker_niceness": "0"}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert "same policies" in done.stdout, done.stdout + done.stderr
