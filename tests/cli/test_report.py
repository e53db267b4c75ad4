"""`truesim report`: makes the page again, and says what is wrong with a folder."""

import webbrowser

from tests.report import fits


def test_the_page_is_made_again(truesim, tmp_path, monkeypatch):
    """The page appears in the folder, the command says where, and `--open` shows it."""
    fits.write_small(tmp_path / "out")
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    outcome = truesim("report", "out")
    assert (outcome.code, opened) == (0, [])
    assert "out/report.html" in outcome.out
    assert (tmp_path / "out" / "report.html").is_file()
    assert truesim("report", "out", "--open").code == 0
    assert opened == [(tmp_path / "out" / "report.html").as_uri()]


def test_a_wrong_folder_is_one_sentence(truesim, tmp_path):
    """A folder without a fit, a file and a missing folder are each answered with what to give."""
    fits.write_small(tmp_path / "out")
    (tmp_path / "empty").mkdir()
    for given, words in (("empty", "has no fit.json"), ("out/fit.json", "did you mean out?"), ("nowhere", "--out")):
        outcome = truesim("report", given)
        assert outcome.code == 2
        assert words in outcome.sentence
