"""`truesim cache`: show and clear the kernels on disk."""

import numpy as np
import pytest

from truesim import native


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder with one kernel."""
    monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path / "kernels"))
    native.compile(lambda x: 3 * x, np.ones(3), structure=native.KernelStructure("triple", (3,), 0.0))
    return tmp_path / "kernels"


def test_show(truesim, folder):
    """The folder, the number of kernels and their size."""
    outcome = truesim("cache")
    assert outcome.code == 0
    assert str(folder) in outcome.out
    assert "Holds 1 kernels" in outcome.out
    assert "1 are found without tracing" in outcome.out


def test_clear(truesim, folder):
    """Kernels are deleted, other files are kept."""
    (folder / "notes.txt").write_text("mine")
    assert "Deleted 1 kernels" in truesim("cache", "clear").out
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert "Holds 0 kernels" in truesim("cache", "show").out


def test_wrong_action(truesim, folder):
    """The nearest action is named, and nothing is deleted."""
    outcome = truesim("cache", "claer")
    assert outcome.code == 2
    assert "did you mean 'clear'?" in outcome.sentence
    assert len(list(folder.iterdir())) == 2
