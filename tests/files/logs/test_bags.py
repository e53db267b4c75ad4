"""MCAP files and ROS bags, written here and read back."""

import json
import sys

import numpy as np
import pytest

from truesim.core.errors import FileError
from truesim.files.logs import read_log, sampling

START = 1_700_000_000_000_000_000
MISSING = "the optional group 'ros' is not installed"


def written(path, storage):
    """A bag with joint states at 100 Hz and commands at 20 Hz, as ROS writes it."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason=MISSING)
    typesys = pytest.importorskip("rosbags.typesys", reason=MISSING)
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    types = store.types
    header = types["std_msgs/msg/Header"]
    plugin = {"mcap": rosbag2.StoragePlugin.MCAP, "sqlite3": rosbag2.StoragePlugin.SQLITE3}[storage]
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        commands = writer.add_connection("/arm/commands", "std_msgs/msg/Float64MultiArray", typestore=store)
        for i in range(100):
            stamp = START + i * 10_000_000
            message = types["sensor_msgs/msg/JointState"](
                header=header(types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9), ""),
                name=["shoulder", "elbow"],
                position=np.array([0.01 * i, -0.02 * i]),
                velocity=np.array([1.0, -2.0]),
                effort=np.array([0.5, np.nan]) if i else np.zeros(0),
            )
            writer.write(states, stamp + 3_000_000, store.serialize_cdr(message, message.__msgtype__))
            if i % 5 == 0:
                layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
                message = types["std_msgs/msg/Float64MultiArray"](layout, np.array([float(i), 7.0]))
                writer.write(commands, stamp + 5_000_000, store.serialize_cdr(message, message.__msgtype__))


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("part", ["folder", "file"])
def test_joint_states_and_commands(tmp_path, storage, part):
    """Joints get the names of the convention, stamps are the messages' own, topics keep their rates."""
    written(tmp_path / "run", storage)
    suffix = {"mcap": ".mcap", "sqlite3": ".db3"}[storage]
    path = tmp_path / "run" if part == "folder" else tmp_path / "run" / f"run{suffix}"
    log = read_log(path, mapping={"columns": {"ctrl/shoulder": "arm/commands/data/0"}})
    states = np.isfinite(log.column("qpos/shoulder"))
    np.testing.assert_allclose(log.time[states], np.arange(100) * 0.01, atol=1e-9)
    np.testing.assert_allclose(log.column("qpos/elbow")[states], -0.02 * np.arange(100))
    np.testing.assert_array_equal(log.column("qvel/elbow")[states], -2.0)
    assert np.isnan(log.column("effort/shoulder")[states][0])
    assert sampling(log, ["qpos/elbow"]).rate == pytest.approx(100)
    assert sampling(log, ["ctrl/shoulder"]).rate == pytest.approx(20)
    assert log.hold(["ctrl/shoulder"], np.array([0.2]))[0, 0] == 15.0


def test_json_messages(tmp_path):
    """MCAP files need not come from ROS: numbers in JSON messages are columns, a row per stamp."""
    writer = pytest.importorskip("mcap.writer", reason=MISSING)
    with (tmp_path / "run.mcap").open("wb") as file:
        out = writer.Writer(file)
        out.start()
        schema = out.register_schema(name="state", encoding="jsonschema", data=b'{"type": "object"}')
        channels = [out.register_channel(topic=t, message_encoding="json", schema_id=schema) for t in ("/arm", "/imu")]
        for i in range(10):
            for channel, content in zip(
                channels, ({"elbow": 0.1 * i, "mode": "run"}, {"gyro": [1, 2, i]}), strict=True
            ):
                data = json.dumps(content).encode()
                out.add_message(channel, log_time=START + i * 10**7, publish_time=START, data=data)
        out.finish()
    log = read_log(tmp_path / "run.mcap")
    np.testing.assert_allclose(log.time, 0.01 * np.arange(10), atol=1e-9)
    np.testing.assert_allclose(log.column("arm/elbow"), 0.1 * np.arange(10))
    np.testing.assert_array_equal(log.column("imu/gyro/2"), np.arange(10))


@pytest.mark.parametrize("name", ["run.mcap", "run.bag", "run.db3"])
def test_a_broken_file_is_one_sentence(tmp_path, name):
    """The file is named; nothing of the reader's inside is shown."""
    pytest.importorskip("rosbags", reason=MISSING)
    (tmp_path / name).write_bytes(b"nonsense" * 100)
    with pytest.raises(FileError, match=rf"{name} cannot be read"):
        read_log(tmp_path / name)


def test_a_folder_that_is_no_bag(tmp_path):
    """A folder without metadata is not a ROS 2 bag."""
    with pytest.raises(FileError, match=r"no metadata\.yaml.*name the log files"):
        read_log(tmp_path)


@pytest.mark.parametrize("name", ["run.mcap", "run.bag"])
def test_without_the_optional_group(tmp_path, monkeypatch, name):
    """The message says what to install."""
    for module in ("mcap", "mcap.reader", "rosbags", "rosbags.highlevel", "rosbags.typesys"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(FileError, match=r"truesim\[ros\]"):
        read_log(tmp_path / name)


def test_trajectories_and_states_of_controllers(tmp_path):
    """Arrays get the names of their joints, and every point of a trajectory is a row at its own time."""
    writer = pytest.importorskip("mcap.writer", reason=MISSING)
    names = ["elbow", "shoulder"]
    points = [{"positions": [i, 10 + i], "time_from_start": {"sec": 0, "nanosec": i * 10**8}} for i in range(3)]
    state = {"joint_names": names, "reference": {"positions": [3.0, 4.0], "time_from_start": {"sec": 0, "nanosec": 0}}}
    with (tmp_path / "run.mcap").open("wb") as file:
        out = writer.Writer(file)
        out.start()
        schema = out.register_schema(name="trajectory", encoding="jsonschema", data=b"{}")
        for topic, content in (("/goal", {"joint_names": names, "points": points}), ("/arm/state", state)):
            channel = out.register_channel(topic=topic, message_encoding="json", schema_id=schema)
            out.add_message(channel, log_time=START, publish_time=START, data=json.dumps(content).encode())
        out.finish()
    log = read_log(tmp_path / "run.mcap")
    np.testing.assert_allclose(log.time, [0, 0.1, 0.2], atol=1e-9)
    np.testing.assert_array_equal(log.column("goal/positions/shoulder"), [10, 11, 12])
    assert log.column("arm/state/reference/positions/elbow")[0] == 3.0
    assert not [name for name in log.columns if "time_from_start" in name]
