"""Words that the command line writes out, because importing their rooms is slow, are those of the library."""

from truesim.cli.choices import CHOICES
from truesim.cli.config import OF_ONE_RUN
from truesim.cli.help_panels import PANELS
from truesim.cli.verbs import load_verb
from truesim.identification.excitation.plan import CRITERIA
from truesim.identification.posterior.calibration import CALIBRATED_KINDS
from truesim.identification.posterior.of_solution import POSTERIOR_KINDS
from truesim.identification.posterior.ranges import VARIANT_SUFFIXES
from truesim.identification.presets import PRESETS
from truesim.identification.search.run import SearchEngine, SearchMethod
from truesim.identification.solve.options import OPTIMIZERS
from truesim.physics.contact.choose import CONTACT_MODELS
from truesim.physics.simulation.integrators import INTEGRATORS
from truesim.policies.play import ENGINES

SOURCES = {
    "contact": CONTACT_MODELS,
    "preset": PRESETS,
    "optimizer": OPTIMIZERS,
    "search": ("local", *SearchMethod),
    "engine": SearchEngine,
    "criterion": CRITERIA,
    "posterior kind": POSTERIOR_KINDS,
    "calibrate kind": CALIBRATED_KINDS,
    "style": VARIANT_SUFFIXES,
    "integrator": INTEGRATORS,
}


def test_choices_are_those_of_the_library():
    """Every word is known to the library, and every name of the library is offered (see `cli/choices.py`)."""
    for name, words in SOURCES.items():
        assert set(map(str, words)) == set(CHOICES[name]), name
    assert set(ENGINES) == set(CHOICES["engine"])


def test_options_of_identify_are_in_a_group():
    """No option of `identify` is left outside of the groups of its help (see `cli/help_panels.py`)."""
    grouped = {name for members in PANELS.values() for name in members} | {"seconds"}
    options = [p for p in load_verb("identify").params if p.param_type_name == "option"]
    assert {option.name for option in options} <= grouped
    assert {word.removeprefix("--") for o in options for word in o.opts} | {"help", "live"} >= OF_ONE_RUN
