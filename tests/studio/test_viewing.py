"""The viewer in a real browser: robot, log and fit are shown, the timeline plays, a slider moves the robot."""

from importlib import resources

import numpy as np
import pytest

import truesim as ts
from tests.studio.browser import needs_browser, opened, until
from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.scenes import viewer_library

TIME = np.arange(0, 2, 0.01)


@pytest.fixture(scope="module")
def arm():
    """The built-in arm."""
    with resources.as_file(resources.files("truesim") / "files" / "robots" / "arm.xml") as path:
        return ts.load(path)


def test_a_missing_viewer_is_one_sentence(monkeypatch):
    """The sentence has the command that installs it."""

    def absent(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(viewer_library, "import_module", absent)
    with pytest.raises(TruesimError, match=r"pip install 'truesim\[viewer\]'"):
        viewer_library.viewer()


def test_servers_listen_on_this_machine_only():
    """By default no other machine can connect; a port that is in use is named."""
    pytest.importorskip("viser", reason="the viewer is not installed: pip install 'truesim[viewer]'")
    server = viewer_library.open_server()
    try:
        assert server.get_host() == "127.0.0.1"
        with pytest.raises(TruesimError, match=f"Port {server.get_port()}"):
            viewer_library.open_server(port=server.get_port())
    finally:
        server.stop()


def test_sliders_move_the_robot(arm):
    """The slider of a joint turns its body in the scene; the page reports no error."""
    needs_browser()
    from truesim.studio.viewing import view_robot

    viewing, complaints = view_robot(arm), []
    try:
        with opened(viewing.address, complaints) as page:
            page.get_by_text("elbow [rad]").wait_for()
            before = [frame.wxyz.copy() for frame in viewing.nodes["recorded"].frames]
            thumb = page.get_by_role("slider").nth(2)
            thumb.focus()
            thumb.press("End")
            frames = viewing.nodes["recorded"].frames
            until(page, lambda: any(not np.allclose(a.wxyz, b) for a, b in zip(frames, before, strict=True)))
    finally:
        viewing.stop()
    assert not complaints


def test_a_log_plays(arm):
    """Play moves the time and the robot."""
    needs_browser()
    from truesim.studio.viewing import view_log

    columns = {"qpos/elbow": np.sin(2 * np.pi * TIME), "ctrl/elbow": np.zeros(len(TIME))}
    viewing, complaints = view_log(arm, [Log(TIME, columns, "run.csv", frozenset())]), []
    try:
        with opened(viewing.address, complaints) as page:
            page.get_by_role("button", name="Play").click()
            until(page, lambda: viewing.player.frame > 3)
    finally:
        viewing.stop()
    assert not complaints


def test_a_policy_is_shown_by_an_episode(tmp_path):
    """The motion of one episode has a frame for every control step, and the robot moves."""
    from truesim.policies import PpoOptions, TrainOptions, train
    from truesim.policies.tasks import make_task
    from truesim.studio.policy_motion import is_policy, policy_replay

    learner = PpoOptions(episodes=16, horizon=8, hidden=(8,))
    train(make_task("cart-pole-balance"), tmp_path / "policy", learner=learner, options=TrainOptions(steps=128))
    assert is_policy(tmp_path / "policy")
    assert not is_policy(tmp_path)
    replay = policy_replay(tmp_path / "policy")
    moved = np.ptp(replay.poses["recorded"].translation, axis=0)
    assert len(replay.time) == len(replay.poses["recorded"].translation)
    assert np.all(np.diff(replay.time) > 0)
    assert moved.max() > 1e-4
