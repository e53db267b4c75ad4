"""`python -m benchmarks`; what it measures is replaced."""

import json

import pytest

from benchmarks import run
from benchmarks.__main__ import main
from benchmarks.comparisons import COMPARISONS
from benchmarks.process import Outcome
from tests.terminal import terminal


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Calls `python -m benchmarks` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return terminal(main, monkeypatch, capsys)


@pytest.fixture
def measured(monkeypatch):
    """Tasks that were measured: ours take 1 us, pytinydiffsim is missing, other peers take 10 us."""
    tasks = []

    def measure(task, patience, limit):
        tasks.append(task)
        if "tinydiffsim" in task.module:
            return Outcome(missing="pytinydiffsim is not installed")
        return Outcome(1e-6 if task.module.endswith("ours") else 1e-5, outputs=((1.0,),))

    monkeypatch.setattr(run, "measure", measure)
    return tasks


def test_help_names_the_options(command):
    """`--help` says what there is to choose."""
    outcome = command("--help")
    assert outcome.code == 0
    for option in ("--only", "--list", "--quick", "--limit", "--json", "--out", "--page"):
        assert option in outcome.out


def test_list_measures_nothing(command, measured):
    """`--list` prints every key."""
    outcome = command("--list")
    assert outcome.code == 0
    assert not measured
    shown = [line.split()[0] for line in outcome.out.splitlines()[1:] if line]
    assert shown == list(COMPARISONS)


def test_json_is_all_there_is_on_standard_output(command, measured):
    """Progress and missing peers are told on standard error."""
    outcome = command("--json", "--only", "arm*", "--only", "rollout", "--limit", 9)
    assert outcome.code == 0
    rows = {row["key"]: row for row in json.loads(outcome.out)["rows"]}
    assert set(rows) == {"arm", "arm-tds", "arm-brax", "rollout"}
    assert rows["arm"]["ratio"] == pytest.approx(10)
    assert rows["arm-tds"]["ratio"] is None
    assert "arm: measuring MuJoCo C" in outcome.err
    assert "pytinydiffsim is not installed" in outcome.err


def test_the_table_says_what_is_missing(command, measured):
    """A peer that could not be measured is a row, and a line with the reason."""
    outcome = command("--only", "arm-tds")
    assert outcome.code == 0
    assert "missing" in outcome.out
    assert "pytinydiffsim is not installed." in outcome.out


def test_quick_leaves_out_what_is_slow(command, measured, tmp_path):
    """The rest is measured, and written where asked."""
    outcome = command("--quick", "--out", "b.json", "--page", "b.md")
    assert outcome.code == 0, outcome.err
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert {row["key"] for row in rows} == {row.key for row in COMPARISONS.values() if not row.slow}
    assert (tmp_path / "b.md").exists()
    assert (tmp_path / "b.svg").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "armm"], ["'armm'", "did you mean 'arm'?"]),
        (["--page", "no/where.md"], ["no", "where.md"]),
    ],
)
def test_mistakes_are_one_sentence(command, measured, options, words):
    """Nothing is measured before a mistake is found."""
    outcome = command(*options)
    assert outcome.code == 2
    assert not measured
    for word in words:
        assert word in outcome.sentence
