"""The entry point: help, and what happens when something goes wrong inside."""

import json
import re

import pytest

import truesim as ts
from truesim.cli import demo_robot


def test_help_names_every_verb(truesim):
    """`--help` lists the verbs."""
    outcome = truesim("--help")
    assert outcome.code == 0
    for verb in ("inspect", "simulate", "identify", "evaluate", "report", "demo"):
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

    monkeypatch.setattr(ts, "load", broken)
    outcome = truesim("inspect", arm)
    assert outcome.code == 1
    assert "ZeroDivisionError" in outcome.sentence
    assert "TRUESIM_DEBUG" in outcome.sentence


def test_the_demo_finds_what_differs(truesim, tmp_path):
    """The demo identifies the tool in the hand and the delay, and writes a report."""
    outcome = truesim("demo", "--out", "demo")
    assert outcome.code == 0, outcome.err
    values = {p["path"]: p for p in json.loads((tmp_path / "demo/fit/fit.json").read_text())["parameters"]}
    assert values["bodies/hand.mass"]["value"] == pytest.approx(demo_robot.TRUE_MASSES["hand"], abs=0.02)
    assert values["actuators/yaw.delay"]["value"] == pytest.approx(demo_robot.TRUE_DELAY, abs=5e-4)
    assert "Found: the hand weighs 1.1" in outcome.out
    page = (tmp_path / "demo/fit/report.html").read_text()
    assert not re.search(r"<script[^>]+src=", page), "the page must not load anything"
