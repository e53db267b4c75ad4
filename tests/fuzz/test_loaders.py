"""Some damaged files of each kind; `python -m tests.fuzz` tries many more."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.harness import check, read
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
INPUTS = {"fit": 6, "hopping": 8, "cmaes": 8, "mjcf": 25}
"""Inputs of each slow loader."""


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_read(name, tmp_path):
    """What the damage begins from is valid."""
    TARGETS[name].seed(tmp_path)
    assert read(name, tmp_path) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_told_in_a_sentence(name):
    """Never an error of another kind, more than one line, or more than ten seconds."""

    @settings(max_examples=INPUTS.get(name, 40), derandomize=True, deadline=None, database=None)
    @given(st.integers(0, 10**6))
    def damaged(seed):
        check(name, seed)

    damaged()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_files_of_the_corpus_are_refused(file, tmp_path):
    """Damaged and absurd files made by hand, by target: each is refused in one sentence."""
    target = TARGETS[file.parent.name]
    target.seed(tmp_path)
    (tmp_path / target.damaged[0]).write_bytes(file.read_bytes())
    assert read(file.parent.name, tmp_path)
