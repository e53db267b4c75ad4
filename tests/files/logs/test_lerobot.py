"""LeRobot data sets as they are, and Parquet files with vectors in their columns."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truesim.core.errors import FileError
from truesim.files.logs import read_log, read_logs
from truesim.files.logs.lerobot import calibration_units
from truesim.identification.request import digest

JOINTS = ("shoulder_pan", "gripper")


def _frames(episode: int, frames: int = 5) -> pl.DataFrame:
    k = np.arange(frames)
    state = np.stack([k + 10.0 * episode, -k], axis=1).astype(np.float32)
    return pl.DataFrame(
        {
            "observation.state": state.tolist(),
            "action": (state + 1).tolist(),
            "timestamp": (k / 30).astype(np.float32),
            "frame_index": k,
            "episode_index": np.full(frames, episode),
            "task_index": np.zeros(frames, int),
        }
    )


def _info(folder, version: str, nested: bool = False):
    names = [f"{joint}.pos" for joint in JOINTS]
    feature = {"dtype": "float32", "shape": [2], "names": {"motors": names} if nested else names}
    info = {"codebase_version": version, "fps": 30, "features": {"observation.state": feature, "action": feature}}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))


def test_a_folder_of_format_3(tmp_path):
    """All episodes are in one file; each becomes a log with the names of the joints."""
    _info(tmp_path, "v3.0")
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    pl.concat([_frames(0), _frames(1)]).write_parquet(tmp_path / "data" / "chunk-000" / "file-000.parquet")
    logs = read_logs(tmp_path)
    assert [log.name for log in logs] == [f"{tmp_path.name}#0", f"{tmp_path.name}#1"]
    np.testing.assert_array_equal(logs[1].column("qpos/shoulder_pan"), 10 + np.arange(5))
    np.testing.assert_array_equal(logs[1].column("ctrl/gripper"), 1 - np.arange(5))
    np.testing.assert_allclose(logs[0].time, np.arange(5) / 30, atol=1e-12)
    with pytest.raises(FileError, match="2 episodes"):
        read_log(tmp_path)


def test_a_file_of_format_2(tmp_path):
    """One file per episode, with names nested by device; a single file is a log."""
    _info(tmp_path, "v2.1", nested=True)
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    for k in range(2):
        _frames(k).write_parquet(tmp_path / "data" / "chunk-000" / f"episode_{k:06d}.parquet")
    assert len(read_logs(tmp_path)) == 2
    log = read_log(tmp_path / "data" / "chunk-000" / "episode_000001.parquet")
    assert {"qpos/shoulder_pan", "ctrl/shoulder_pan"} <= set(log.columns)


def test_vectors_are_not_dropped(tmp_path):
    """A Parquet file outside of a data set: entries are numbered, and a mapping can name them."""
    _frames(0).write_parquet(tmp_path / "run.parquet")
    mapping = {"columns": {"time": "timestamp", "qpos/elbow": {"from": "observation.state/1", "unit": "deg"}}}
    log = read_log(tmp_path / "run.parquet", mapping=mapping)
    np.testing.assert_allclose(log.column("qpos/elbow"), -np.radians(np.arange(5)))


def test_calibration_gives_the_unit_of_percent(tmp_path):
    """Body joints run from -100 to 100, the gripper from 0 to 100 [rad]."""
    path = tmp_path / "so101.json"
    path.write_text(json.dumps({j: {"range_min": 1000, "range_max": 3000} for j in JOINTS}))
    units = calibration_units(path, list(JOINTS))
    turn = 2000 * 2 * np.pi / 4095
    assert units["shoulder_pan"] == pytest.approx((turn / 200, 0.0))
    assert units["gripper"] == pytest.approx((turn / 100, -turn / 2))
    with pytest.raises(FileError, match="range_min"):
        calibration_units(path, ["elbow"])


def test_damaged_data_sets_are_one_sentence(tmp_path):
    """No info, no files, no episodes."""
    _info(tmp_path, "v3.0")
    with pytest.raises(FileError, match="no Parquet files"):
        read_logs(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(FileError, match="cannot be read"):
        read_logs(tmp_path)
    (tmp_path / "meta" / "info.json").write_text("{")
    with pytest.raises(FileError, match="JSON"):
        read_logs(tmp_path)


def test_some_episodes(tmp_path):
    """`FOLDER#1` and `FOLDER#0-1` are episodes, so that others can be held out."""
    _info(tmp_path, "v3.0")
    (tmp_path / "data").mkdir()
    pl.concat([_frames(k) for k in range(3)]).write_parquet(tmp_path / "data" / "file-000.parquet")
    assert [log.name[-1] for log in read_logs(f"{tmp_path}#1-2")] == ["1", "2"]
    assert read_log(f"{tmp_path}#1").column("qpos/shoulder_pan")[0] == 10
    with pytest.raises(FileError, match="no episode 3; it has 0, 1, 2"):
        read_logs(f"{tmp_path}#2-4")
    (tmp_path / "other").mkdir()
    with pytest.raises(FileError, match="no LeRobot data set"):
        read_logs(f"{tmp_path}/other#1")


def test_recordings_in_a_folder_have_a_digest(tmp_path):
    """A fit is not continued with another data set, or with other episodes of it."""
    _info(tmp_path, "v3.0")
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "file-000.parquet"
    _frames(0).write_parquet(file)
    before = [digest(Path(f"{tmp_path}{part}")) for part in ("", "#0", "#1")]
    assert all(before)
    assert len(set(before)) == 3
    _frames(1).write_parquet(file)
    assert digest(tmp_path) != before[0]


def test_the_gripper_begins_at_its_lower_limit(tmp_path):
    """Zero percent is a closed gripper; in the robot file that is the joint's lower limit, not half the range."""
    path = tmp_path / "so101.json"
    path.write_text(json.dumps({"gripper": {"range_min": 1000, "range_max": 3000}}))
    assert calibration_units(path, ["gripper"], {"gripper": -0.17})["gripper"][1] == -0.17
