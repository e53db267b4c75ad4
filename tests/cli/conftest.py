"""Fixtures of command-line tests: a terminal in an empty folder, and a robot file."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from tests.terminal import Outcome, terminal
from truesim.cli.main import run


@pytest.fixture
def truesim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Calls `truesim` with these arguments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUJOCO_GL", "disable")  # which `run` would set for the rest of the tests
    return terminal(run, monkeypatch, capsys)


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """The built-in arm as a user's file."""
    path = tmp_path / "arm.xml"
    path.write_text((resources.files("truesim") / "files" / "robots" / "arm.xml").read_text())
    return path
