"""`truesim compare`: text, JSON, a page, and mistakes."""

import json

from tests.report import fits


def test_fits_side_by_side(truesim, tmp_path):
    """Both fits stand in the tables, in the JSON and on the page."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        fits.write_small(tmp_path / name)
    outcome = truesim("compare", "one", "two", "--out", "comparison.html")
    assert outcome.code == 0, outcome.err
    assert "Median open-loop error" in outcome.out
    assert (tmp_path / "comparison.html").stat().st_size > 1e5
    assert json.loads(truesim("compare", "one", "two", "--json").out)["names"] == ["one", "two"]
    assert "exists already" in truesim("compare", "one", "two", "--out", "comparison.html").sentence
    assert "two fits" in truesim("compare", "one").sentence
    assert "There is no folder" in truesim("compare", "one", "gone").sentence
