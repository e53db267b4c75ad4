"""Several logs at once: patterns, folders and lists, and errors that say what there is."""

import pytest

import truesim as ts
from truesim.core.errors import FileError

TEXT = "time,qpos/elbow\n0,{0}\n1,{0}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three runs, written in another order than that of their names, and a file that is no log."""
    monkeypatch.chdir(tmp_path)
    for k in (2, 0, 1):
        (tmp_path / f"run{k}.csv").write_text(TEXT.format(k))
    (tmp_path / "notes.md").write_text("no log")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("paths", ["run*.csv", "./run?.csv", "absolute", "folder", ["run0.csv", "run[12].csv"]])
def test_sorted(folder, paths):
    """A pattern, a folder and a list give the same logs in the same order."""
    paths = {"absolute": str(folder / "run*.csv"), "folder": folder}.get(str(paths), paths)
    logs = ts.read_logs(paths)
    assert [log.name for log in logs] == ["run0.csv", "run1.csv", "run2.csv"]
    assert [log.column("qpos/elbow")[0] for log in logs] == [0, 1, 2]


def test_a_list_keeps_its_order(folder):
    """The order of a list is the user's."""
    assert [log.name for log in ts.read_logs(["run2.csv", folder / "run0.csv"])] == ["run2.csv", "run0.csv"]


def test_a_mapping_is_of_all(folder):
    """Columns are renamed in every log."""
    mapping = {"columns": {"time": {"from": "time"}, "qpos/wrist": {"from": "qpos/elbow"}}}
    assert all("qpos/wrist" in log.columns for log in ts.read_logs("run*.csv", mapping=mapping))


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ("trial*.csv", ["'trial*.csv'", "this folder contains", "notes.md", "run0.csv"]),
        ("gone/*.csv", ["the folder gone does not exist"]),
        ("empty", ["No file in empty is a log", "empty is empty"]),
        ("empty/*.csv", ["empty is empty"]),
        ("run9.csv", ["There is no log file run9.csv; did you mean run"]),
        ([], ["list of logs is empty"]),
    ],
)
def test_nothing_found(folder, paths, words):
    """The sentence says what was asked for and what is there."""
    with pytest.raises(FileError) as error:
        ts.read_logs(paths)
    for word in words:
        assert word in str(error.value)


def test_files_of_one_name_in_several_folders(tmp_path):
    """Their logs have the folders in their names that tell them apart."""
    for folder in ("monday/a", "monday/b", "tuesday/a"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "run.csv").write_text("time,qpos/a\n0,1\n1,2\n")
    (tmp_path / "other.csv").write_text("time,qpos/a\n0,1\n1,2\n")
    logs = ts.read_logs(
        [tmp_path / "other.csv", *(tmp_path / f / "run.csv" for f in ("monday/a", "monday/b", "tuesday/a"))]
    )
    assert [log.name for log in logs] == ["other.csv", "monday/a/run.csv", "b/run.csv", "tuesday/a/run.csv"]
