"""Tables of every format, and the sentences for those that cannot be read."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

from truesim.core.errors import FileError, TruesimError
from truesim.files.logs import read_log, read_logs
from truesim.files.logs.read import read_columns
from truesim.files.logs.text import COMPRESSIONS

TIME, ANGLE = np.arange(50) / 30, np.random.default_rng(0).normal(size=50) * 1e-7


def write(path, name, columns):
    if name.endswith(".npz"):
        np.savez(path / name, **columns)
    elif name.endswith(".parquet"):
        pl.DataFrame(columns).write_parquet(path / name)
    else:
        pl.DataFrame(columns).write_csv(path / name, separator="\t" if name.endswith(".tsv") else ",")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.parquet", "a.npz"])
def test_every_format_holds_the_same_numbers(tmp_path, name):
    """What was written is read, bit by bit."""
    write(tmp_path, name, {"time": TIME, "qpos/elbow": ANGLE})
    log = read_log(tmp_path / name)
    np.testing.assert_array_equal(log.time, TIME)
    np.testing.assert_array_equal(log.column("qpos/elbow"), ANGLE)
    assert log.name == name


def test_matrices_of_an_archive_become_columns(tmp_path):
    """Columns of a matrix are numbered; single numbers are left out."""
    np.savez(tmp_path / "a.npz", time=TIME, qpos=np.stack([ANGLE, 2 * ANGLE], axis=1), rate=30.0)
    log = read_log(tmp_path / "a.npz")
    assert list(log.columns) == ["qpos/0", "qpos/1"]
    np.testing.assert_array_equal(log.column("qpos/1"), 2 * ANGLE)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("time,a\n0,1\n1,\n2,3\n", [1, np.nan, 3]),
        ("time,a\n0,1\n1,nan\n2,NaN\n", [1, np.nan, np.nan]),
        ("time;a\n0;1,5\n1;2,25\n2;-3\n", [1.5, 2.25, -3]),
        ("time, a\n0, 1\n1, 2\n2, n/a\n", [1, 2, np.nan]),
        ("# time,a\r\n0,1e-3\r\n1,2\r\n2,3\r\n", [1e-3, 2, 3]),
        ("\ufefftime\ta\n0\ttrue\n1\tfalse\n2\ttrue\n", [1, 0, 1]),
        ("time a\n0 1\n1 2\n2 3\n", [1, 2, 3]),
    ],
    ids=["empty cell", "nan", "decimal comma", "blanks", "hash and crlf", "bom and tabs", "spaces"],
)
def test_tables_as_people_write_them(tmp_path, text, values):
    """Separators, missing values, decimal commas and odd headers are understood."""
    (tmp_path / "a.csv").write_text(text)
    log = read_log(tmp_path / "a.csv")
    np.testing.assert_array_equal(log.time, [0, 1, 2])
    np.testing.assert_array_equal(log.column("a"), values)


def test_dates_are_stamps(tmp_path):
    """A column of dates counts seconds from its first."""
    (tmp_path / "a.csv").write_text("time,a\n2026-01-01T23:59:59.5,1\n2026-01-02T00:00:00.25,2\n")
    np.testing.assert_allclose(read_log(tmp_path / "a.csv").time, [0, 0.75])


def test_words_are_left_out_and_said(tmp_path):
    """A column of words is named in the findings; a column of numbers with a few words keeps its numbers."""
    (tmp_path / "a.csv").write_text("time,mode,a\n0,on,1\n1,off,2\n2,on,error\n")
    log = read_log(tmp_path / "a.csv")
    assert list(log.columns) == ["a"]
    assert str(log.findings[0]) == "mode: holds text, not numbers; left out."
    np.testing.assert_array_equal(log.column("a"), [1, 2, np.nan])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", ["no samples", "empty"]),
        ("a.csv", b"time,a\n", ["no samples"]),
        ("a.csv", b"timestamp,a\n0,1\n", ["no column 'time'", "timestamp, a", "from = 'timestamp'"]),
        ("a.csv", b"a,b\n0,1\n", ["no column 'time'", "rate = 100.0"]),
        ("a.csv", b"0,1\n1,2\n", ["begins with numbers", "columns ="]),
        ("a.csv", b"time,a\n0,1\n2,1\n1.5,1\n3,1\n", ["backwards", "row 4", "from 2 to 1.5 s", "sort its rows"]),
        ("a.csv", b"time,a\n0,1\n,1\n2,1\n", ["missing in sample 2", "1 of 3 stamps"]),
        ("a.csv", b"time,a\n0,1\n1,2,3\n", ["cannot be read as a table"]),
        ("a.csv", b"\xff\xfe\x00", ["cannot be read as a table"]),
        ("a.parquet", b"nonsense", ["a.parquet cannot be read as a table"]),
        ("a.npz", b"nonsense", ["a.npz cannot be read as NPZ"]),
        ("a.docx", b"PK", ["no known format", ".parquet"]),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, name, content, words):
    """The file, the place and what to do about it."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TruesimError) as error:
        read_log(tmp_path / name)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_arrays_of_different_length(tmp_path):
    """The lengths are shown."""
    np.savez(tmp_path / "a.npz", time=TIME, a=ANGLE[:-1])
    with pytest.raises(FileError, match="time 50, a 49"):
        read_log(tmp_path / "a.npz")


def test_words_and_objects_in_an_npz_file_are_left_out(tmp_path):
    """Names of joints and dictionaries lie beside the signals of many recorders; they are not unpickled."""
    np.savez(tmp_path / "a.npz", time=TIME, a=ANGLE, names=np.array(["a", "b"]), meta=np.array({"x": 1}, dtype=object))
    assert set(read_log(tmp_path / "a.npz").columns) == {"a"}


def test_no_time_names_the_unit_and_who_guesses_it(tmp_path):
    """`timestamp_ms` is in milliseconds."""
    np.savez(tmp_path / "a.npz", timestamp_ms=1e3 * TIME, a=ANGLE)
    with pytest.raises(FileError, match=r"unit = 'ms' }. `truesim inspect ROBOT LOG --write-mapping mine.toml`"):
        read_log(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "text",
    [
        "# Recorder 2\n# arm in the lab\ntime,qpos/a\n0,1\n1,2\n",
        "# Recorder 2\n# time qpos/a\n0 1\n1 2\n",
        "%time;qpos/a\n0,0;1,0\n1,0;2,0\n",
        "time,qpos/a,mode\n0,1,AUTO\n1,2,AUTO\n",
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_comments_and_compression(tmp_path, text, ending):
    """Comments before a table, the last of which may hold the names; text may be compressed."""
    path = tmp_path / f"run.csv{ending}"
    with COMPRESSIONS.get(ending, open)(path, "wb") as file:
        file.write(text.encode())
    (log,) = read_logs(tmp_path)
    np.testing.assert_array_equal(log.time, [0, 1])
    np.testing.assert_array_equal(log.column("qpos/a"), [1, 2])


@pytest.mark.parametrize(
    "broken", [gzip.compress(b"time,a\n0,1\n" * 99)[:-9], b"time,a\n0,1\n"], ids=["ends early", "not compressed"]
)
def test_broken_compression_is_told(tmp_path, broken):
    """A file that ends early, and one that is not compressed at all."""
    (tmp_path / "run.csv.gz").write_bytes(broken)
    with pytest.raises(FileError, match="cannot be"):
        read_log(tmp_path / "run.csv.gz")


def test_stamps_of_loggers(tmp_path):
    """Seconds and nanoseconds are one stamp; a row of units, and rows that changed places, are repaired."""
    rows = [f"{1_700_000_000 + k // 100},{k % 100 * 10_000_000},{k}" for k in range(200)]
    rows[50], rows[51] = rows[51], rows[50]
    (tmp_path / "run.csv").write_text("\n".join(["sec,nanosec,q", "[s],[ns],[rad]", *rows]) + "\n")
    columns = read_columns(tmp_path / "run.csv")
    assert columns["sec"][3] - columns["sec"][2] == pytest.approx(0.01, abs=1e-6)
    log = read_log(tmp_path / "run.csv", mapping={"columns": {"time": "sec"}})
    np.testing.assert_allclose(np.diff(log.time), 0.01, atol=1e-6)
    np.testing.assert_array_equal(log.column("q"), np.arange(200))
    assert [f.message for f in log.findings] == [
        "rows without a stamp were left out (1).",
        "rows written out of order were sorted (1).",
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_encodings_of_spreadsheets(tmp_path, encoding):
    """Older encodings than UTF-8 are read."""
    (tmp_path / "a.csv").write_bytes("time,winkel [°]\n0,1\n1,2\n".encode(encoding))
    assert list(read_columns(tmp_path / "a.csv")["winkel [°]"]) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "content", "cure"),
    [
        ("a.csv", b"PK\x03\x04" + bytes(50), "export the table as CSV"),
        ("a.xlsx", b"PK\x03\x04", "export the table as CSV"),
        ("a.npy", b"\x93NUMPY", r"np\.savez"),
        ("a.csv", b"1,2\x00", "binary"),
        ("a.jsonl", b'{"time": 0}\n{"time"', "Line 2"),
        ("a.jsonl", b"[1, 2]", "no record"),
        ("a.jsonl", b"\n", "no samples"),
        ("a.json", b"{}", r"\.jsonl"),
    ],
)
def test_other_formats_are_told_with_a_cure(tmp_path, name, content, cure):
    """A file that is no log is named, with what to do."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=cure):
        read_columns(tmp_path / name)


def test_a_header_without_rows(tmp_path):
    """No samples, no guess."""
    (tmp_path / "a.csv").write_text("time,qpos/elbow\n")
    with pytest.raises(FileError, match="no samples"):
        read_columns(tmp_path / "a.csv")


def test_records_of_json_lines(tmp_path):
    """Numbers are named by their path; lists get the names of the record's joints."""
    rows = [
        {"stamp": {"sec": 5, "nanosec": k}, "name": ["a", "b"], "position": [k, 7], "state": {"x": [1, np.nan, 2]}}
        for k in range(3)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = read_columns(tmp_path / "a.jsonl")
    np.testing.assert_allclose(found["stamp/sec"] - 5, [0, 1e-9, 2e-9], atol=1e-12)
    assert list(found["position/a"]) == [0, 1, 2]
    assert list(found["state/x/0"]) == [1, 1, 1]
    assert np.isnan(found["state/x/1"]).all()


def test_joint_states_without_a_header(tmp_path):
    """What `ros2 topic echo --csv` writes: stamp, frame, names, positions, velocities."""
    rows = [f"5,{10_000_000 * k},base,elbow,wrist,0.{k},0.5,0.0,0.0" for k in range(1, 5)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    found = read_columns(tmp_path / "a.csv")
    np.testing.assert_allclose(found["sec"] - 5, [0.01, 0.02, 0.03, 0.04])
    assert list(found["position/elbow"]) == [0.1, 0.2, 0.3, 0.4]
    assert list(found["velocity/wrist"]) == [0, 0, 0, 0]


def test_one_row_for_each_joint(tmp_path):
    """Rows of a long table are spread: one row a stamp, one column a joint; what a joint did not log is missing."""
    rows = [f"{0.1 * k},{joint},{k + offset}" for k in range(3) for joint, offset in (("elbow", 0), ("wrist", 10))]
    (tmp_path / "a.csv").write_text("\n".join(["time,joint,position", *rows[:-1]]))
    log = read_log(tmp_path / "a.csv")
    np.testing.assert_allclose(log.time, [0, 0.1, 0.2])
    np.testing.assert_array_equal(log.column("position/elbow"), [0, 1, 2])
    np.testing.assert_array_equal(log.column("position/wrist"), [10, 11, np.nan])


def test_dates_with_a_time_zone(tmp_path):
    """One offset for all rows is left out."""
    text = "time,a\n2025-03-01 10:00:00.5+01:00,1\n2025-03-01 10:00:01+01:00,2\n"
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_allclose(np.diff(read_log(tmp_path / "a.csv").time), [0.5])
