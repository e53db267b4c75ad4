"""Ray: the same solves as in one process, also when a worker is killed on the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.identify.search.problems import rippled
from truesim.core.errors import TruesimError
from truesim.identify.search import cluster

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import os, signal
import jax
jax.config.update("jax_enable_x64", True)
import ray
from tests.identify.search.problems import rippled
from tests.identify.search.test_hopping import same
from truesim.identify.search import Hopping, hop
from truesim.identify.search.cluster import Cluster

settings = Hopping(chains=8, solves=120, seed=3)
there = Cluster(rippled(), handful=3)
victims = ray.get([worker.process.remote() for worker in there.workers])
def kill(found):
    if victims and len(found.solves) > 20:
        os.kill(victims.pop(), signal.SIGKILL)
        victims.clear()
found = hop(rippled(), settings, solver=there, watch=kill)
assert not victims, "nobody was killed"
assert same(found, hop(rippled(), settings))
print("same", len(found.solves))
"""


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

    monkeypatch.setattr(cluster.importlib, "import_module", missing)
    with pytest.raises(TruesimError, match="pip install"):
        cluster.Cluster(rippled())
