"""Replays show recorded and simulated motions where they were; pictures show the robot."""

import zlib
from importlib import resources

import numpy as np
import pytest

import truesim as ts
from truesim.files.logs import Log
from truesim.scenes import solids
from truesim.scenes.before_after import GAP, before_after
from truesim.scenes.cameras import FIELD_OF_VIEW, camera_for
from truesim.scenes.motions import poses_of, recorded_motion, simulated_motion
from truesim.scenes.nodes import record_page
from truesim.scenes.picture import png
from truesim.scenes.replay import FITTED_COLOR, START_COLOR, Replay, log_replays, snapshot
from truesim.scenes.shapes import Shape

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


def test_logs_of_one_name_are_replayed_apart(arm):
    """Logs of two folders may have the same name; a replay is made when it is asked for, and once."""
    logs = [Log(TIME, {"qpos/elbow": k + 0 * TIME}, "run.csv", frozenset()) for k in (0.1, 0.4)]
    replays = log_replays(arm, logs)
    assert list(replays) == ["run.csv (1)", "run.csv (2)"]
    first, second = replays.values()
    assert replays["run.csv (1)"] is first
    assert first.shapes is second.shapes
    hand = arm.body("hand")
    apart = first.poses["recorded"].translation[0, hand] - second.poses["recorded"].translation[0, hand]
    assert np.linalg.norm(apart) > 0.01


@pytest.mark.parametrize("upper", [1.0, 0.6])
@pytest.mark.parametrize("aspect", [0.9, 1.8])
def test_cameras_see_the_robot_beside_panels(replay, aspect, upper):
    """Every corner of every body lies within the picture, and within its upper part where a panel covers the rest."""
    camera = camera_for(replay.shapes, list(replay.poses.values()), aspect, upper)
    forward = (camera.target - camera.position) / np.linalg.norm(camera.target - camera.position)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    zoom = 1 / np.tan(FIELD_OF_VIEW / 2)
    for shape in replay.shapes:
        poses = replay.poses["start"]
        R, p = poses.rotation[:, shape.body], poses.translation[:, shape.body]
        points = np.einsum("tij,vj->tvi", R, shape.vertices) + p[:, None] if shape.body >= 0 else shape.vertices
        seen = points.reshape(-1, 3) - camera.position
        depth = seen @ forward
        assert np.abs(zoom * (seen @ right) / depth / aspect).max() < 1
        height = zoom * (seen @ np.cross(right, forward)) / depth
        assert height.max() < 1
        assert height.min() > 1 - 2 * upper


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


def test_a_ghost_covers_a_robot_that_it_agrees_with(replay):
    """Where fitted and recorded robot coincide, every pixel of the moving bodies is blue; the recorded one is gray."""
    alone, fitted = (snapshot(replay, ghost=name, width=160).astype(int) for name in ("start", "fitted"))
    moving = (fitted[..., 3] == 255) & (fitted[..., 2] > fitted[..., 0] + 15)
    gray = (alone[..., 3] == 255) & (np.ptp(alone[..., :3], axis=-1) <= 2)
    assert moving.sum() > 300
    assert gray.sum() > 100
    fixed = (fitted[..., 3] == 255) & ~moving
    assert np.all(np.ptp(fitted[fixed][:, :3], axis=-1) <= 60), "no stripes of two colors"
    lone = moving[1:-1, 1:-1] & ~moving[:-2, 1:-1] & ~moving[2:, 1:-1]
    assert lone.mean() < 1e-3


def test_before_and_after_are_told_apart_by_marks(replay):
    """The halves have an orange and a blue mark in their upper corners, and fill most of their height."""
    image = before_after(replay, width=320)
    half = (image.shape[1] - GAP) // 2
    assert half == 320
    for side, color in ((image[:, :half], START_COLOR), (image[:, -half:], FITTED_COLOR)):
        mark = np.abs(side[10:45, 12:45, :3] - 255 * np.array(color)).max(axis=-1) < 3
        assert 0.05 < mark.mean() < 0.5
        body = np.abs(side[45:, :, :3].astype(int) - side[-1, 0, :3]).max(axis=-1) > 8
        rows = np.flatnonzero(body.any(axis=1))
        assert np.ptp(rows) > 0.5 * side.shape[0]


def test_shapes_grow_outward():
    """The surface of a sphere moves by the distance along its normals, and a box keeps its sides parallel."""
    sphere = Shape(0, *solids.ellipsoid(np.full(3, 0.2)), (1.0, 0.0, 0.0, 1.0))
    assert np.linalg.norm(sphere.grown(0.01), axis=1) == pytest.approx(0.21, rel=0.01)
    box = Shape(0, *solids.box(np.array([0.1, 0.2, 0.3])), (1.0, 0.0, 0.0, 1.0))
    assert np.abs(box.grown(0.01)).max(axis=0) == pytest.approx([0.11, 0.21, 0.31])
    assert len(set(sphere.muted[:3])) == 1


def test_a_replay_is_one_page(replay):
    """The page of a replay holds everything that it needs."""
    pytest.importorskip("viser", reason="the viewer is not installed: pip install 'truesim[viewer]'")
    page = record_page(replay)
    assert "__VISER_EMBED_DATA__" in page
    assert len(page) < 3e6
    assert len(record_page(replay, max_frames=2)) < len(page)
