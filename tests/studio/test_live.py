"""Live pages: snapshots of a fit and of a log, served on this machine, drawn in a browser."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

from tests.studio.browser import PATIENCE, needs_browser, opened
from truesim.studio.live import LivePage, chart, csv_snapshot


def fetched(address: str) -> bytes:
    """Content at an address."""
    with urllib.request.urlopen(address, timeout=120) as answer:
        return answer.read()


def test_a_log_becomes_charts(tmp_path):
    """Every column is drawn over the steps; a row that is still being written, and gaps, do no harm."""
    log = tmp_path / "progress.csv"
    assert csv_snapshot(log, "walk")["charts"] == []
    log.write_text("steps,return,loss\n1000,0.5,100\n2000,,0.1\n3000,1.5,0.")
    found = csv_snapshot(log, "walk")
    assert [c["title"] for c in found["charts"]] == ["return", "loss"]
    assert found["charts"][0]["curves"][0]["x"] == [1000, 2000, 3000]
    assert np.isnan(found["charts"][0]["curves"][0]["y"][1])
    assert found["table"][1:] == [
        ("steps", "3000", "1000", "3000"), ("return", "1.5", "0.5", "1.5"), ("loss", "0", "0", "100"),
    ]  # fmt: skip
    log.write_text("steps,return,loss\n1000,0.5,100\n2000,0.6")
    assert found["charts"][0]["axis"] == "steps"
    assert csv_snapshot(log, "walk")["sentence"] == "1 iteration."


def test_wide_ranges_are_logarithmic_and_long_ones_thinned():
    """A positive curve over more than two decades gets a logarithmic scale, and a screen of points is enough."""
    x = list(range(5000))
    assert chart("cost", "iteration", x, [("cost", np.geomspace(1, 1e-6, 5000))])["logarithmic"]
    thin = chart("return", "steps", x, [("return", np.linspace(-1, 1, 5000))])
    assert not thin["logarithmic"]
    assert len(thin["curves"][0]["x"]) == len(thin["curves"][0]["y"]) == 1000


def test_the_server_answers_on_this_machine_only_and_ends():
    """The page and its snapshots are served; anything else, and everything afterwards, is not."""
    state = {"title": "fit", "sentence": "Fitting.", "seconds": float("nan"), "charts": [], "table": []}
    with LivePage("fit", lambda: state) as page:
        assert page.address.startswith("http://127.0.0.1:")
        assert b"Plotly" in fetched(page.address)
        assert json.loads(fetched(page.address + "progress.json")) == {**state, "seconds": None, "ended": False}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(page.address + "etc/passwd")
        address = page.address
    with pytest.raises(urllib.error.URLError):
        fetched(address)


def test_a_browser_draws_it(tmp_path):
    """Charts and table appear, and the end of the process is told without an error of the page itself."""
    needs_browser()
    log = tmp_path / "progress.csv"
    log.write_text("steps,return\n1000,0.5\n2000,0.7\n")
    page, complaints = LivePage("walk", lambda: csv_snapshot(log, "walk")), []
    page.__enter__()
    with opened(page.address, complaints) as tab:
        tab.locator("[id='chart return'] .scatterlayer .trace").wait_for(timeout=PATIENCE)
        assert tab.locator("#table tr").count() == 3
        assert not complaints
        log.write_text("steps,return,rate\n1000,0.5,1\n2000,0.7,1\n3000,0.9,1\n")
        page.__exit__(None, None, None)
        tab.get_by_text("ended", exact=True).wait_for(timeout=PATIENCE)
        assert tab.locator("#table tr").count() == 4
        assert tab.locator("[id='chart return'] .xtitle").text_content() == "steps"
    assert not complaints, "the last state was told before the server ended"
