"""Text files of plain numbers: the same log as by the table library, and None for all other files."""

import numpy as np
import pytest

from truesim.files.logs import plain_csv, read_log, write_log
from truesim.files.logs import read as reading

PLAIN = "time,qpos/a,note [deg]\n0,1e-3,-0.1\n0.01,+2,3.141592653589793\n0.02,.5,1e300\n"


def test_equals_the_table_librarys_reading(tmp_path, monkeypatch):
    """Names, order and every bit of the numbers, as the table library reads them."""
    path, rng = tmp_path / "run.csv", np.random.default_rng(0)
    random = {name: rng.normal(size=300) * 10.0 ** rng.integers(-300, 300, 300) for name in ("qpos/b", "ctrl/c")}
    write_log(path, {"qpos/a": rng.normal(size=300), "time": np.arange(300) * 0.01, **random})
    plain = read_log(path)
    monkeypatch.setattr(reading, "read_plain_csv", lambda path: None)
    table = read_log(path)
    assert list(plain.columns) == list(table.columns) == ["qpos/a", "qpos/b", "ctrl/c"]
    np.testing.assert_array_equal(plain.time, table.time)
    for name, values in table.columns.items():
        np.testing.assert_array_equal(plain.columns[name].view(np.uint64), values.view(np.uint64))
    assert (plain.name, plain.findings, plain.source) == (table.name, table.findings, table.source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("time", '"time"'),
        ("time", "stamp"),
        ("time", "time "),
        ("note [deg]", "qpos/a"),
        ("note [deg]", "time_nsec"),
        (",", ";"),
        ("\n", "\r\n"),
        ("0.01,+2", "\n0.01,+2"),
        ("0.01,+2", "-0.01,+2"),
        (".5", ""),
        (".5", "nan"),
        (".5", "open"),
        (".5,", ""),
        ("time", "# time"),
        ("time", "\ufefftime"),
    ],
)
def test_leaves_unusual_files_to_the_table_library(tmp_path, old, new):
    """Every file but a plain one has no columns here."""
    path = tmp_path / "run.csv"
    path.write_text(PLAIN.replace(old, new, 1) if new else PLAIN.replace(old, new))
    assert (plain_csv.read_plain_csv(path) is None) == (old != "")


def test_leaves_other_paths_to_the_table_library(tmp_path):
    """Files that are missing, empty, large or of another kind."""
    path = tmp_path / "run.csv"
    for name, text in (("run.tsv", PLAIN), ("run.csv.gz", PLAIN), ("run.csv", "time,a\n"), ("run.csv", "")):
        (tmp_path / name).write_text(text)
        assert plain_csv.read_plain_csv(tmp_path / name) is None
    path.write_text("time,a\n" + "0,1\n" * (plain_csv.MAX_PLAIN_BYTES // 4))
    assert plain_csv.read_plain_csv(path) is None
    assert plain_csv.read_plain_csv(tmp_path / "absent.csv") is None
