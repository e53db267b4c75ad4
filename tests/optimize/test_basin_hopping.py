"""Basin hopping: what it finds depends on the seed alone, and it never gets worse."""

import hashlib
import json

import numpy as np
import pytest

from tests.identification.search.problems import rippled
from truesim.core.errors import TruesimError
from truesim.optimize import BasinHoppingOptions, BatchedLevenbergMarquardt, SearchSpace, SolveStatus, basin_hopping
from truesim.optimize.starts import first_start, next_start


def same(a, b):
    """Whether two searches did the same solves, to the last bit."""
    return len(a.solves) == len(b.solves) and all(
        (x.chain, x.hop, x.cost) == (y.chain, y.hop, y.cost)
        and np.array_equal(x.start, y.start)
        and np.array_equal(x.theta, y.theta)
        for x, y in zip(a.solves, b.solves, strict=True)
    )


def test_the_seed_decides_everything():
    """The same seed gives the same solves with small batches, large batches and two threads; another seed does not."""
    settings = BasinHoppingOptions(chains=8, solves=60, seed=3)
    first = basin_hopping(rippled(), settings)
    assert same(first, basin_hopping(rippled(), settings, solver=BatchedLevenbergMarquardt(rippled(), capacity=3)))
    assert same(first, basin_hopping(rippled(threads=2), settings))
    assert not same(first, basin_hopping(rippled(), BasinHoppingOptions(chains=8, solves=60, seed=4)))


def test_hopping_finds_the_lowest_minimum():
    """From a start whose own minimum is a poor one, hopping finds the best, and its chains never get worse."""
    objective = rippled()
    alone = basin_hopping(objective, BasinHoppingOptions(chains=1, solves=1))
    found = basin_hopping(objective, BasinHoppingOptions(chains=1, goal=1e-15, seed=1))
    assert alone.best.cost > 1
    assert found.best.cost < 1e-15
    np.testing.assert_allclose(found.best.theta, [1.0, -2.0], atol=1e-7)
    basins = found.basins()
    assert len(basins) > 2
    assert basins.count.sum() == len(found.solves)
    assert np.all(np.diff(basins.cost) >= 0)


def test_a_search_stops_at_the_same_number_however_it_runs():
    """A goal ends the search at the first solve, in the order of numbers, that reaches it."""
    settings = BasinHoppingOptions(chains=5, goal=1e-15, seed=2)
    first = basin_hopping(rippled(), settings)
    assert same(first, basin_hopping(rippled(), settings, solver=BatchedLevenbergMarquardt(rippled(), capacity=2)))
    assert first.solves[-1].cost < 1e-15
    assert all(solve.cost >= 1e-15 for solve in first.solves[:-1])


def test_every_chain_reaches_the_goal():
    """If every chain has to, every chain does."""
    found = basin_hopping(rippled(), BasinHoppingOptions(chains=20, goal=1e-15, every_chain=True))
    assert {s.chain for s in found.solves if s.cost < 1e-15} == set(range(20))


def test_time_ends_a_search():
    """A search that would go on for ever stops after its time."""
    found = basin_hopping(rippled(), BasinHoppingOptions(chains=4, seconds=2.0))
    assert 2.0 <= found.seconds < 10
    assert found.solves


def test_an_interrupt_keeps_what_was_found():
    """Ctrl-C ends the search, not the program."""

    def impatient(found):
        if len(found.solves) > 10:
            raise KeyboardInterrupt

    found = basin_hopping(rippled(), BasinHoppingOptions(chains=4, solves=10_000), callback=impatient)
    assert found.interrupted
    assert 10 < len(found.solves) < 10_000


def test_starts_stay_between_bounds():
    """Draws fill the box, hops are reflected at it, and coordinates without bounds move too."""
    box = SearchSpace(
        np.array([-1.0, -np.inf, 0.0]), np.array([1.0, np.inf, np.inf]), np.array([0.0, 5.0, 0.1]), reach=3.0
    )
    firsts = np.stack([first_start(box, 0, chain) for chain in range(500)])
    hops = np.stack([next_start(box, 0, 0, k, box.start) for k in range(1, 500)])
    np.testing.assert_array_equal(firsts[0], box.start)
    for drawn in (firsts[1:], hops):
        assert np.all(drawn >= box.low)
        assert np.all(drawn <= box.high)
        assert np.all(drawn.std(axis=0) > 0.1)
    assert np.abs(np.histogram(firsts[1:, 0], bins=4, range=(-1, 1))[0] - 125).max() < 40


def test_a_search_without_an_end_is_refused():
    """And so are starts that do not fit."""
    with pytest.raises(TruesimError, match="never stop"):
        BasinHoppingOptions()
    with pytest.raises(TruesimError, match="3 chains of 2 coordinates"):
        basin_hopping(rippled(), BasinHoppingOptions(chains=3, solves=3), starts=np.zeros((2, 2)))


def test_journals_of_earlier_versions_are_taken_up(tmp_path):
    """Fingerprint and records are those of the first version of the schema."""
    journal = tmp_path / "search.jsonl"
    options = BasinHoppingOptions(chains=2, solves=2)
    space = rippled().space
    said = [
        *(np.asarray(part).tolist() for part in space[:3]),
        "inf", "2", "0", "Tolerance(fall=1e-08, step=1e-08, iterations=100)", "None", "''",
    ]  # fmt: skip
    fingerprint = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    head = {"schema": "truesim.search/1", "fingerprint": fingerprint}
    record = {"chain": 0, "hop": 0, "start": [4.0, 4.0], "theta": [1.0, -2.0], "cost": 0.0}
    record |= {"iterations": 3, "ending": "stalled"}
    journal.write_text(json.dumps(head) + "\n" + json.dumps(record) + "\n")
    found = basin_hopping(rippled(), options, journal=journal)
    assert found.best.status is SolveStatus.STALLED
    assert json.loads(journal.read_text().splitlines()[-1])["ending"] == "converged"
