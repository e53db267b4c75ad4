"""A journal: a search that is killed goes on with nothing lost but the solves in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.identification.search.problems import rippled
from tests.optimize.test_basin_hopping import same
from truesim.core.errors import TruesimError
from truesim.optimize import BasinHoppingOptions, basin_hopping

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = BasinHoppingOptions(chains=6, solves=120, seed=5)
RUN = """
import sys, time, jax
jax.config.update("jax_enable_x64", True)
from pathlib import Path
from tests.identification.search.problems import rippled
from tests.identification.search.test_journal import SETTINGS
from truesim.optimize import BatchedLevenbergMarquardt, basin_hopping
few = BatchedLevenbergMarquardt(rippled(), capacity=4)
basin_hopping(few.objective, SETTINGS, journal=Path(sys.argv[1]), solver=few, callback=lambda _: time.sleep(0.05))
"""


def killed(journal, lines):
    """Runs a search in a process of its own, and kills it when the journal has so many lines."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    process = subprocess.Popen([sys.executable, "-c", RUN, str(journal)], env=environment, cwd=ROOT)
    try:
        while not journal.exists() or journal.read_bytes().count(b"\n") < lines:
            assert process.poll() is None, "the search ended by itself"
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_killed_search_goes_on(tmp_path):
    """Killed twice, the search comes to the same solves as without, and does no finished one again."""
    journal = tmp_path / "search.jsonl"
    killed(journal, 20)
    first = journal.read_bytes()
    killed(journal, 45)
    assert journal.read_bytes().startswith(first[: first.rfind(b"\n") + 1])
    done = journal.read_bytes().count(b"\n") - 1
    again = []
    found = basin_hopping(rippled(), SETTINGS, journal=journal, callback=lambda found: again.append(len(found.solves)))
    assert same(found, basin_hopping(rippled(), SETTINGS))
    assert again[0] > done
    records = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len({(r["chain"], r["hop"]) for r in records}) == len(records)


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_line_that_was_cut_short_is_dropped(tmp_path, cut):
    """Whatever byte a kill stops at, the whole lines count."""
    journal = tmp_path / "search.jsonl"
    whole = basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=8), journal=journal)
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert same(whole, basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=8), journal=journal))
    np.testing.assert_equal(journal.read_bytes().count(b"\n"), 9)


def test_a_search_can_be_extended(tmp_path):
    """More solves of the same search begin where the journal ends."""
    journal = tmp_path / "search.jsonl"
    basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=8), journal=journal)
    longer = basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=20), journal=journal)
    assert same(longer, basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=20)))


def test_a_journal_of_another_search_is_refused(tmp_path):
    """So is a file that is no journal."""
    journal = tmp_path / "search.jsonl"
    basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=2), journal=journal)
    with pytest.raises(TruesimError, match="belongs to other work"):
        basin_hopping(rippled(), BasinHoppingOptions(chains=3, solves=2), journal=journal)
    journal.write_text("time,qpos\n0,1\n")
    with pytest.raises(TruesimError, match="is not a journal"):
        basin_hopping(rippled(), BasinHoppingOptions(chains=2, solves=2), journal=journal)
