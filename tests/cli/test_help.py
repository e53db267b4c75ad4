"""Help, completion and choices of every verb."""

import pytest

from truesim.cli.choices import choices_of
from truesim.cli.verbs import VERB_TABLE, load_verb


@pytest.mark.parametrize("verb", VERB_TABLE)
def test_every_verb_has_help_with_examples(truesim, verb, monkeypatch):
    """`--help` shows options with words for what they take, and examples that begin with the verb."""
    monkeypatch.setenv("COLUMNS", "80")
    outcome = truesim(verb, "--help")
    assert outcome.code == 0
    _, _, shown = outcome.out.partition("Examples")
    commands = " ".join(shown.replace("\\", "").split())
    assert "Examples" in outcome.out
    assert "--quiet" in outcome.out
    assert not isinstance(VERB_TABLE[verb].examples, str)
    for example in VERB_TABLE[verb].examples:
        assert example.startswith(f"truesim {verb}")
        assert example in commands, "as it was written, with line breaks that a shell understands"
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    begun = [line for k, line in enumerate(lines) if k == 0 or not lines[k - 1].endswith("\\")]
    assert all(line.startswith("truesim ") for line in begun), "the terminal breaks no line of its own"


@pytest.mark.parametrize("verb", VERB_TABLE)
def test_valid_words_and_arguments_are_shown(truesim, verb, monkeypatch):
    """Every valid word of an option stands in its help, and arguments have no types of Python beside them."""
    monkeypatch.setenv("COLUMNS", "200")
    shown = truesim(verb, "--help").out
    assert "<path>" not in shown
    assert "<list" not in shown
    for parameter in load_verb(verb).params:
        words = choices_of(verb, parameter) or ()
        assert all(word in shown for word in words), parameter.name


@pytest.mark.parametrize("verb", VERB_TABLE)
def test_examples_only_use_options_that_exist(verb):
    """Every option in an example is one of the verb."""
    known = {word for parameter in load_verb(verb).params for word in (*parameter.opts, *parameter.secondary_opts)}
    for example in VERB_TABLE[verb].examples:
        assert {word for word in example.split() if word.startswith("--")} <= known


@pytest.mark.parametrize(
    ("verb", "usage"),
    [("compare", "[OPTIONS] FIT…"), ("inspect", "[OPTIONS] ROBOT [LOG…]"), ("posterior", "[OPTIONS] FIT")],
)
def test_usage_shows_arguments_as_they_are_typed(truesim, verb, usage):
    """No braces, no second ellipsis, and --help takes no value."""
    shown = truesim(verb, "--help").out
    assert next(line.split(f" {verb} ")[1].strip() for line in shown.splitlines() if "Usage:" in line) == usage
    assert "<bool>" not in shown


@pytest.mark.parametrize(("verb", "group"), [("play", "Global search"), ("play", "Limits"), ("gap", "Global search")])
def test_groups_stand_where_they_belong(truesim, verb, group):
    """A verb that neither searches nor limits a motion has no such group."""
    shown = truesim(verb, "--help").out
    assert group not in shown
    assert "Machine" in shown


def test_long_help_is_grouped(truesim):
    """The options of `identify` stand in groups."""
    outcome = truesim("identify", "--help")
    for panel in ("Parameters", "Input", "Output", "Solver", "Global search"):
        assert f"─ {panel} ─" in outcome.out


def complete(monkeypatch, truesim, line: str) -> list[str]:
    """What Tab offers at the end of a line in bash."""
    monkeypatch.setenv("_TRUESIM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    return truesim().out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("truesim ide", ["identify"]),
        ("truesim identify robot.xml --cont", ["--contact"]),
        ("truesim identify robot.xml --contact r", ["rigid"]),
        ("truesim posterior fit --kind ", ["laplace", "mixture", "basins"]),
        ("truesim identify robot.xml --free joints/*.da", ["joints/*.damping"]),
    ],
)
def test_tab_completes(monkeypatch, truesim, line, offered):
    """Verbs, options, choices and patterns are completed."""
    assert complete(monkeypatch, truesim, line) == offered


def test_completion_scripts_are_shown(truesim, monkeypatch):
    """`--show-completion` prints typer's script for the shell."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    outcome = truesim("--show-completion", "bash")
    assert "_TRUESIM_COMPLETE=complete_bash" in outcome.out


def test_wrong_choices_are_answered_before_files_are_read(truesim, arm):
    """The nearest word is named."""
    assert "did you mean 'rigid'?" in truesim("simulate", arm, "--seconds", "1", "--contact", "ridgid").sentence
    assert "did you mean 'mixture'?" in truesim("posterior", arm.parent, "--kind", "mixtur", "--out", "x").sentence


def test_quiet_silences_messages(truesim, arm):
    """Results are printed, messages are not."""
    outcome = truesim("simulate", arm, "--seconds", "0.1", "--out", "motion.csv", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert "motion.csv" in outcome.out
