"""The studio from robot to result: in a browser by hand, and step by step with files that are wrong."""

import numpy as np
import pytest

from tests.studio.browser import needs_browser, opened, until
from truesim.cli.demo_robot import record
from truesim.core.errors import TruesimError
from truesim.studio.progress import PageObserver
from truesim.studio.session import Session, resimulate

FREE = ("bodies/hand.mass", "joints/elbow.damping")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The built-in arm with two short recordings, a broken robot file, and a log of another robot."""
    from importlib import resources

    folder = tmp_path_factory.mktemp("files")
    (folder / "arm.xml").write_text((resources.files("truesim") / "files" / "robots" / "arm.xml").read_text())
    for seed in range(2):
        record(folder / "arm.xml", folder / f"run{seed}.csv", seed, seconds=1.5)
    (folder / "broken.xml").write_text("<mujoco><worldbody><body></worldbody></mujoco>")
    (folder / "other.csv").write_text("time,qpos/leg\n" + "".join(f"{k / 100},{k}\n" for k in range(50)))
    return folder


@pytest.fixture(scope="module")
def session(files) -> Session:
    """A session with a finished fit."""
    session = Session()
    session.load_robot(files / "arm.xml")
    session.load_logs([files / "run0.csv", files / "run1.csv"])
    session.free, session.holdout = FREE, 1
    session.check()
    session.run(files / "fit", PageObserver(lambda _: None, lambda _: None))
    return session


def test_other_values_move_the_fitted_robot(session):
    """The estimates give the fit's own motion; a heavier hand sags."""
    signals = session.fit.signals
    key = "held_out/run1.csv"
    same, again = resimulate(session.fit, key, {})
    heavy, _ = resimulate(session.fit, key, {"bodies/hand.mass": 3.0})
    assert again[f"{key}/fitted"] == pytest.approx(signals[f"{key}/fitted"], abs=1e-9, nan_ok=True)
    assert heavy.translation[:, -1, 2].mean() < same.translation[:, -1, 2].mean() - 1e-3


def test_the_command_names_the_same_fit(session):
    """The command has the same files and parameters."""
    command = session.command()
    assert "run0.csv --holdout" in command
    assert "--free bodies/hand.mass joints/elbow.damping" in command


def test_mistakes_are_sentences_and_lose_nothing(files):
    """A broken file, a log of another robot, and missing choices leave what was loaded."""
    session = Session()
    with pytest.raises(TruesimError, match="Load a robot"):
        session.load_logs([files / "run0.csv"])
    session.load_robot(files / "arm.xml")
    with pytest.raises(TruesimError, match=r"broken\.xml"):
        session.load_robot(files / "broken.xml")
    assert session.robot == files / "arm.xml"
    session.load_logs([files / "run0.csv"])
    with pytest.raises(TruesimError, match=r"other\.csv"):
        session.load_logs([files / "other.csv"])
    assert len(session.logs) == 1
    with pytest.raises(TruesimError, match="Choose at least one parameter"):
        session.check()
    session.free, session.holdout = FREE, 1
    with pytest.raises(TruesimError, match="held out"):
        session.check()
    assert not session.is_checked


def test_a_stopped_fit_keeps_its_best_values(files):
    """Stop ends the fit after an iteration; its values and the file are kept."""
    session = Session()
    session.load_robot(files / "arm.xml")
    session.load_logs([files / "run0.csv"])
    session.free = FREE
    session.check()
    observer = PageObserver(lambda _: None, lambda _: None)
    observer.stop()
    fit = session.run(files / "stopped", observer)
    assert fit.status == "interrupted"
    assert np.all(np.diff(observer.costs) <= 0)
    assert (files / "stopped" / "fit.json").is_file()


def test_by_hand_in_a_browser(files):
    """Load, map, choose, check, fit, play and move a slider: all by clicks, without an error on the console."""
    needs_browser()
    from truesim.studio.application import Studio

    studio, complaints = Studio(out=files / "by-hand"), []
    try:
        with opened(studio.viewing.address, complaints) as page:
            page.get_by_text("Robot file", exact=True).wait_for()
            page.get_by_role("textbox").first.fill(str(files / "broken.xml"))
            page.get_by_role("button", name="Load robot").click()
            page.get_by_text("broken.xml").first.wait_for()
            page.get_by_role("textbox").first.fill(str(files / "arm.xml"))
            page.get_by_role("button", name="Load robot").click()
            page.get_by_text("arm.xml is loaded").wait_for()
            page.get_by_role("tab", name="2 Data").click()
            page.get_by_role("textbox").first.fill(str(files / "run0.csv"))
            page.get_by_role("button", name="Load logs").click()
            page.get_by_text("1 log is loaded").wait_for()
            page.get_by_role("tab", name="3 Parameters").click()
            page.get_by_role("textbox").first.fill(" ".join(FREE))
            page.get_by_role("tab", name="4 Check").click()
            page.get_by_role("button", name="Check").click()
            page.get_by_text("The check has passed").wait_for()
            page.get_by_role("tab", name="5 Solve").click()
            page.get_by_role("button", name="Run").click()
            page.get_by_text("Next: Results").wait_for(timeout=600_000)
            page.get_by_role("tab", name="6 Results").click()
            before = studio.player.replay.poses["fitted"].translation
            thumb = page.get_by_role("slider").first
            thumb.focus()
            thumb.press("End")
            until(page, lambda: studio.player.replay.poses["fitted"].translation is not before)
            page.get_by_role("button", name="Play").click()
            until(page, lambda: studio.player.frame > 2)
        after = studio.player.replay.poses["fitted"].translation
    finally:
        studio.viewing.stop()
    assert np.abs(after - before).max() > 1e-3
    assert not complaints
