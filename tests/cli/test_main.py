"""The entry point: help, and what happens when something goes wrong inside."""

import re

import pytest

from truesim.cli import inspect as inspect_verb


def test_help_names_every_verb(truesim):
    """`--help` lists the verbs."""
    outcome = truesim("--help")
    assert outcome.code == 0
    for verb in ("inspect", "simulate", "report", "demo", "bench"):
        assert verb in outcome.out


def test_an_unknown_option_names_the_nearest(truesim, arm):
    """A typo in an option is answered with the option that was meant."""
    outcome = truesim("simulate", arm, "--secnds", "1")
    assert outcome.code == 2
    assert "--seconds" in outcome.err


def test_a_defect_is_one_line(truesim, arm, monkeypatch):
    """An unexpected exception is one line and exit code 1; TRUESIM_DEBUG=1 shows the traceback."""

    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(inspect_verb, "load", broken)
    outcome = truesim("inspect", arm)
    assert outcome.code == 1
    assert "ZeroDivisionError" in outcome.sentence
    assert "TRUESIM_DEBUG" in outcome.sentence


def test_the_demo_draws(truesim, tmp_path):
    """The demo prints the derivative of the end position and says where the picture is."""
    outcome = truesim("demo", "--out", "pictures")
    assert outcome.code == 0, outcome.err
    assert "pictures/arm.html" in outcome.out
    page = (tmp_path / "pictures" / "arm.html").read_text()
    assert "Change of the end position per kilogram" in page
    assert not re.search(r"<script[^>]+src=", page), "the page must not load anything"
    hand = next(line for line in outcome.out.splitlines() if line.strip().startswith("hand"))
    assert float(hand.split()[-1]) == pytest.approx(-62.4, abs=1.0)
