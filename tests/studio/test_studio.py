"""The studio from robot to result: in a browser by hand, and step by step with files that are wrong."""

import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from docs.tutorials import real_machines
from tests.studio.browser import needs_browser, opened, until
from truesim.cli.demo_robot import record
from truesim.core.errors import TruesimError
from truesim.studio.charts import SignalChart
from truesim.studio.progress import PageObserver
from truesim.studio.results import slider_scale
from truesim.studio.session import Session, resimulate
from truesim.studio.signals import Signals, log_signals
from truesim.studio.words import plain

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
    assert max(map(len, command.splitlines())) < 60 + max(len(str(file)) for file in session.log_files)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[words.index("--holdout") - 1 :][:2] == [str(session.log_files[0]), "--holdout"]
    assert words[words.index("--free") + 1 : words.index("--out")] == list(FREE)


def test_patterns_keep_their_stars():
    """Markdown shows a sentence with patterns as it is."""
    assert plain("joints/*.damping, or actuators/*.kv") == r"joints/\*.damping, or actuators/\*.kv"
    assert plain("shoulder_pan") == r"shoulder\_pan"


def test_sliders_have_short_numbers():
    """Ends hold the given ones, and steps are 1, 2 or 5 times a power of ten."""
    assert slider_scale(0.0, 6.3) == (0.0, 6.3, 0.01)
    assert slider_scale(0.0, 3.4488) == (0.0, 3.45, 0.005)
    low, high, step = slider_scale(-0.00237, 0.0238)
    assert low <= -0.00237
    assert high >= 0.0238
    assert len(f"{high:g}") < 9
    assert 500 <= (high - low) / step <= 1001


class Panel:
    """What a chart needs of a server: it remembers the data."""

    def __init__(self):
        self.gui, self.data = self, ()

    def add_dropdown(self, _label, options, initial_value):
        """A choice that nobody changes."""
        return SimpleNamespace(value=initial_value, options=options, order=1.0, on_update=lambda _: None)

    def add_uplot(self, data, series, **_):
        """A chart."""
        assert len(data) == len(series)
        self.chart = SimpleNamespace(data=data)
        return self.chart


def test_charts_are_drawn_wherever_the_mark_is():
    """Every curve begins with a number, which the chart needs to be drawn; the mark rises at the time that is shown."""
    pytest.importorskip("viser", reason="the viewer is not installed: pip install 'truesim[viewer]'")
    panel, time = Panel(), np.arange(0, 1, 0.01)
    measured = np.where(time < 0.1, np.nan, np.sin(time))[:, None]
    chart = SignalChart(panel, Signals(time, ["qpos/elbow"], {"measured": measured}))
    for now in (0.0, 0.5, 0.99):
        chart.mark(now - 2.0)
        chart.mark(now)
        assert all(np.isfinite(curve[0]) for curve in panel.chart.data)
        assert np.argmax(panel.chart.data[-1]) == round(now * 100)
    chart.show(Signals(time, ["qpos/elbow"], {"measured": 2 * measured}))
    assert np.argmax(panel.chart.data[-1]) == 99


def test_a_data_set_in_degrees_is_mapped_and_split(tmp_path):
    """Units are guessed, every episode is a log of its own, and the command names mapping, ties and episodes."""
    robot = Path(real_machines.__file__).with_name("desk_arm.xml")
    dataset = real_machines.record_lerobot(robot, tmp_path / "dataset", seconds=2.0)
    session = Session()
    model = session.load_robot(robot)
    with pytest.raises(TruesimError, match="looks like degrees"):
        session.load_logs([dataset])
    found = session.guess([dataset])
    arm = model.joints.names[:5]  # not the gripper, which LeRobot records in percent
    assert {found.unit(g) for g in found.guesses if g.target.split("/")[-1] in arm} == {"deg"}
    (tmp_path / "mapping.toml").write_text(found.text)
    logs = session.load_logs([dataset], tmp_path / "mapping.toml")
    assert [file.name for file in session.log_files] == ["dataset#0", "dataset#1", "dataset#2"]
    assert "actuators/*.kp" in dict(session.offered())
    session.ties, session.holdout = ("actuators/*.kp",), 1
    assert "1 number is free" in session.check()[0]
    words = shlex.split(session.command().replace("\\\n", " "))
    assert words[words.index("--holdout") + 1] == str(session.log_files[2])
    assert words[words.index("--mapping") + 1] == str(tmp_path / "mapping.toml")
    assert words[words.index("--tie") + 1 : words.index("--out")] == ["actuators/*.kp"]
    signals = log_signals(model, logs[0])
    elbow = signals.rows.index("qpos/elbow_flex")
    assert signals.curves["command"][:, elbow] == pytest.approx(logs[0].columns["ctrl/elbow_flex"])


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
