"""The page shows the decisions of the fit as `fit.json` holds them."""

import html
import re

from tests.report import fits
from truesim.identification.diagnose.status import Code
from truesim.identification.options import IdentifyOptions
from truesim.report.document import (
    diagnostics,
    flagged_elements,
    not_identifiable,
    options,
    reasons,
    status,
)
from truesim.report.fit_page import write_fit_page
from truesim.report.sections.advice import advice
from truesim.report.sections.headline import headline
from truesim.report.sections.parameters import parameter_table, split


def page_of(tmp_path, fit) -> str:
    """The page of a document, without the source of plotly."""
    text = write_fit_page(fits.write(tmp_path / "fit", fit, fits.arrays(["train/a.csv"]))).read_text()
    return html.unescape(text[: text.index("<script>")])


def test_a_wide_interval_is_not_a_decision(tmp_path):
    """A parameter without a flag is shown as identifiable, for any standard deviation."""
    entry = fits.parameter("bodies/hand.mass", 1.0, 1.1, 500.0)
    fit = fits.document(parameters=[entry]) | {"verdict": "converged", "reasons": [], "unseen": []}
    assert split(entry)[0].identifiable
    assert parameter_table([entry]).groups[0].badges == ()
    assert "1 of 1 values is identifiable" in headline(fit, 0.5).found[0]
    page = page_of(tmp_path, fit)
    assert "not identifiable" not in page
    assert 'class="unknown"' not in page
    assert "None: the logs determine every free parameter." in page
    assert not any("payload" in sentence for sentence in advice(fit))


def test_a_narrow_interval_is_not_a_decision_either(tmp_path):
    """A flagged parameter is shown as not identifiable, however small its standard deviation."""
    entry = fits.parameter("bodies/hand.mass", 1.0, 1.1, 1e-9, ["not identifiable"])
    fit = fits.document(parameters=[entry])
    assert not split(entry)[0].identifiable
    assert "0 of 1 values are identifiable" in headline(fit, 0.5).found[0]
    page = page_of(tmp_path, fit)
    assert 'class="badge bad"' in page
    assert 'class="unknown"' in page
    assert any("payload" in sentence for sentence in advice(fit))


def test_elements_follow_the_flags_alone():
    """Named elements are flagged; a flag on combinations holds for every element, whatever their intervals are."""
    value, std = [1.0, 1.0, 1.0], [100.0, 1e-9, 1e-9]
    assert flagged_elements(fits.parameter("a", value, value, std)) == frozenset()
    assert flagged_elements(fits.parameter("a", value, value, std, ["not identifiable in [1, 2]"])) == {1, 2}
    assert flagged_elements(fits.parameter("a", value, value, std, ["partly not identifiable"])) == {0, 1, 2}
    assert flagged_elements(fits.parameter("a", value, value, std, ["correlated with b"])) == frozenset()


def test_noise_and_errors_are_not_judged_again():
    """Large residuals and held-out errors without a diagnostic of the fit give no advice."""
    fit = fits.document(parameters=fits.PARAMETERS[:1]) | {"reasons": [], "unseen": []}
    for row in fits.ROWS:
        fit["noise"][row] = {"residual": 1.0, "sensor": 1e-6, "correlation_time": 1.0}
        fit["errors"]["held_out"][row]["median"] = 100.0
    assert advice(fit) == []


def diagnostic(code, ratio, sentence=""):
    """A diagnostic of the elbow as `fit.json` holds it."""
    return {"code": str(code), "subjects": ["qpos/elbow"], "value": 1.0, "ratio": ratio, "sentence": sentence}


def test_newer_keys_come_first():
    """`status`, `not_identifiable` and `diagnostics` are read where present, else the older keys."""
    fit = fits.document()
    assert status(fit) == "not identifiable"
    assert not_identifiable(fit) == ("joints/elbow.frictionloss does not show in these logs.",)
    assert diagnostics(fit) == ()
    fit |= {
        "status": "iteration limit",
        "not_identifiable": [["a"], ["b", "c"]],
        "diagnostics": [diagnostic(Code.HELD_OUT_WORSE, 4.0, "Worse.")],
    }
    assert status(fit) == "iteration limit"
    assert not_identifiable(fit) == (
        "a does not show in these logs.",
        "b and c: only a combination of them shows in these logs.",
    )
    assert [(d.code, d.row, d.value) for d in diagnostics(fit)] == [(Code.HELD_OUT_WORSE, "qpos/elbow", 4.0)]
    assert "in qpos/elbow" in advice(fit)[-1]
    del fit["reasons"]
    assert reasons(fit) == ("Worse.",)


def test_the_ratio_to_the_noise_is_told():
    """A residual above the noise is named with its ratio."""
    fit = fits.document() | {"diagnostics": [diagnostic(Code.RESIDUAL_ABOVE_NOISE, 12.0)]}
    assert "qpos/elbow (12 times the noise)" in advice(fit)[0]


def test_the_options_that_decided_are_shown(tmp_path):
    """Prior width and thresholds are a table in the provenance; nothing is shown for files without them."""
    fit = fits.document()
    assert options(fit) == {}
    assert 'id="options"' not in page_of(tmp_path / "old", fit)
    page = page_of(tmp_path / "new", fit | {"options": IdentifyOptions().document()})
    table = re.search(r'<table class="facts" id="options">.*?</table>', page, re.DOTALL).group()
    shown = dict(re.findall(r"<code>(.*?)</code></th><td>(.*?)</td>", table))
    assert shown["prior_width"] == "2"
    assert shown["misfit_factor"] == "1.25"
    assert shown["identifiable_std"] == "0.5"
