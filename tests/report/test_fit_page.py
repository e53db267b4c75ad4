"""The page of a fit is one file that shows everything in the folder and needs nothing else."""

import html
import re

import pytest

from tests.report import fits
from truesim.core.errors import FileError
from truesim.identification.diagnose.status import Status
from truesim.report.fit_page import write_fit_page
from truesim.report.sections.headline import STATUS_WORDS

MEGABYTES = 8.0


def own_parts(page: str) -> str:
    """The page without the source of plotly."""
    start = page.index("<script>")
    return page[:start] + page[page.index("</script>", start) :]


@pytest.fixture
def page(tmp_path) -> str:
    """The page of a small fit, without the source of plotly."""
    return own_parts(write_fit_page(fits.write_small(tmp_path / "fit")).read_text())


def test_everything_is_shown(page):
    """Every parameter, element, channel and log, the status with its reasons, and its provenance."""
    shown = html.unescape(page)
    for entry in fits.PARAMETERS:
        assert entry["path"] in shown
        for k in range(len(entry["value"]) if isinstance(entry["value"], list) else 0):
            assert f"{entry['path']}[{k}]" in shown
    for words in (
        *fits.ROWS,
        "a.csv",
        "b.csv",
        "c.csv",
        "Status: not identifiable",
        "does not show in these logs",
        "abababababab",
    ):
        assert words in shown
    assert "0.5123" in shown
    assert "2.345×10⁻⁵" in shown
    assert "kg m²" in shown.replace("\N{NO-BREAK SPACE}", " ")


def test_nothing_is_loaded(tmp_path):
    """The page has no address of a script, style or font."""
    text = write_fit_page(fits.write_small(tmp_path / "fit")).read_text()
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=|@import\s+url", text)
    assert "http" not in own_parts(text)


def test_names_are_not_markup(page):
    """A robot's names are text, whatever characters they have."""
    assert "<lower>" not in page
    assert "<gyro>" not in page


STATUSES = tuple(map(str, Status))


def test_the_table_of_statuses_is_complete():
    """Every status that `fit.json` may hold has words."""
    assert set(STATUS_WORDS) == set(STATUSES)


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_words(tmp_path, status):
    """Each status is explained on the page."""
    fit = fits.document() | {"verdict": status, "reasons": []}
    text = write_fit_page(fits.write(tmp_path, fit, fits.arrays(["train/a.csv"]))).read_text()
    assert f"Status: {status}</h1>" in text
    assert re.search(r'<p class="lead">\w.*\.</p>', text)


def test_one_parameter_and_no_held_out_logs(tmp_path):
    """What does not apply is left out: correlations of a single number, columns of held-out logs."""
    fit = fits.document(logs=["a.csv"], holdout=[], parameters=fits.PARAMETERS[:1])
    page = own_parts(write_fit_page(fits.write(tmp_path, fit, fits.arrays(["train/a.csv"]))).read_text())
    assert 'id="correlations' not in page
    assert '<th class="n" colspan="3">held-out logs' not in page
    assert "--holdout LOG" in page


def test_ten_logs_of_an_arm_stay_small(tmp_path):
    """Ten logs of 21 channels fit into a file that can be sent by mail."""
    rows = [f"qpos/j{k}" for k in range(21)]
    logs = [f"run{k}.csv" for k in range(10)]
    signals = fits.arrays([f"train/{log}" for log in logs], rows, seconds=20.0)
    path = write_fit_page(fits.write(tmp_path, fits.document(rows, logs, []), signals))
    assert path.stat().st_size < MEGABYTES * 1e6


def test_a_folder_without_signals_says_what_is_missing(tmp_path):
    """A missing or broken file is named, with what to do."""
    fits.write_small(tmp_path)
    (tmp_path / "signals.npz").write_bytes(b"not an archive")
    with pytest.raises(FileError, match="cannot be read"):
        write_fit_page(tmp_path)
    (tmp_path / "signals.npz").unlink()
    with pytest.raises(FileError, match=r"has no signals\.npz"):
        write_fit_page(tmp_path)
    assert not list(tmp_path.glob("*report*")), "nothing half-written stays behind"
