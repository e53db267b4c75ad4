"""Logs in and out."""

import numpy as np
import pytest

from truesim.core.errors import FileError, NameUnknownError, TruesimError
from truesim.files.logs import Log, read_log, write_log


def test_round_trip_keeps_every_bit(tmp_path):
    """What is written is read back exactly."""
    values = np.random.default_rng(0).normal(size=(3, 50)) * 1e-7
    write_log(tmp_path / "a.csv", {"time": np.arange(50) / 3, "qpos/a": values[0], "qvel/a": values[1]})
    log = read_log(tmp_path / "a.csv")
    np.testing.assert_array_equal(log.time, np.arange(50) / 3)
    np.testing.assert_array_equal(log.column("qpos/a"), values[0])


def test_values_hold_until_the_next_sample():
    """A control acts from its time on; the first one also before it."""
    log = Log(np.array([0.0, 0.1, 0.3]), {"ctrl/a": np.array([1.0, 2.0, 3.0])})
    held = log.hold(["ctrl/a"], np.array([-1.0, 0.0, 0.0999, 0.1, 0.25, 0.3, 9.0]))
    np.testing.assert_array_equal(held[:, 0], [1, 1, 1, 2, 2, 3, 3])


def test_an_unknown_column_names_the_nearest():
    """The message offers the column that was probably meant."""
    log = Log(np.zeros(1), {"ctrl/elbow": np.zeros(1)}, "run.csv")
    with pytest.raises(NameUnknownError, match=r"run\.csv.*'ctrl/elbw'.*did you mean 'ctrl/elbow'"):
        log.column("ctrl/elbw")


def test_text_where_time_should_be(tmp_path):
    """A time column of words is an error, other columns of words are left out."""
    (tmp_path / "a.csv").write_text("time,ctrl/a\nnoon,1\n")
    with pytest.raises(FileError, match="does not hold numbers"):
        read_log(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("time,note,ctrl/a\n0,hello,1\n")
    assert list(read_log(tmp_path / "b.csv").columns) == ["ctrl/a"]


def test_missing_values_are_bridged_by_the_last_known():
    """A control that is missing keeps its last value; interpolation draws a line, but not across a gap."""
    log = Log(np.array([0.0, 0.1, 0.2, 0.6]), {"a": np.array([1.0, np.nan, 3.0, 7.0])})
    np.testing.assert_array_equal(log.hold(["a"], np.array([0.1, 0.15, 0.2]))[:, 0], [1, 1, 3])
    when = np.array([-0.1, 0.0, 0.1, 0.4, 0.6, 0.7])
    np.testing.assert_allclose(log.interpolate(["a"], when)[:, 0], [np.nan, 1, 2, 5, 7, np.nan])
    np.testing.assert_allclose(log.interpolate(["a"], when, gap=0.3)[:, 0], [np.nan, 1, 2, np.nan, 7, np.nan])


def test_parts_of_a_log():
    """Rows between two times, both included."""
    log = Log(np.arange(5) * 0.1, {"a": np.arange(5.0)})
    np.testing.assert_array_equal(log.between(0.1, 0.3).column("a"), [1, 2, 3])
    np.testing.assert_array_equal(log.present(["a"]), np.ones((5, 1), dtype=bool))


def test_a_log_made_in_python_is_checked_too():
    """Stamps that go back and columns of another length are errors at once."""
    with pytest.raises(TruesimError, match=r"backwards in run at sample 3.*from 2 to 1 s"):
        Log(np.array([0.0, 2.0, 1.0]), {}, "run")
    with pytest.raises(TruesimError, match="a of run has 2 samples, time has 3"):
        Log(np.arange(3.0), {"a": np.zeros(2)}, "run")
