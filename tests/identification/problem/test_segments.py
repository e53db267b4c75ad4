"""Recordings and segments: every sample is used once, gaps split logs, and missing samples are not used."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import ARM, arm_log
from tests.robots import robot
from truesim.core.errors import TruesimError
from truesim.files.logs import Log, prepare
from truesim.identification.problem.channels import measured_channels
from truesim.identification.problem.recording import recording
from truesim.identification.problem.segments import segment_recordings

MODEL = robot(ARM)


def recorded(log: Log, inputs: tuple[str, ...] = ()):
    """The recording of a log."""
    clean = prepare(log, MODEL)
    return recording(clean, MODEL, measured_channels(MODEL, [clean]), inputs)


def changed(log: Log, **columns: np.ndarray) -> Log:
    """The log with other columns; `_` stands for `/`."""
    return dataclasses.replace(log, columns={**log.columns, **{k.replace("_", "/"): v for k, v in columns.items()}})


def with_hole(log: Log, column: str, hole: slice) -> Log:
    """The log with samples of a column missing."""
    values = log.columns[column].copy()
    values[hole] = np.nan
    return dataclasses.replace(log, columns={**log.columns, column: values})


def test_missing_samples_are_masked():
    """Missing samples are filled with finite values, since a kernel computes with them."""
    found = recorded(with_hole(arm_log(), "qpos/elbow", slice(100, 120)))
    np.testing.assert_array_equal(np.flatnonzero(~found.valid[:, 1]), np.arange(100, 120))
    assert found.valid[:, 0].all()
    for values in (found.measured, found.q, found.v, found.command):
        assert np.all(np.isfinite(values))
    assert len(found.pieces) == 1


def test_gaps_of_time_and_of_commands_split():
    """Nothing is simulated across a gap."""
    log = arm_log()
    late = np.where(np.arange(len(log.time)) < 200, log.time, log.time + 1.0)
    assert recorded(dataclasses.replace(log, time=late)).pieces == ((0, 199), (200, 511))
    assert recorded(with_hole(log, "ctrl/a", slice(200, 300))).pieces == ((0, 199), (300, 511))


def test_empty_and_short_logs_teach():
    """A column without values, and too few samples."""
    log = arm_log()
    with pytest.raises(TruesimError, match="ctrl/a of log has no values"):
        recorded(with_hole(log, "ctrl/a", slice(None)))
    with pytest.raises(TruesimError, match="5 samples; a fit needs at least 8"):
        recorded(log.rows(slice(5)))
    with pytest.raises(TruesimError, match="'ctrl/volts'"):
        recorded(log, inputs=("ctrl/volts",))


def pieces():
    """Two recordings, of which one has a gap and one has a hole."""
    log = arm_log()
    late = np.where(np.arange(len(log.time)) < 203, log.time, log.time + 1.0)
    return [
        recorded(dataclasses.replace(log, time=late)),
        recorded(with_hole(arm_log(1.3), "qpos/elbow", slice(7, 40))),
    ]


def test_every_sample_counts_once():
    """All that was measured, but for the last sample before a gap, from which no interval begins."""
    recordings = pieces()
    layout = segment_recordings(recordings)
    for index, one in enumerate(recordings):
        seen = np.zeros(one.valid.shape, int)
        for k in np.flatnonzero(layout.log == index):
            count = layout.valid[k].any(axis=1).sum() if layout.valid[k].any() else 0
            assert count <= layout.valid.shape[1]
            for j in range(layout.valid.shape[1]):
                if layout.valid[k, j].any():
                    sample = layout.first[k] + j
                    seen[sample] += layout.valid[k, j]
                    np.testing.assert_array_equal(layout.intervals.measured[k, j], one.measured[sample])
                    np.testing.assert_array_equal(layout.intervals.command[k, j], one.command[sample])
                    assert layout.intervals.duration[k, j] == one.time[sample + 1] - one.time[sample]
        expected = one.valid.astype(int)
        expected[[end for _, end in one.pieces]] = 0
        np.testing.assert_array_equal(seen, expected)


def test_segments_follow_each_other_within_pieces_only():
    """The first segment of a log and of a segment stands alone."""
    layout = segment_recordings(pieces())
    size = layout.valid.shape[1]
    heads = [(0, 0), (0, 203), (1, 0)]
    found = [(layout.log[k], layout.first[k]) for k in np.flatnonzero(~layout.follows)]
    assert found == heads
    later = np.flatnonzero(layout.follows)
    assert np.all(layout.first[later] == layout.first[later - 1] + size)
    assert np.all(layout.log[later] == layout.log[later - 1])


def test_windows():
    """At most `length` segments, never across a gap; padding is zero."""
    layout = segment_recordings(pieces())
    for length in (1, 3, layout.size):
        windows = layout.windows(length)
        assert windows.place.max() < length
        assert not np.any(windows.place[~layout.follows])
        np.testing.assert_array_equal(windows.joined[:-1], windows.place[1:] == windows.place[:-1] + 1)
        padded = windows.pad(np.ones((layout.size, 2)))
        assert padded.shape == (*windows.shape, 2)
        assert padded.sum() == 2 * layout.size
        np.testing.assert_array_equal(padded[windows.window, windows.place], 1.0)
    assert layout.windows(layout.size).shape[0] == 3
    assert layout.windows(1).shape == (layout.size, 1)
    assert not layout.windows(1).joined.any()


def test_past_commands_are_those_of_the_segment():
    """A segment knows what was commanded before it; before a segment its first command has always been held."""
    recordings = pieces()
    layout = segment_recordings(recordings, history=4)
    one = recordings[0]
    k = int(np.flatnonzero(layout.follows)[0])
    first = layout.first[k]
    np.testing.assert_array_equal(layout.commands[k], one.command[first - 4 : first])
    np.testing.assert_allclose(layout.stamps[k], one.time[first - 4 : first] - one.time[first])
    head = int(np.flatnonzero(layout.first == 203)[0])
    np.testing.assert_array_equal(layout.commands[head], np.tile(one.command[203], (4, 1)))
    assert np.all(np.diff(layout.stamps[head]) > 0)
    assert layout.stamps[head][-1] < 0
