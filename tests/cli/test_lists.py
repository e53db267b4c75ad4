"""Lists of values after an option, and old spellings: told apart by the form of words alone."""

import pytest

from truesim.cli.calibrate import CALIBRATED_KIND_NAMES
from truesim.cli.lists import LOG_SUFFIXES, current_spelling, repeat_options
from truesim.files.logs.read import LOG_READERS
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.posterior import calibration
from truesim.physics.actuators.models import ACTUATOR_MODELS
from truesim.physics.contact.choose import CONTACT_MODELS
from truesim.physics.simulation.integrators import INTEGRATORS

SEVERAL, FILES = ("--free", "--tie", "--holdout"), ("--holdout",)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("r.xml run.csv --free a/b.c d/e.f --out o", "r.xml run.csv --free a/b.c --free d/e.f --out o"),
        ("r.xml --free a/b.c run.csv", "r.xml --free a/b.c run.csv"),
        ("r.xml --free a/b.c logs/run.PARQUET x/y.z", "r.xml --free a/b.c logs/run.PARQUET x/y.z"),
        ("r.xml --holdout a.csv b.csv folder --json", "r.xml --holdout a.csv --holdout b.csv --holdout folder --json"),
        ("--tie a/b.c -a/b.d -1", "--tie a/b.c --tie -a/b.d --tie -1"),
        ("--free a/b.c --out=some/folder d", "--free a/b.c --out=some/folder d"),
        ("--free=a/b.c d/e.f", "--free=a/b.c --free d/e.f"),
        ("--free a/b.c -- d/e.f", "--free a/b.c -- d/e.f"),
        ("--free a/b.c -h d", "--free a/b.c -h d"),
    ],
)
def test_a_list_goes_to_the_next_option_or_log(given, meant):
    """`--free A B` is `--free A --free B`; a log ends a list of patterns but not a list of files."""
    assert repeat_options(given.split(), SEVERAL, FILES) == meant.split()


def test_existing_files_make_no_difference(tmp_path, monkeypatch):
    """A pattern that is also the name of a file stays a pattern, and a log that does not exist is a log."""
    monkeypatch.chdir(tmp_path)
    words = ["--free", "a", "b", "run.csv"]
    before = repeat_options(words, SEVERAL)
    for name in ("a", "b", "run.csv"):
        (tmp_path / name).touch()
    assert repeat_options(words, SEVERAL) == before == ["--free", "a", "--free", "b", "run.csv"]


def test_every_log_format_is_recognized():
    """The suffixes are those that can be read."""
    assert set(LOG_SUFFIXES) == set(LOG_READERS)


def test_old_spellings():
    """Old names of options become the current ones, where a verb declares those."""
    assert current_spelling("--barrier", {"--smoothing"}) == "--smoothing"
    assert current_spelling("--law=a=b", {"--actuator-model"}) == "--actuator-model=a=b"
    assert current_spelling("--barrier", {"--seconds"}) == "--barrier"
    assert current_spelling("--free", {"--free"}) == "--free"


def test_a_mistyped_log_is_named_with_the_nearest(truesim, arm, tmp_path):
    """It never becomes a pattern of parameters."""
    (tmp_path / "run0.csv").write_text("time,qpos/elbow\n0,1\n")
    for arguments in (("rnu0.csv", "--free", "bodies/*.mass"), ("run0.csv", "--free", "bodies/*.mass", "rnu0.csv")):
        outcome = truesim("identify", arm, *arguments, "--out", "fit")
        assert outcome.code == 2
        assert "There is no log file rnu0.csv; did you mean run0.csv?" in outcome.sentence
    outcome = truesim("identify", arm, "run0.csv", "--free", "a", "--holdout", "other/run.csv", "--out", "fit")
    assert "the folder other does not exist" in outcome.sentence


def test_documented_order_of_arguments(truesim, arm, tmp_path):
    """The README's command is parsed to logs, held-out logs and patterns: the error is that of the pattern."""
    for k in range(3):
        (tmp_path / f"run{k}.csv").write_text("time,qpos/elbow\n0,1\n0.1,1\n0.2,1\n")
    free = ("--free", "bodies/*.mass", "joints/*.dampng")
    outcome = truesim("identify", arm, "run0.csv", "run1.csv", "--holdout", "run2.csv", *free, "--out", "fit")
    assert outcome.code == 2
    assert "joints/*.dampng" in outcome.err


@pytest.mark.parametrize("option", ["--smoothing", "--barrier"])
def test_smoothing_and_its_old_name(truesim, arm, option):
    """Both spellings reach the contact model; help has the new one only."""
    outcome = truesim("simulate", arm, "--seconds", "1", "--contact", "rigid", option, "2")
    assert outcome.code == 2
    assert "between 0 and 1" in outcome.sentence
    shown = truesim("simulate", "--help").out
    assert "--smoothing" in shown
    assert "--barrier" not in shown


@pytest.mark.parametrize("option", ["--actuator-model", "--law"])
def test_actuator_models_and_their_old_name(truesim, arm, tmp_path, option):
    """Both spellings reach the actuators."""
    (tmp_path / "run.csv").write_text("time,qpos/elbow\n0,1\n")
    what = ("identify", arm, "run.csv", "--free", "bodies/*.mass", option, "elbow=dcmotor", "--out", "fit")
    assert "did you mean 'dc_motor'" in truesim(*what).sentence
    assert "--law" not in truesim("identify", "--help").out


def test_choices_in_help_are_complete(truesim, monkeypatch):
    """Names that help lists, so that it need not load them, are those that exist."""
    monkeypatch.setenv("COLUMNS", "400")
    assert ", ".join([*INTEGRATORS][:-1]) + " or " + [*INTEGRATORS][-1] in truesim("simulate", "--help").out
    for criterion in CRITERIA:
        assert criterion in truesim("design", "--help").out
    for model in ACTUATOR_MODELS:
        assert model in truesim("identify", "--help").out
    for model in CONTACT_MODELS:
        assert model in truesim("identify", "--help").out
    assert set(CALIBRATED_KIND_NAMES) == set(calibration.CALIBRATED_KINDS)
