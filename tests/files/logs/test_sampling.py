"""Stamps: statistics, gaps, and the parts between gaps."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from truesim.files.logs import Gap, Log, missing_samples, sampling, split_at_gaps

steps = hnp.arrays(float, st.integers(0, 40), elements=st.sampled_from([0.0, 0.001, 0.002, 0.0021, 0.05, 1.0]))
holes = st.lists(st.integers(0, 39), max_size=30)


def stamps(steps: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.3], 0.3 + np.cumsum(steps)])


def test_statistics_of_a_jittered_log_with_a_gap():
    """Rate is the median's, jitter leaves gaps out, a gap has a start and an end."""
    rng = np.random.default_rng(0)
    time = np.cumsum(0.002 + 0.0002 * rng.standard_normal(1000))
    time[500:] += 0.5
    time[700] = time[699]
    found = sampling(Log(time, {}))
    assert found.samples == 1000
    assert found.rate == pytest.approx(500, rel=0.01)
    assert found.jitter == pytest.approx(0.0002, rel=0.1)
    assert found.gaps == (Gap(time[499], time[500]),)
    assert found.repeated == 1


def test_a_column_has_its_own_rate():
    """Columns of one log may be sampled at different stamps; the others are missing there."""
    time = np.arange(100) / 100
    slow = np.where(np.arange(100) % 10 == 0, 1.0, np.nan)
    log = Log(time, {"fast": np.ones(100), "slow": slow})
    assert sampling(log, ["slow"]).rate == pytest.approx(10)
    assert sampling(log, ["slow", "fast"]).rate == pytest.approx(100)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_samples_have_no_rate(count):
    """Nothing is invented for an empty log or a single sample."""
    found = sampling(Log(np.arange(count) * 1.0, {}))
    assert found.samples == count
    assert np.isnan(found.rate)
    assert found.gaps == ()


@given(steps)
def test_segments_hold_every_sample(steps):
    """Joined again, the parts are the log; no part has a gap, every cut is one."""
    time = stamps(steps)
    log = Log(time, {"a": np.arange(len(time)) * 1.0})
    parts = split_at_gaps(log, gap=0.01)
    np.testing.assert_array_equal(np.concatenate([part.time for part in parts]), time)
    np.testing.assert_array_equal(np.concatenate([part.column("a") for part in parts]), log.column("a"))
    assert all(np.all(np.diff(part.time) <= 0.01) for part in parts)
    assert all(b.time[0] - a.time[-1] > 0.01 for a, b in itertools.pairwise(parts))
    assert len(parts) == 1 + len(sampling(log, gap=0.01).gaps)


@given(holes)
def test_no_segment_spans_a_hole_in_a_needed_column(holes):
    """A needed column is never missing for longer than a gap, and no sample of it is lost."""
    time, values = np.arange(40) / 100, np.arange(40) * 1.0
    values[holes] = np.nan
    log = Log(time, {"ctrl/a": values, "qpos/a": np.zeros(40)})
    parts = split_at_gaps(log, needed=["ctrl/a"], gap=0.035)
    kept = np.concatenate([np.zeros(0), *(part.column("ctrl/a") for part in parts)])
    np.testing.assert_array_equal(kept[np.isfinite(kept)], values[np.isfinite(values)])
    for part in parts:
        known = part.time[np.isfinite(part.column("ctrl/a"))]
        assert np.all(np.diff(known) <= 0.035 + 1e-12)
        assert len(known)


def test_a_needed_column_sampled_more_slowly_does_not_cut():
    """Commands at a tenth of the rate are no gaps."""
    time = np.arange(100) / 100
    log = Log(time, {"ctrl/a": np.where(np.arange(100) % 10 == 0, 1.0, np.nan)})
    assert len(split_at_gaps(log, needed=["ctrl/a"])) == 1


@given(st.sets(st.integers(0, 39), max_size=37))
def test_missing_samples_are_counted(holes):
    """At an even rate, every missing row counts, at the ends too, if the rate can be told."""
    values = np.ones(40)
    values[list(holes)] = np.nan
    known = np.flatnonzero(np.isfinite(values))
    log = Log(np.arange(40) / 100, {"a": values})
    if np.median(np.diff(known)) == 1:
        assert missing_samples(log, "a") == len(holes)


def test_rows_of_other_columns_are_not_missing():
    """Two topics at their own stamps have no missing samples."""
    time = np.sort(np.concatenate([np.arange(100) / 100, np.arange(20) / 20 + 0.003]))
    slow = np.isin(time, np.arange(20) / 20 + 0.003)
    log = Log(time, {"slow": np.where(slow, 1.0, np.nan), "fast": np.where(slow, np.nan, 1.0)})
    assert missing_samples(log, "slow") == 0
    assert missing_samples(log, "fast") == 0
