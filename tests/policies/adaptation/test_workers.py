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
from truesim.policies.adaptation import ConditionedTraining, LeaderboardOptions, PolicyShelf

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
unknown = Randomization({"bodies/pole.mass": uniform(0.1, 0.3)})
task = dataclasses.replace(make_task("cart-pole-swingup", None, unknown), seconds=0.5)
learner = PpoOptions(episodes=8, horizon=8, hidden=(8,), activation="tanh", normalize=False)
options = LeaderboardOptions(training=ConditionedTraining(learner, steps=128, evaluate_every=2, evaluated=4))
here, there, killed = PolicyShelf(task, options), PolicyShelf(task, options), []

class Pool(ray_pool.RayPool):
    def map(self, items, callback=None):
        victim = ray.get(self.workers[0].process.remote())
        threading.Timer(1.0, lambda: killed.append(os.kill(victim, signal.SIGKILL))).start()  # while it still compiles
        return super().map(items, callback)

ray_pool.RayPool = Pool
there.prepare(["so-cma"], "ray")
assert killed, "nobody was killed"
here.prepare(["so-cma"])
policies = (jax.tree.leaves(shelf.policy("universal").layers) for shelf in (here, there))
assert all(np.array_equal(a, b) for a, b in zip(*policies, strict=True))
print("same policies")
"""


@pytest.mark.slow
def test_a_killed_worker_changes_no_policy():
    """A policy that was trained twice, since its first worker died, is bit by bit the one of a single process."""
    quiet = {"RAY_worker_niceness": "0", "RAY_memory_monitor_refresh_ms": "0"}
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **quiet}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert "same policies" in done.stdout, done.stdout + done.stderr
