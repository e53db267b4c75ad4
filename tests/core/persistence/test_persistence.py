"""Files that survive a kill: atomic writes, checkpoints and journals."""

import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.persistence.atomic import write_arrays, write_atomically, write_json
from truesim.core.persistence.checkpoint import FILE, Checkpoint
from truesim.core.persistence.journal import Journal


def test_a_failed_write_leaves_the_old_file(tmp_path):
    """And no part of the new one."""
    write_json(tmp_path / "a.json", {"x": 1})

    def fail(part):
        part.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "a.json", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert "1" in (tmp_path / "a.json").read_text()


def test_arrays_read_back(tmp_path):
    """To the bit."""
    values = np.random.default_rng(0).normal(size=5)
    write_arrays(tmp_path / "a.npz", {"x": values})
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(file["x"], values)


def test_a_checkpoint_belongs_to_its_request(tmp_path):
    """Another request, or a broken file, has none."""
    Checkpoint(tmp_path, "mine", every=0.0)(np.arange(3.0))
    np.testing.assert_array_equal(Checkpoint(tmp_path, "mine").read(), np.arange(3.0))
    assert Checkpoint(tmp_path, "other").read() is None
    (tmp_path / FILE).write_bytes(b"broken")
    assert Checkpoint(tmp_path, "mine").read() is None


def test_a_journal_drops_only_a_line_that_was_cut(tmp_path):
    """And refuses to continue other work."""
    journal = Journal(tmp_path / "j.jsonl", "test/1", "mine")
    journal.append([{"k": 0}, {"k": 1}])
    journal.close()
    with (tmp_path / "j.jsonl").open("ab") as file:
        file.write(b'{"k": 2')
    again = Journal(tmp_path / "j.jsonl", "test/1", "mine")
    assert again.records == [{"k": 0}, {"k": 1}]
    again.close()
    with pytest.raises(TruesimError, match="belongs to other work"):
        Journal(tmp_path / "j.jsonl", "test/1", "other")
