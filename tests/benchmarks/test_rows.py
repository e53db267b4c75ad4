"""Comparisons, rows, the page and the picture; nothing is measured."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks import run
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.page import as_json, notes, page, write_page
from benchmarks.process import Outcome, Task

FIELDS = {"name", "ours", "peer", "peer_name", "unit", "ratio", "target"}
FAST, SLOW, GONE = Task("m", "fast"), Task("m", "slow"), Task("m", "gone")
FOUND = {
    FAST: Outcome(2e-6, compilation=1.5, memory=300.0, outputs=((1.0, 2.0),)),
    SLOW: Outcome(3e-5, memory=200.0, outputs=((1.0, 2.3),)),
    GONE: Outcome(missing="took longer than 9 s"),
}
ROWS = [
    Comparison("met", "a step", FAST, SLOW, "other", 10),
    Comparison("missed", "a long step", FAST, SLOW, "other", 20, tolerance=1e-3),
    Comparison("gone", "a hard step", FAST, GONE, "lost <engine>", 5),
    Comparison("allowed", "compile", SLOW, 6e-5, "time allowed", 1, unit="s"),
]


@pytest.fixture
def rows(monkeypatch):
    measured = []

    def measure(task, patience, limit):
        assert (patience, limit) == (0.1, 9.0)
        measured.append(task)
        return FOUND[task]

    monkeypatch.setattr(run, "measure", measure)
    result = list(run.rows(ROWS, 0.1, 9.0))
    assert measured == [FAST, SLOW, GONE], "each task is measured once"
    return result


def test_ratios_grow_with_our_speed(rows):
    """The ratio is the peer's time by ours; a missing peer has none, and a reason."""
    assert [row.ratio for row in rows] == pytest.approx([15, 15, None, 2])
    assert [row.met for row in rows] == [True, False, False, True]
    assert rows[0].ours == pytest.approx(2)
    assert rows[3].ours == pytest.approx(3e-5)
    assert rows[2].note == "lost <engine> is missing: took longer than 9 s"


def test_results_are_compared_where_they_must_agree(rows):
    """The difference of the outputs is a note: 0.3 of 1 + 2.3."""
    assert rows[0].note is None
    assert rows[1].note == "NOT the same results to 0.001: 9.1e-02 of 1 + the largest entry"
    assert len(notes(rows)) == 2


def test_json_has_the_promised_fields(rows):
    """Other programs find the seven fields in every row, and no number that JSON cannot hold."""
    shown = json.loads(json.dumps(as_json(rows), allow_nan=False))
    for row in shown["rows"]:
        assert set(row) >= FIELDS
        assert isinstance(row["target"], float | int)
    assert shown["rows"][2]["ratio"] is None
    assert shown["machine"]["processor"]
    assert shown["versions"]["mujoco"]


def test_the_page_and_its_picture(rows, tmp_path):
    """The page has a line for each row and shows the picture, which is well-formed and draws every name."""
    picture = write_page(rows, tmp_path / "benchmarks.md")
    text = (tmp_path / "benchmarks.md").read_text()
    assert text == page(rows, "benchmarks.svg")
    assert f"({picture.name})" in text
    drawn = "".join(ElementTree.parse(picture).getroot().itertext())
    for row in rows:
        assert f"| {row.name} |" in text
        assert row.name in drawn
    assert "took longer than 9 s" in text


def test_names_are_unique():
    """A row can be told by its name alone."""
    assert len({row.name for row in COMPARISONS.values()}) == len(COMPARISONS)
