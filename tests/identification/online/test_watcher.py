"""A stream of samples: estimates, changes, what cannot be read, and going on after an interruption."""

import gc
import tracemalloc

import numpy as np
import pytest

from experiments.payload_online.__main__ import LOAD as ARM_LOAD
from experiments.payload_online.__main__ import PICKED, watched
from tests.identification.two_joint_arm import FREE, LOAD, LOWER, stream, xml
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.identification.online import Rejected, Update, Watcher, WatchFolder, WatchOptions
from truesim.identification.online.changes import REMEMBERED_RATIOS

MASS = "bodies/lower.mass"


def follow(samples, watcher=None, **watching):
    """A watcher after samples, and everything that it said."""
    watcher = watcher or Watcher(loads(xml()), FREE, watching=WatchOptions(**watching))
    return watcher, [found for sample in samples if (found := watcher.feed(sample)) is not None]


def changes(said):
    return [u.change for u in said if isinstance(u, Update) and u.change is not None]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_load_is_noticed_within_a_second_and_weighed_within_five(seed):
    """A tenth of the last link's mass, picked up in motion."""
    watcher, said = follow(stream(13.2, seed, picked=8.0), changes=(MASS,))
    found = changes(said)
    assert len(found) == 1
    assert 8.0 < found[0].detected < 9.0
    assert abs(found[0].time - 8.0) < 0.5
    before = next(k for k in found[0].before if k.path == MASS)
    load = watcher.update.parameter(MASS).value - before.value
    assert abs(load - LOAD) < 0.1 * LOAD
    assert abs(before.value - LOWER) < 3.5 * before.std


def test_nothing_is_noticed_where_nothing_changes():
    """Every parameter might have changed, and none did; intervals hold the truth."""
    truth = {"lower.mass": LOWER, "shoulder.damping": 0.5, "elbow.damping": 0.3}
    truth |= {"shoulder.frictionloss": 0.2, "elbow.frictionloss": 0.1}
    off = []
    for seed in (10, 11):
        watcher, said = follow(stream(14.0, seed))
        assert not changes(said)
        for known in watcher.update.parameters:
            off.append(float((known.value - truth[known.path.split("/")[1]]) / known.std))
    assert np.sqrt(np.mean(np.square(off))) < 1.6
    assert np.max(np.abs(off)) < 4


def test_memory_does_not_grow():
    """Once as many log ratios are remembered as ever will be, samples leave nothing behind (an array is 100 bytes).

    Other threads of the process and caches of libraries allocate now and then, so the part that grew least counts.
    """
    samples = stream(8.0, 3)
    watcher, _ = follow(samples[:800])
    tracemalloc.start()
    watcher.recursion.bank.best = [1e-9 * k for k in range(REMEMBERED_RATIOS)]
    held = []
    for start in range(800, 1600, 160):
        for sample in samples[start : start + 160]:
            watcher.feed(sample)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert min(np.diff(held)) < 160 * 50


def test_bad_samples_are_left_out_with_a_reason():
    """No time, time that stands still, missing measurements, a pause: the estimate goes on."""
    samples = stream(9.0, 4)
    samples[800] = {"qpos/elbow": 1.0}
    samples[840] = samples[839]
    for k in range(880, 920):
        samples[k] = {name: x for name, x in samples[k].items() if name != "qpos/elbow"}
    del samples[1200:1280]
    watcher, said = follow(samples)
    reasons = [found.reason for found in said if isinstance(found, Rejected)]
    assert len(reasons) == watcher.rejected == 2
    assert "no time" in reasons[0]
    assert "does not increase" in reasons[1]
    mass = watcher.update.parameter(MASS)
    assert abs(mass.value - LOWER) < 4 * mass.std < 0.1
    assert not changes(said)


def test_outliers_do_not_count_for_much():
    """One measurement in 100 is off by a radian."""
    samples = stream(8.0, 5)
    for k in range(600, len(samples), 100):
        samples[k]["qpos/elbow"] += 1.0
    watcher, said = follow(samples)
    assert not changes(said)
    assert abs(watcher.update.parameter(MASS).value - LOWER) < 0.02


def test_an_interrupted_stream_goes_on(tmp_path):
    """After writing its folder and reading it again, the estimate is that of a stream without interruption."""
    samples = stream(6.0, 6)
    whole, _ = follow(samples)
    first, said = follow(samples[:711])
    folder = WatchFolder(tmp_path / "out", first)
    for update in said:
        folder.add(update)
    folder.keep()
    second = Watcher(loads(xml()), FREE)
    assert WatchFolder(tmp_path / "out", second).resumed
    assert second.time == samples[710]["time"]
    follow(samples[711:], second)
    np.testing.assert_allclose(second.update.theta, whole.update.theta, atol=1e-6)
    assert loads((tmp_path / "out" / "robot.xml").read_text()).bodies.mass[-1] == pytest.approx(LOWER, abs=0.05)
    old = {name.replace("deviations/", "departures/"): value for name, value in first.state().items()}
    third = Watcher(loads(xml()), FREE)
    third.restore(old)
    np.testing.assert_array_equal(third.update.theta, first.update.theta)
    other = Watcher(loads(xml()), ["bodies/*.mass"])
    with pytest.raises(TruesimError, match="was watched for"):
        WatchFolder(tmp_path / "out", other)


def test_mistakes_are_named():
    """Patterns that name nothing free, and settings that make no sense."""
    with pytest.raises(TruesimError, match="free parameter"):
        follow(stream(2.5), changes=("bodies/upper.mass",))
    with pytest.raises(TruesimError, match="must be positive"):
        WatchOptions(memory=0.0)


@pytest.mark.slow
def test_seven_joints():
    """The arm of the experiment: the load, and a thousand samples a second on one core."""
    outcome = watched(seed=0)
    assert len(outcome.detected) == 1
    assert PICKED < outcome.detected[0] < PICKED + 1
    assert abs(outcome.found - ARM_LOAD) < 0.1 * ARM_LOAD
    assert outcome.rate > 1000
