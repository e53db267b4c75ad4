"""Ray: the same solves as in one process, also when a worker is killed on the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.identification.search.problems import rippled
from truesim.core import ray_pool
from truesim.core.errors import TruesimError
from truesim.identification.search import cluster
from truesim.optimize import CmaEsOptions, cma_es

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import os, signal
import jax
jax.config.update("jax_enable_x64", True)
import ray
from tests.identification.search.problems import rippled
from tests.optimize.test_basin_hopping import same
from truesim.optimize import BasinHoppingOptions, basin_hopping
from truesim.identification.search.cluster import Cluster

settings = BasinHoppingOptions(chains=8, solves=120, seed=3)
there = Cluster(rippled(), batch=3)
victims = ray.get([worker.process.remote() for worker in there.workers])
def kill(found):
    if victims and len(found.solves) > 20:
        os.kill(victims.pop(), signal.SIGKILL)
        victims.clear()
found = basin_hopping(rippled(), settings, solver=there, callback=kill)
assert not victims, "nobody was killed"
assert same(found, basin_hopping(rippled(), settings))
print("same", len(found.solves))
"""

GENERATIONS = """
import os, signal
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
import ray
from tests.identification.search.problems import rippled
from truesim.identification.search.cluster import ClusterObjective
from truesim.optimize import CmaEsOptions, cma_es

options = CmaEsOptions(seed=3, solves=300, population=16)
there = ClusterObjective(rippled(), batch=4)
victims = ray.get([worker.process.remote() for worker in there.pool.workers])
def kill(found):
    if victims and found.solves[0].iterations >= 64:
        os.kill(victims.pop(), signal.SIGKILL)
        victims.clear()
found = cma_es(there, options, callback=kill)
assert not victims, "nobody was killed"
here = cma_es(rippled(), options)
assert [s.cost for s in found.solves] == [s.cost for s in here.solves]
assert np.array_equal(found.best.theta, here.best.theta)
there.close()
print("same generations")
"""


@pytest.mark.slow
def test_a_killed_worker_changes_no_generation():
    """CMA-ES on a cluster, one of whose workers dies, comes to the costs of CMA-ES in one process."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", GENERATIONS]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert "same generations" in done.stdout, done.stdout + done.stderr


class PoolHere:
    """A pool that computes in this process, the last item first."""

    def __init__(self, function, shared, address):
        self._function, self._shared = function, shared

    def map(self, items):
        """Results in the order of the items."""
        results = {k: self._function(self._shared, items[k]) for k in reversed(range(len(items)))}
        return [results[k] for k in range(len(items))]

    def close(self):
        """Nothing to close."""


def test_generations_in_parts_are_the_same(monkeypatch):
    """However a generation is split among workers, CMA-ES comes to the same costs."""
    monkeypatch.setattr(cluster, "RayPool", PoolHere)
    options = CmaEsOptions(seed=3, solves=100, population=10)
    parts, whole = cma_es(cluster.ClusterObjective(rippled(), batch=3), options), cma_es(rippled(), options)
    assert [s.cost for s in parts.solves] == [s.cost for s in whole.solves]


def test_items_are_mapped_here_without_ray():
    assert ray_pool.map_workers(lambda shared, item: shared + item**2, [1, 2, 3], shared=1) == [2, 5, 10]


def test_a_killed_worker_changes_nothing():
    """A search on a cluster, one of whose workers dies, comes to the solves of a search in one process."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert "same 120" in done.stdout, done.stdout + done.stderr


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    """Ray is optional."""

    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(ray_pool.importlib, "import_module", missing)
    with pytest.raises(TruesimError, match="pip install"):
        cluster.Cluster(rippled())
