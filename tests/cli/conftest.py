"""A terminal in a test: runs the command line in this process, in an empty folder."""

import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest

from truesim.cli.main import run


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The error, which must be one line."""
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


@pytest.fixture
def truesim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Calls `truesim` with these arguments."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["truesim", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        code = stop.value.code
        captured = capsys.readouterr()
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """The built-in arm as a user's file."""
    path = tmp_path / "arm.xml"
    path.write_text((resources.files("truesim") / "robots" / "arm.xml").read_text())
    return path
