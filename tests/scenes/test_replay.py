"""Replays show recorded and simulated motions where they were; pictures show the robot."""

import zlib
from importlib import resources

import numpy as np
import pytest

import truesim as ts
from truesim.files.logs import Log
from truesim.scenes.motions import poses_of, recorded_motion, simulated_motion
from truesim.scenes.nodes import record_page
from truesim.scenes.picture import png
from truesim.scenes.replay import Replay, snapshot

TIME = np.arange(0, 1, 0.01)


@pytest.fixture(scope="module")
def arm():
    """The built-in arm."""
    with resources.as_file(resources.files("truesim") / "files" / "robots" / "arm.xml") as path:
        return ts.load(path)


@pytest.fixture(scope="module")
def replay(arm) -> Replay:
    """A swing of the elbow, and a simulation that is 0.2 rad ahead of it."""
    angle = np.sin(2 * np.pi * TIME)
    recorded = recorded_motion(arm, Log(TIME, {"qpos/elbow": angle}, "run.csv", frozenset()))
    measured = angle[:, None]
    signals = {
        "rows": np.array(["sensor/elbow"]),
        "train/run.csv/time": TIME,
        "train/run.csv/measured": measured,
        "train/run.csv/fitted": measured,
        "train/run.csv/start": measured + 0.2,
    }
    simulated = [simulated_motion(arm, recorded, signals, "train/run.csv", name) for name in ("fitted", "start")]
    return Replay.of("run.csv", arm, [recorded, *simulated])


def test_simulated_robots_stand_where_they_were_simulated(arm, replay):
    """The fitted robot covers the recorded one; the other one has its elbow 0.2 rad ahead."""
    recorded, fitted, start = (replay.poses[name] for name in ("recorded", "fitted", "start"))
    assert np.allclose(recorded.translation, fitted.translation)
    hand = arm.body("hand")
    turn = np.einsum("tij,tik->tjk", recorded.rotation[:, hand], start.rotation[:, hand])
    assert np.arccos((np.trace(turn, axis1=1, axis2=2) - 1) / 2) == pytest.approx(0.2, abs=1e-6)


def test_poses_equal_mujoco(arm):
    """Poses of bodies are those of MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    data = mujoco.MjData(arm.source.compiled)
    data.qpos[:] = [0.3, 0.5, -0.7, 0.2]
    mujoco.mj_kinematics(arm.source.compiled, data)
    poses = poses_of(arm, data.qpos[None])
    assert poses.translation[0] == pytest.approx(data.xpos[1:], abs=1e-12)
    assert poses.quaternion[0] == pytest.approx(data.xquat[1:], abs=1e-9)


def test_pictures_show_the_robot(replay):
    """The robot is in the middle of the picture; a ghost beside it adds its own color."""
    plain, ghost = snapshot(replay, width=160), snapshot(replay, ghost="start", width=160)
    covered = plain[..., 3] > 128
    rows, columns = np.nonzero(covered)
    assert 0.02 < covered.mean() < 0.6
    assert abs(rows.mean() - 60) < 25
    assert abs(columns.mean() - 80) < 25
    assert (ghost[..., 3] > 64).sum() > (plain[..., 3] > 64).sum()
    text = png(plain)
    assert text.startswith(b"\x89PNG")
    assert len(zlib.decompress(text[text.index(b"IDAT") + 4 : text.index(b"IEND") - 8])) == 120 * (160 * 4 + 1)


def test_a_replay_is_one_page(replay):
    """The page of a replay holds everything that it needs."""
    pytest.importorskip("viser", reason="the viewer is not installed: pip install 'truesim[viewer]'")
    page = record_page(replay)
    assert "__VISER_EMBED_DATA__" in page
    assert len(page) < 3e6
    assert len(record_page(replay, max_frames=2)) < len(page)
