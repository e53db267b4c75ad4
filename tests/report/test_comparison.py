"""Fits side by side: numbers that agree and differ, errors, options, and fits that cannot be compared."""

import json

import pytest

from tests.report import fits
from truesim.core.errors import TruesimError
from truesim.report.comparison import compare_fits, write_comparison


@pytest.fixture
def folders(tmp_path):
    """Three fits: one, the same with another value and smaller errors, and one with other logs."""
    made = []
    for name in ("first", "second", "third"):
        folder = tmp_path / name
        folder.mkdir()
        fits.write_small(folder)
        made.append(folder)
    document = json.loads((made[1] / "fit.json").read_text())
    entry = document["parameters"][0]
    width = entry["high"] - entry["low"]
    for key in ("value", "low", "high"):
        entry[key] += 2 * width
    for part in document["errors"].values():
        for error in part.values():
            error["median"] /= 2
    document["provenance"]["request"]["options"]["robust"] = 3.0
    (made[1] / "fit.json").write_text(json.dumps(document))
    document = json.loads((made[2] / "fit.json").read_text())
    for log in (*document["provenance"]["logs"], *document["provenance"]["holdout"]):
        log["sha256"] = "other"
    (made[2] / "fit.json").write_text(json.dumps(document))
    return made


def test_what_differs_is_marked(folders):
    """The number that moved by two widths of its interval, and the option, are the only differences."""
    found = compare_fits(folders[:2])
    assert [n.differs for n in found.numbers] == [True] + [False] * (len(found.numbers) - 1)
    assert found.options["robust"][1] == 3.0
    assert set(found.options) == {"robust"}
    assert found.same_logs
    assert found.best == "second"


def test_errors_on_other_logs_are_not_ranked(folders):
    """Fits with other logs are shown, but none is called best."""
    found = compare_fits([folders[0], folders[2]])
    assert not found.same_logs
    assert found.best is None


def test_the_page_and_json_hold_every_fit(folders, tmp_path):
    """The page is one file with a column for each fit, and the document is plain JSON."""
    found = compare_fits(folders)
    page = write_comparison(found, tmp_path / "comparison.html").read_text()
    for name in ("first", "second", "third", "Options that differ"):
        assert name in page
    assert "src=" not in page.partition("<script>")[0]
    assert json.loads(json.dumps(found.document()))["names"] == ["first", "second", "third"]


def test_one_fit_is_no_comparison(folders):
    """A sentence asks for another."""
    with pytest.raises(TruesimError, match="two fits"):
        compare_fits(folders[:1])
