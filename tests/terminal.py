"""A terminal in a test: runs a command line in this process."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest


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


def terminal(
    run: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """A function that calls an entry point with arguments and captures what it prints."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["program", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        code = stop.value.code
        captured = capsys.readouterr()
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call
